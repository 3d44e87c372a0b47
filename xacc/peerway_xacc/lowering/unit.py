"""Holds `Unit`, the state of one source file that lowering and code generation share.

The class of each part says which module writes it; later modules read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from peerway_xacc.analysis.explained_paths import Communication, Transfer
from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.analysis.mapping import DistributedArray, LoopOver
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.source import Range, Statement
from peerway_xacc.lowering.output import Output


@dataclass
class Written:
    """The statements that may write distributed arrays, and the arrays that always count as written.

    Keys are the offsets of statements. `dataflow` fills it.
    """

    constructs: dict[int, list[DistributedArray]] = field(default_factory=dict)  # loops and tasks
    # statements outside constructs
    statements: dict[int, list[DistributedArray]] = field(default_factory=dict)
    everything: set[int] = field(default_factory=set)  # tasks that may write any array
    # by the array's id(): the place and the reason
    always: dict[int, tuple[Place, str]] = field(default_factory=dict)

    def call(self, start: int) -> str:
        """The calls before the statement of a construct."""
        text = "".join(f"pwx_written({array.address}); " for array in self.constructs.get(start, []))
        return text + ("pwx_written_all(); " if start in self.everything else "")

    def why(self, array: DistributedArray) -> str:
        """Why an array always counts as written; empty if it does not."""
        place, text = self.always.get(id(array), (None, ""))
        return f"{text} in line {place.line}" if place else ""


@dataclass(frozen=True)
class Guard:
    """A condition before a loop's body, with the offsets of loop and body.

    A kernel has `names` as parameters.
    """

    loop: int
    body: int
    text: str
    names: list[str]


@dataclass
class Coarrays:
    """The coarrays that `coarray` declares, by the id() of the variable."""

    names: dict[int, str] = field(default_factory=dict)  # of their descriptors
    image_sizes: dict[int, list[str]] = field(default_factory=dict)  # without the last dimension
    on_gpus: set[str] = field(default_factory=set)  # descriptors of coarrays that other images reach on GPUs


@dataclass
class XmpLoops:
    """The xmp loops that `loops` lowered, by the offset of the `for`."""

    localised: dict[int, str] = field(default_factory=dict)  # "span" or "cyclic"
    over: dict[int, LoopOver] = field(default_factory=dict)  # what they go over
    unbound: set[int] = field(default_factory=set)  # loops that may leave their bounds
    guards: list[Guard] = field(default_factory=list)


@dataclass
class DataConstructs:
    """C variables that `data_regions` declared, by the offset of the directive."""

    conditions: dict[int, str] = field(default_factory=dict)  # variables that hold if conditions
    lists: dict[int, str] = field(default_factory=dict)  # the pwx_data of a data construct


@dataclass
class ComputeConstructs:
    """The OpenACC compute constructs that code generation has seen."""

    regions: list[tuple[Range, d.Acc]] = field(default_factory=list)
    foreign: list[Range] = field(default_factory=list)  # another compiler generates their code
    loops: dict[int, d.Acc] = field(default_factory=dict)  # by the offset of the `for`
    with_kernels: set[int] = field(default_factory=set)  # loops that have kernels of their own
    private: list[tuple[Statement, d.Acc, clauses.Section]] = field(
        default_factory=list
    )  # private to a loop's threads
    atomics: list[Range] = field(default_factory=list)
    pending: list[Callable[[], None]] = field(default_factory=list)  # run when all directives are known
    kernel_names: list[str] = field(default_factory=list)


@dataclass
class Subscripts:
    """The uses of distributed arrays."""

    translated: set[int] = field(default_factory=set)  # starts of subscripts that are local already
    # at offsets that libclang does not see
    needed: list[tuple[DistributedArray, int]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Unit(Mapped):
    """A mapped file, and what lowering and code generation write for it."""

    output: Output = field(kw_only=True)
    writes: Written = field(default_factory=Written)
    reflect_runs: dict[int, list[d.Reflect]] = field(default_factory=dict)  # by the directive's id()
    coarrays: Coarrays = field(default_factory=Coarrays)
    loops: XmpLoops = field(default_factory=XmpLoops)
    data: DataConstructs = field(default_factory=DataConstructs)
    compute: ComputeConstructs = field(default_factory=ComputeConstructs)
    subscripts: Subscripts = field(default_factory=Subscripts)
    with_directives: set[int] = field(default_factory=set)  # starts of statements that have directives

    def declare(self, directive: d.Directive, kind: str, name: str, end: str = "") -> None:
        """Declare a descriptor for the unit or the directive's block; the block's end calls `end`."""
        if self.function_of(directive) is None:
            self.output.top.append(f"static {kind} {name};")
        else:
            self.declare_in_block(directive.start, kind, name, end)

    def declare_in_block(self, offset: int, kind: str, name: str, end: str = "") -> None:
        """Declare a descriptor of a block in the place of a directive.

        If the function has a goto, the declaration is at the block's start: a jump may leave the block before
        the directive, and `end` then gets zeros.
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
        """Add a call that fills a descriptor: before main, or where the directive is."""
        if self.function_of(directive) is None:
            self.output.setup.append(text)
        else:
            self.put(directive, [text])

    def put(self, directive: d.Directive, lines: list[str]) -> None:
        """Put lines in the place of a directive. Raises Refused in a header."""
        if directive.file != self.file:
            raise Refused(
                directive.place,
                "this directive in a header is not supported yet; put it into the source file",
            )
        self.output.put_at(directive.start, lines)

    def explain(self, directive: d.Directive, text: str) -> None:
        """Record for --explain what was generated for a directive; a copy of one is not explained again."""
        if directive.file == self.file and self.text.is_inserted(directive.start):
            return
        self.output.explained.append((directive.place, text))

    def communicates(self, directive: d.Directive, head: str, *transfers: Transfer) -> None:
        """Record for --explain what a directive sends."""
        if directive.file == self.file and self.text.is_inserted(directive.start):
            return
        self.output.communications.append((directive.place, Communication(head, transfers)))
