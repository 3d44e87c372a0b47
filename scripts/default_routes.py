"""Make library/src/route/defaults.json, the costs that come with Peerway, from their records.

    python scripts/default_routes.py

The sends are of `peerway bench send_exchange --device host,cuda` on two GPUs with NVLink, the puts of
`peerway bench --quick --device cuda` by two ranks that take turns on one GPU.
"""

from __future__ import annotations

import json

from peerway import _core
from peerway_measure import records
from peerway_measure.bench.kinds import ROUTE
from peerway_measure.records import Record
from peerway_measure.tune import draft
from steps import ROOT, main

RECORDS = [ROOT / "results" / name for name in ("h100-x2/sends.jsonl", "h200-x1/time-sliced.jsonl")]
DEFAULTS = ROOT / "library" / "src" / "route" / "defaults.json"
CLASSES = {
    ("host", "host", "send"): "host->host",
    ("cuda:0", "cuda:1", "send"): "cuda->cuda/nvlink",
    ("cuda:0", "cuda:0", "put"): "cuda->cuda/time-sliced",
}


def table_of(result: list[Record]) -> str:
    """The text of the route table; its machine is that of the records."""
    result = [record for record in result if record.test in ("send_exchange", "put_latency")]
    costs = draft.points_of((record for record in result if record.via != ROUTE), CLASSES)
    table = draft.table(costs, [], {}, {}, 0)
    table["date"] = max(record.time for record in result)
    table["machine"] = {"fields": {"devices": ", ".join(sorted({record.device for record in result}))}}
    return _core.table_text(json.dumps(table))


def make() -> int:
    """Write the file."""
    DEFAULTS.write_text(table_of(records.read(RECORDS)))
    return 0


if __name__ == "__main__":
    main(make)
