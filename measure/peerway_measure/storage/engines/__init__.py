"""The storage engines, one in each module, all with the interface of base.py."""

from __future__ import annotations

from peerway_measure.storage.engines.base import Engine
from peerway_measure.storage.engines.fio import Fio
from peerway_measure.storage.engines.gds import Gds
from peerway_measure.storage.engines.posix import Posix

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (Posix(), Fio(), Gds("direct"), Gds("compat"), Gds("bounce"))
}
