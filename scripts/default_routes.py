"""Make src/route/defaults.json, the costs that come with Peerway, from the records of their measurement.

    python scripts/default_routes.py

The sends are of `peerway bench send_latency --device host,cuda` on two GPUs with NVLink, of GPUs the later
ones, the puts of `peerway bench --quick --device cuda` by two ranks that take turns on one GPU.
"""

from __future__ import annotations

import json

from peerway import _core, records
from peerway.bench.kinds import ROUTE
from peerway.records import Record
from peerway.tune import draft
from steps import ROOT, main

RECORDS = {  # and of what kind of memory they count
    ROOT / "results" / "h200-x2" / "sends.jsonl": "host",
    ROOT / "results" / "h100-x2" / "sends.jsonl": "cuda",
    ROOT / "results" / "h200-x1" / "time-sliced.jsonl": "cuda",
}
DEFAULTS = ROOT / "src" / "route" / "defaults.json"
CLASSES = {
    ("host", "host", "send"): "host->host",
    ("cuda:0", "cuda:1", "send"): "cuda->cuda/nvlink",
    ("cuda:0", "cuda:0", "put"): "cuda->cuda/time-sliced",
}
# Of sends tune measures send_exchange; of that there are no records of such hosts yet.
TESTS = ("send_latency", "put_latency")


def table_of(found: list[Record]) -> str:
    """The text of the table; its machine is the one of the records."""
    found = [record for record in found if record.test in TESTS]
    costs = draft.points_of((record for record in found if record.via != ROUTE), CLASSES)
    table = draft.table(costs, [], {}, {}, 0)
    table["date"] = max(record.time for record in found)
    table["machine"] = {"fields": {"devices": ", ".join(sorted({record.device for record in found}))}}
    return _core.table_text(json.dumps(table))


def read() -> list[Record]:
    """All records that count, whatever made them."""
    found = [(kind, record) for file, kind in RECORDS.items() for record in records.read(file)]
    return [record for kind, record in found if record.source.startswith(kind)]


def make() -> int:
    """Write the file."""
    DEFAULTS.write_text(table_of(read()))
    return 0


if __name__ == "__main__":
    main(make)
