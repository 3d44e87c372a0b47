"""The program of each rank of a measurement on several nodes, one on each node. All ranks report to the
session through rank 0.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from peerway.team import Team
from peerway_common.ending import Ended, ended_by_signals
from peerway_measure.bench.reporter import Reporter
from peerway_measure.bench.results import Results
from peerway_measure.records import Record
from peerway_measure.storage.node_group import TeamOfNodes, by_node
from peerway_measure.storage.operation import OperationFailed
from peerway_measure.storage.request import Request
from peerway_measure.storage.session import one_run, stamps


def main() -> None:
    """Measure, and remove all files even if a signal ends the measurement."""
    try:
        with ended_by_signals():
            _serve()
    except Ended as end:
        sys.exit(end.code)


def _serve() -> None:
    """Take the request from rank 0's input, measure, and report."""
    reporter = Reporter()
    team = Team.from_launcher()
    reporter.speaks = team.rank == 0
    group = TeamOfNodes(team)
    plan = json.loads(group.from_first_node(sys.stdin.read() if team.rank == 0 else ""))
    request = _request(plan["request"])
    run_names = json.loads(group.from_first_node(json.dumps(stamps(request))))
    reporter.say("plan", jobs=request.repeat)
    for number, stamp in enumerate(run_names, start=1):
        results = Results(stamp=stamp)
        reporter.say("begin", test=f"run {number}", via="storage")
        problem = ""
        try:
            one_run(request, group, results, lambda *_: None)
        except OperationFailed as error:
            problem = str(error)
        for part in group.all_gather(json.dumps([json.loads(r.as_json()) for r in results.records])):
            _report(reporter, json.loads(part), plan["command"])
        for note in by_node(group, results.notes):
            reporter.say("said", text=note)
        if problem:
            reporter.say("error", message=problem)
            break
    reporter.say("done")
    team.close()


def _report(reporter: Reporter, part: list[dict[str, Any]], command: str) -> None:
    for values in part:
        values["command"] = command
        reporter.say("record", record={f.name: values.get(f.name, {}) for f in fields(Record)})


def _request(values: dict[str, Any]) -> Request:
    return Request(**values | {"place": Path(values["place"])})


if __name__ == "__main__":
    main()
