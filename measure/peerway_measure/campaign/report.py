"""Makes the page of one campaign: a map of the cluster, each test by node type, the GPUDirect columns, and
what could not be measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from markupsafe import Markup

from peerway_common.printable import printable
from peerway_measure.campaign.failures import by_test_and_type
from peerway_measure.campaign.gpudirect import matrices
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.outliers import LEAST_NODES, Cell, cells
from peerway_measure.campaign.plan import Plan
from peerway_measure.campaign.status import status
from peerway_measure.compare.metric import metric_of, name_of
from peerway_measure.records import Record
from peerway_measure.report.node_types import page
from peerway_measure.report.points import picture
from peerway_measure.report.spread import spread_text

_MOST_POINTS = 4000  # the most points of one column; more would overlap


@dataclass(frozen=True)
class Table:
    """A test, with its rows by node type and their points."""

    title: str
    rows: list[tuple[str, ...]]
    pictures: list[tuple[str, Markup]]


def render(plan: Plan, journal: Journal) -> str:
    """The page as HTML. Raises RecordError."""
    records = journal.records()
    all_cells = cells(records)
    now = status(plan, journal)
    return page(
        "campaign.html.j2",
        name=printable(plan.name),
        status=[printable(line) for line in now.lines()[:2]],
        failed=[printable(line) for line in now.failed],
        unmeasured=[printable(line) for line in _unmeasured(plan, journal, records)],
        tests=list(dict.fromkeys(cell.test for cell in all_cells)),
        map=_cluster_map(plan, all_cells),
        odd=[_odd_line(cell) for cell in all_cells if cell.odd],
        least=LEAST_NODES,
        judged=any(cell.judged for cell in all_cells),
        gpudirect=matrices(records),
        tables=_tables(records),
        records=len(records),
    )


def _cluster_map(
    plan: Plan, all_cells: Sequence[Cell]
) -> list[tuple[str, list[tuple[str, list[tuple[str, bool]]]]]]:
    """The nodes of each type, each with its cells in the order of the tests."""
    tests = list(dict.fromkeys(cell.test for cell in all_cells))
    at = {(cell.test, cell.node): cell for cell in all_cells}
    return [
        (
            printable(kind),
            [
                (
                    node,
                    [
                        (_percent(at[t, node]), at[t, node].odd) if (t, node) in at else ("", False)
                        for t in tests
                    ],
                )
                for node in nodes
            ],
        )
        for kind, nodes in plan.nodes.items()
    ]


def _tables(records: Sequence[Record]) -> list[Table]:
    tests: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        tests.setdefault(name_of(record), {}).setdefault(record.node_type, []).append(record)
    return [_table(name, dict(sorted(types.items()))) for name, types in tests.items()]


def _table(name: str, types: dict[str, list[Record]]) -> Table:
    metric = metric_of(next(iter(types.values()))[0].test)
    rows: list[tuple[str, ...]] = []
    columns = []
    for kind, several in types.items():
        values = [v for r in several if (v := metric.of(r)) is not None]
        proved = {r.extra.get("state_proved") for r in several} - {None}
        rows.append(
            (
                printable(kind),
                str(len(values)),
                str(len({r.host for r in several})),
                metric.text(sum(values) / len(values)),
                metric.text(median(values)),
                spread_text(several, metric.field).strip(),
                metric.text(min(values)),
                metric.text(max(values)),
                "" if not proved else "yes" if proved == {True} else "no",
            )
        )
        step = -(-len(values) // _MOST_POINTS)
        columns.append((printable(kind), values[::step]))
    return Table(
        printable(f"{name} · {metric.name}"), rows, [("", picture(columns, metric.text, printable(name)))]
    )


def _unmeasured(plan: Plan, journal: Journal, records: Sequence[Record]) -> list[str]:
    """What the page says about missing measurements: nodes without any record, tests that were measured on a
    node less often than requested, and notes of commands.
    """
    seen = {record.host for record in records}
    missing = [node for nodes in plan.nodes.values() for node in nodes if node not in seen]
    tasks, finished, notes = plan.tasks(), journal.finished(), journal.past().notes
    done = Counter((task.test.name, task.node) for task in tasks if task.id in finished)
    few = {
        (task.test.name, task.node): (task, f"{times} of {plan.repeats} measurements")
        for task in tasks
        if task.node in seen and (times := done[task.test.name, task.node]) < plan.repeats
    }
    noted = [(task, note) for task in tasks for note in notes.get(task.id, [])]
    return [
        *(f"{node} has no measurement" for node in missing),
        *by_test_and_type(few.values()),
        *by_test_and_type(noted),
    ]


def _odd_line(cell: Cell) -> str:
    text = cell.metric.text
    values = f"{text(cell.value)}, its type {printable(cell.type)} has {text(cell.of_type)}"
    return printable(f"{cell.node}: {cell.test}: {values} ({_percent(cell)})")


def _percent(cell: Cell) -> str:
    return f"{(cell.ratio - 1) * 100:+.1f} %"
