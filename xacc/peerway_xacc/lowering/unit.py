"""The state that lowering and code generation share of one source file: `Unit`.

Each part of it is written by the modules that its class names, and read by those behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.analysis.mapping import DistributedArray, LoopOver
from peerway_xacc.analysis.paths import Communication, Transfer
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.source import Range, Statement
from peerway_xacc.lowering.output import Output


@dataclass
class Written:
    """Statements that may write distributed arrays, by their starts, and arrays that always count as written.

    `dataflow` finds it.
    """

    constructs: dict[int, list[DistributedArray]] = field(default_factory=dict)  # loops and tasks
    statements: dict[int, list[DistributedArray]] = field(default_factory=dict)  # of no construct
    everything: set[int] = field(default_factory=set)  # tasks whose text does not say what they write
    always: dict[int, tuple[Place, str]] = field(default_factory=dict)  # by the array's id, and why

    def call(self, start: int) -> str:
        """The calls that stand before the statement of a construct."""
        text = "".join(f"pwx_written({array.address}); " for array in self.constructs.get(start, []))
        return text + ("pwx_written_all(); " if start in self.everything else "")

    def why(self, array: DistributedArray) -> str:
        """Why an array counts as written always; nothing where it does not."""
        place, text = self.always.get(id(array), (None, ""))
        return f"{text} in line {place.line}" if place else ""


@dataclass(frozen=True)
class Guard:
    """A condition before a loop's body, by the offsets of both; a kernel is given `names`."""

    loop: int
    body: int
    text: str
    names: list[str]


@dataclass
class Coarrays:
    """The coarrays that `coarray` declares; keys are the ids of variables."""

    names: dict[int, str] = field(default_factory=dict)  # of descriptors
    image_sizes: dict[int, list[str]] = field(default_factory=dict)  # dimensions of images but the last
    on_gpus: set[str] = field(default_factory=set)  # descriptors whose copies on GPUs others reach


@dataclass
class XmpLoops:
    """The loops of xmp that `loops` lowered, by where they begin."""

    localised: dict[int, str] = field(default_factory=dict)  # span or cyclic
    over: dict[int, LoopOver] = field(default_factory=dict)  # the dimensions that they go over
    unbound: set[int] = field(default_factory=set)  # those that may leave their bounds
    guards: list[Guard] = field(default_factory=list)


@dataclass
class DataConstructs:
    """C variables that `data_regions` declared, by the starts of directives."""

    conditions: dict[int, str] = field(default_factory=dict)  # variables of if clauses
    lists: dict[int, str] = field(default_factory=dict)  # the pwx_data of a data construct


@dataclass
class ComputeConstructs:
    """The compute constructs of OpenACC that code generation has seen."""

    regions: list[tuple[Range, d.Acc]] = field(default_factory=list)
    foreign: list[Range] = field(default_factory=list)  # another compiler makes code of these
    loops: dict[int, d.Acc] = field(default_factory=dict)  # by where their `for` begins
    with_kernels: set[int] = field(default_factory=set)  # loops that have kernels of their own
    private: list[tuple[Statement, d.Acc, clauses.Section]] = field(
        default_factory=list
    )  # in a loop's threads
    atomics: list[Range] = field(default_factory=list)
    pending: list[Callable[[], None]] = field(default_factory=list)  # run when all directives are known
    kernel_names: list[str] = field(default_factory=list)


@dataclass
class Subscripts:
    """Uses of distributed arrays."""

    translated: set[int] = field(default_factory=set)  # starts of those that count in a node's memory now
    needed: list[tuple[DistributedArray, int]] = field(default_factory=list)  # at offsets that libclang hides


@dataclass(frozen=True, eq=False)
class Unit(Mapped):
    """A mapped file, and what lowering and code generation write for it."""

    output: Output = field(kw_only=True)
    writes: Written = field(default_factory=Written)
    reflect_runs: dict[int, list[d.Reflect]] = field(default_factory=dict)  # that are one, by each one's id
    coarrays: Coarrays = field(default_factory=Coarrays)
    loops: XmpLoops = field(default_factory=XmpLoops)
    data: DataConstructs = field(default_factory=DataConstructs)
    compute: ComputeConstructs = field(default_factory=ComputeConstructs)
    subscripts: Subscripts = field(default_factory=Subscripts)
    with_directives: set[int] = field(default_factory=set)  # starts of statements that directives belong to

    def each(self, kinds: dict[type, Callable[[Unit, d.Directive], None]]) -> None:
        """Do for each directive of these kinds what the table says; an error ends only the one it is in."""
        for directive in self.directives:
            lower = kinds.get(type(directive))
            if lower:
                try:
                    lower(self, directive)
                except Refused as refused:
                    self.diagnostics.add(refused)
                    self.diagnostics.leave_unfinished(name.text for name in d.declared_names(directive))

    def declare(self, directive: d.Directive, kind: str, name: str, end: str = "") -> None:
        """A descriptor: of the unit, or of the block that the directive is in; `end` is called where that
        ends.
        """
        if self.function_of(directive) is None:
            self.output.top.append(f"static {kind} {name};")
        else:
            self.declare_in_block(directive.start, kind, name, end)

    def declare_in_block(self, offset: int, kind: str, name: str, end: str = "") -> None:
        """A descriptor of a block, in the place of a directive. Where a goto may come from before that and
        leave the block, it stands at the block's start: what ends there must be zeros then.
        """
        cleanup = f" __attribute__((cleanup({end})))" if end else ""
        text = f"{kind} {name}{cleanup} = {{0}};"
        block = self.syntax.enclosing_block(self.file, offset)
        function = self.syntax.function_at(self.file, offset)
        if block and function and any(mark.kind == "goto" for mark in function.marks):
            self.output.edits.before(block.start + 1, f" {text}")
        else:
            self.output.put_at(offset, [text])

    def set_up(self, directive: d.Directive, text: str) -> None:
        """A call that fills a descriptor: before main, or where the directive is."""
        if self.function_of(directive) is None:
            self.output.setup.append(text)
        else:
            self.put(directive, [text])

    def put(self, directive: d.Directive, lines: list[str]) -> None:
        """Lines in the place of a directive."""
        if directive.file != self.file:
            raise Refused(
                directive.place,
                "this directive in a header is not supported yet; put it into the source file",
            )
        self.output.put_at(directive.start, lines)

    def explain(self, directive: d.Directive, text: str) -> None:
        """Say what was generated for a directive."""
        self.output.explained.append((directive.place, text))

    def communicates(self, directive: d.Directive, head: str, *transfers: Transfer) -> None:
        """Say what a directive sends, so that --explain can say by which path."""
        self.output.communications.append((directive.place, Communication(head, transfers)))
