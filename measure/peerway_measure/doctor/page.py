"""The terminal page: findings by group, each with its status as word and symbol, and the tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from . import tables
from .checks.between import ONE_GPU
from .checks.network import NO_NIC
from .finding import NO_AMD_GPU, NO_GPU, Finding, Status
from .finding import Group as FindingGroup

if TYPE_CHECKING:
    from .facts import Facts

STYLES = {
    Status.OK: "green",
    Status.OFF: "yellow",
    Status.WARNING: "bold red",
    Status.UNKNOWN: "magenta",
    Status.ABSENT: "bright_black",
}
SYMBOLS = {Status.OK: "✓", Status.OFF: "○", Status.WARNING: "!", Status.UNKNOWN: "?", Status.ABSENT: "–"}
# For terminals that cannot show these symbols: one letter for each, so that columns stay aligned.
PLAIN = str.maketrans("✓○–→×·─…", "+o->x.-~")
STATUS_WIDTH, TITLE_WIDTH = 9, 20
NARROW = 60  # with fewer columns, a finding's text is below its title instead of beside it
# Findings with nothing to judge share one line, instead of many lines "no GPU".
COLLAPSED = {
    NO_GPU: "without a GPU",
    NO_AMD_GPU: "without an AMD GPU",
    ONE_GPU: "with one GPU",
    NO_NIC: "without an RDMA NIC",
}


def show(console: Console, facts: Facts, findings: list[Finding], why: bool = False) -> None:
    """Print the page; `why` adds to each finding why it matters."""
    with console.capture() as capture:
        _print(console, facts, findings, why)
    text = capture.get()
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        text = text.translate(PLAIN).encode(console.encoding, "replace").decode(console.encoding)
    # rich fills columns with spaces, which lines of a saved page should not end in.
    for line in text.splitlines():
        console.file.write(line.rstrip() + "\n")


def _print(console: Console, facts: Facts, findings: list[Finding], why: bool) -> None:
    console.print(_heading(facts))
    for group in FindingGroup:
        console.print()
        console.print(Text(group.value, style="bold"))
        own = [f for f in findings if f.group == group]
        rows = _rows if console.width >= NARROW else _rows_for_narrow
        console.print(rows([f for f in own if not _is_collapsed(f)], why))
        for line in _collapsed_lines(own):
            console.print(line)
        for table in tables.of_group(facts, group, console.width):
            console.print(Padding(table, (1, 0, 0, 2)))
    if facts.problems:
        console.print()
    for problem in facts.problems:
        console.print(Text(f"Problem: {problem}", style="red"))
    console.print()
    console.print(_summary(findings))


def _heading(facts: Facts) -> RenderableType:
    host = facts.host
    parts = [host.name or "this node", host.cpu, f"{host.cores} cores" if host.cores else ""]
    parts += [f"{host.numa_nodes} NUMA nodes" if host.numa_nodes > 1 else "", f"Linux {facts.kernel.release}"]
    title = Text.assemble(("peerway doctor", "bold"), (f"  {facts.date}", "dim"))
    return Group(title, Text(" · ".join(p for p in parts if p)))


def _status(status: Status) -> Text:
    return Text(f"{SYMBOLS[status]} {status.value}", style=STYLES[status])


def _rows(findings: list[Finding], why: bool) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=STATUS_WIDTH, no_wrap=True)
    table.add_column(width=TITLE_WIDTH)
    table.add_column(ratio=1, overflow="fold")
    for finding in findings:
        table.add_row(_status(finding.status), Text(finding.title), Group(*_lines(finding, why)))
    return Padding(table, (0, 0, 0, 2))


def _rows_for_narrow(findings: list[Finding], why: bool) -> RenderableType:
    """Like _rows, for narrow terminals."""
    parts: list[RenderableType] = []
    for finding in findings:
        parts.append(Text.assemble("  ", _status(finding.status), f" {finding.title}"))
        parts.append(Padding(Group(*_lines(finding, why)), (0, 0, 0, 4)))
    return Group(*parts)


def _lines(finding: Finding, why: bool) -> list[RenderableType]:
    """The state, what to do and, if requested, why it matters."""
    lines: list[RenderableType] = [Text(_one_build_per_line(finding))]
    if why:
        lines.append(Text(finding.why, style="italic dim"))
    if finding.todo:
        lines.append(_indented(finding.todo))
    return lines


def _one_build_per_line(finding: Finding) -> str:
    """Put each build of a library on a line of its own."""
    return (
        finding.observed.replace("; ", "\n") if finding.group is FindingGroup.LIBRARIES else finding.observed
    )


def _indented(todo: str) -> RenderableType:
    """Put an arrow before what to do, unless there is nothing to do."""
    if todo.startswith("nothing"):
        return Text(todo, style="dim")
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(overflow="fold")
    grid.add_row(Text("→", style="cyan"), Text(todo, style="cyan"))
    return grid


def _is_collapsed(finding: Finding) -> bool:
    return finding.status is Status.ABSENT and finding.observed in COLLAPSED


def _collapsed_lines(findings: list[Finding]) -> list[RenderableType]:
    """One line for each reason why findings of this group do not apply."""
    lines: list[RenderableType] = []
    for reason, words in COLLAPSED.items():
        titles = [f.title for f in findings if _is_collapsed(f) and f.observed == reason]
        if titles:
            table = Table.grid(padding=(0, 1))
            table.add_column(width=STATUS_WIDTH, no_wrap=True)
            table.add_column(ratio=1)
            table.add_row(_status(Status.ABSENT), Text(f"{words}: {', '.join(titles)}", style="dim"))
            lines.append(Padding(table, (0, 0, 0, 2)))
    return lines


def _summary(findings: list[Finding]) -> RenderableType:
    counts = Counter(f.status for f in findings)
    parts = [f"{counts[s]} {SYMBOLS[s]} {s.value}" for s in Status if counts[s]]
    return Text(", ".join(parts), style="bold")
