"""The costs that come with Peerway are those of the records that they are said to be of."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import default_routes
from peerway_measure import records


def test_the_defaults_are_those_of_the_records() -> None:
    table = default_routes.table_of(records.read(default_routes.RECORDS))
    assert json.loads(table) == json.loads(default_routes.DEFAULTS.read_text())
