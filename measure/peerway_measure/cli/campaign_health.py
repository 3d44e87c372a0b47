"""The health mode of `peerway campaign run`: one round of all tests, a line for each node, and an
exit code.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from peerway.launch.hosts import is_this_host
from peerway_common.cli.options import BadInput
from peerway_common.printable import printable
from peerway_common.terminal import say
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.outliers import Cell, against, cells
from peerway_measure.cli.campaign_pass import measure, run_of
from peerway_measure.records import RecordError

if TYPE_CHECKING:
    from peerway_measure.campaign.plan import Plan

_HEALTH_S = 290  # for all tests of a node: under five minutes, even if all of them hang
_END_S = 10  # the time to end a test that hangs
_LEAST_S = 1


def health_of_all(folder: Path, plan: Plan) -> int:
    """Compare each node with the others of its type. Returns the exit code: 1 if one is odd or was not
    measured. Raises BadInput.
    """
    time_of_one(plan)  # raises BadInput before a folder is made
    place = _place(folder)
    failed, journal = _measured(plan, place)
    all_cells = cells(journal.records())
    return max([_line(node, kind, all_cells, failed) for node, kind in plan.type_of().items()])


def health_of_one(folder: Path, plan: Plan, node: str) -> int:
    """Compare a node with what the campaign measured on its type. The files of a healthy node are removed,
    because a prolog runs often. Raises BadInput.
    """
    kind = plan.type_of().get(node)
    if kind is None:
        raise BadInput(f"{printable(node)} is not a node of {folder}/campaign.toml")
    try:
        baseline = Journal(folder).records()
    except RecordError as error:
        raise BadInput(str(error)) from None
    if not any(record.node_type == kind for record in baseline):
        raise BadInput(
            f"{folder} has no results of the type {printable(kind)} to compare with; "
            f"{run_of(folder)} makes them"
        )
    alone = tuple(t for t in plan.tests if t.nodes == 1 and (not t.types or kind in t.types))
    if not alone:
        raise BadInput(f"{folder}/campaign.toml has no test for one node of the type {printable(kind)}")
    plan = replace(plan, nodes={kind: (node,)}, tests=alone)
    if is_this_host(node):  # as in a prolog, where a Slurm job would wait for the job that runs the prolog
        plan = replace(plan, starter="hosts", agent=())
    time_of_one(plan)
    place = _place(folder)
    failed, journal = _measured(plan, place)
    status = _line(node, kind, against(baseline, journal.records()), failed)
    if not status:
        shutil.rmtree(place, ignore_errors=True)
    return status


def _place(folder: Path) -> Path:
    place = folder / f"{datetime.now(UTC):health-%Y%m%dT%H%M%S.%f}"
    place.mkdir()
    return place


def _measured(plan: Plan, place: Path) -> tuple[dict[str, str], Journal]:
    """Measure one round now. Returns why measurements failed, and the results."""
    plan = replace(plan, repeats=1, tries=1, time_s=time_of_one(plan), window=None, busy=None)
    journal = Journal(place)
    missing = measure(plan, journal)
    return {name.partition(".")[2]: why for name, why in missing.why.items()}, journal


def time_of_one(plan: Plan) -> float:
    """The seconds for each test, so that a node ends all its tests in under five minutes, including tests of
    other nodes that draw it as their partner. Raises BadInput.
    """
    tasks = replace(plan, repeats=1).tasks()
    most = max(Counter(node for task in tasks for node in task.nodes).values(), default=1)
    share = _HEALTH_S / most - _END_S
    if share < _LEAST_S:
        raise BadInput(
            f"a node would have {most} measurements; with {_END_S} s to end each that hangs, five minutes "
            f"have room for {_HEALTH_S // (_END_S + _LEAST_S)}; "
            "write a campaign.toml with fewer tests or factors for --health, in a folder of its own"
        )
    return min(plan.time_s, share)


def _line(node: str, kind: str, all_cells: list[Cell], failed: dict[str, str]) -> int:
    """Print the state of a node. Returns 1 if the node is odd or a measurement failed, else 0."""
    own = [cell for cell in all_cells if cell.node == node]
    lacking = [
        f"{name.removesuffix(f'.{node}')}: {why}" for name, why in failed.items() if name.endswith(f".{node}")
    ]
    odd = [f"{c.test}: {c.metric.text(c.value)}, its type {c.metric.text(c.of_type)}" for c in own if c.odd]
    verdict = "failed" if lacking or not own else "odd" if odd else "ok"
    shown = lacking + odd or [f"{c.test}: {c.metric.text(c.value)}" for c in own[:3]]
    unjudged = "" if all(c.judged for c in own) else " (not judged: too few measurements of its type)"
    say(printable(f"{node} {verdict} ({kind}): {'; '.join(shown) or 'no records'}{unjudged}"))
    return int(verdict != "ok")
