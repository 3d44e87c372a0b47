"""Make src/route/defaults.json, the costs that come with Peerway, from the records of their measurement.

    python scripts/default_routes.py

The records are of `peerway bench send_latency --device host,cuda --sizes 8:16M --repeat 3` on two GPUs
with NVLink.
"""

from __future__ import annotations

import json

from peerway import _core, records
from peerway.bench.kinds import ROUTE
from peerway.records import Record
from peerway.tune import draft
from steps import ROOT, main

RECORDS = ROOT / "results" / "h200-x2" / "sends.jsonl"
DEFAULTS = ROOT / "src" / "route" / "defaults.json"
PAIRS = {("host", "host"): "host->host", ("cuda:0", "cuda:1"): "cuda->cuda/nvlink"}


def table_of(found: list[Record]) -> str:
    """The text of the table; its machine is the one of the records."""
    classes = {(*memories, "send"): pair for memories, pair in PAIRS.items()}
    costs = draft.points_of((record for record in found if record.via != ROUTE), classes)
    table = draft.table(costs, [], {}, {}, 0)
    table["date"] = max(record.time for record in found)
    table["machine"] = {"fields": {"devices": ", ".join(sorted({record.device for record in found}))}}
    return _core.table_text(json.dumps(table))


def make() -> int:
    """Write the file."""
    DEFAULTS.write_text(table_of(records.read(RECORDS)))
    return 0


if __name__ == "__main__":
    main(make)
