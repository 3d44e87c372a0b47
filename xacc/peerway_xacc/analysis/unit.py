"""One source file: its directives in order, checked against its syntax, and the edits they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from peerway_xacc.analysis.mapping import Declared, DistributedArray, LoopOver, Scopes, TemplateOf
from peerway_xacc.analysis.paths import Communication, Transfer
from peerway_xacc.frontend import clauses, grammar_acc, grammar_xmp
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Diagnostics, Place, Refused
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.preprocess import Pragma, Texts
from peerway_xacc.frontend.source import Function, Range, Statement
from peerway_xacc.frontend.syntax import Syntax
from peerway_xacc.frontend.tokens import joined, quoted, scan

_Kind = TypeVar("_Kind", bound=Declared)


@dataclass
class Written:
    """What may write distributed arrays, by the starts of statements, and which count as written always."""

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


@dataclass
class Stack:
    """Directives that belong to one statement, in their order, and what is put before and behind it."""

    statement: Statement
    function: Function
    directives: list[d.Directive] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Guard:
    """A condition before a loop's body, by the offsets of both; a kernel is given `names`."""

    loop: int
    body: int
    text: str
    names: list[str]


class Unit:
    """What is known of a file while its directives become code."""

    def __init__(self, file: str, texts: Texts, syntax: Syntax, diagnostics: Diagnostics) -> None:
        self.file = file
        self.texts = texts
        self.text = texts.of(file)
        self.syntax = syntax
        self.diagnostics = diagnostics
        self.scopes = Scopes()
        self.edits = Edits(self.text)
        self.directives: list[d.Directive] = []
        self.top: list[str] = []
        self.setup: list[str] = []
        self.setup_last: list[str] = []
        self.coarrays: dict[int, str] = {}
        self.image_sizes: dict[
            int, list[str]
        ] = {}  # of coarrays: the dimensions of their images but the last
        self.reached: set[str] = set()  # coarrays whose copies on GPUs others reach
        self.conditions: dict[int, str] = {}  # of host_data and compute constructs, by their start
        self.ending = ""
        self.explained: list[tuple[Place, str]] = []
        self.halo_plans = 0
        self.communications: list[tuple[Place, Communication]] = []
        self.acc_regions: list[tuple[Range, d.Acc]] = []
        self.data_lists: dict[int, str] = {}  # the pwx_data of a data construct, by where it begins
        self.acc_atomics: list[Range] = []
        self.shared_loops: set[int] = set()  # that have kernels of their own, by where their `for` begins
        self.acc_loops: dict[int, d.Acc] = {}  # by where their `for` begins
        self.own_in_loops: list[tuple[Statement, d.Acc, clauses.Section]] = []  # private in a thread's work
        self.unbound: set[int] = set()  # loops of xmp that may leave their bounds, by where they begin
        self.guards: list[Guard] = []
        self.localised: dict[int, str] = {}  # loops of xmp, by where they begin: span or cyclic
        self.loops_over: dict[int, LoopOver] = {}  # what these go over
        self.kernels: list[Callable[[], None]] = []  # what generates them, once all directives are known
        self.kernel_names: list[str] = []  # that were generated
        self.on_gpu = False
        self.has_zero = False  # a data clause has the modifier
        self.one_sided = False  # a gmove in or out reaches arrays of nodes that do not come by
        self.translated: set[int] = set()  # starts of subscripts that became those of a node's memory
        self.left_regions: list[Range] = []  # compute constructs that another compiler makes code of
        self.acc_left = False  # directives of acc are another compiler's
        self.placed: set[int] = set()
        self.edited: set[int] = set()  # starts of statements that directives belong to
        self.fixes: dict[int, d.TemplateFix] = {}
        self.when_fixed: dict[int, list[str]] = {}  # what is done then, by the template's id
        self.written = Written()
        self.runs: dict[int, list[d.Reflect]] = {}  # of reflects that are done as one, by each one's id
        self.needed: list[tuple[DistributedArray, int]] = []
        self._lines: dict[int, list[str]] = {}
        self._names = 0

    def parse(self, pragmas: list[Pragma]) -> None:
        """Read all directives; what cannot be read is an error, and the next one is read."""
        for pragma in pragmas:
            try:
                if pragma.model == "omp":
                    text = f"#pragma omp {joined([token.text for token in pragma.tokens])}"
                    self.directives.append(d.Omp(pragma.place, pragma.start, pragma.end, pragma.file, text))
                else:
                    self.directives.append(
                        (grammar_xmp if pragma.model == "xmp" else grammar_acc).parse(pragma)
                    )
            except Refused as refused:
                self.diagnostics.add(refused)

    def each(self, kinds: dict[type, Callable[[Unit, d.Directive], None]]) -> None:
        """Do for each directive of these kinds what the table says; an error ends only the one it is in."""
        for directive in self.directives:
            do = kinds.get(type(directive))
            if do:
                try:
                    do(self, directive)
                except Refused as refused:
                    self.diagnostics.add(refused)
                    self.diagnostics.leave_unfinished(name.text for name in d.declared_names(directive))

    # ---- where things are

    def directives_in(self, inside: Range | None = None, file: str = "") -> list[d.Directive]:
        """The directives of a file, this one if none is given; those that begin in a range of it."""
        file = file or self.file
        return [
            directive for directive in self.directives
            if directive.file == file and (inside is None or inside.start <= directive.start < inside.end)
        ]  # fmt: skip

    def function_of(self, directive: d.Directive) -> Function | None:
        """The function that a directive is in."""
        return self.syntax.function_at(directive.file, directive.start)

    def scope(self, directive: d.Directive) -> tuple[Function | None, Range]:
        """The function and the range in which what a directive declares is known."""
        function = self.function_of(directive)
        if function is None:
            return None, Range(0, 0)
        block = self.syntax.enclosing_block(directive.file, directive.start)
        return function, Range(directive.start, block.end if block else function.body.end)

    def get(self, kind: type[_Kind], name: clauses.Name, directive: d.Directive) -> _Kind:
        """What a name in a directive stands for."""
        return self.scopes.get(kind, name, self.function_of(directive), directive.start)

    def array(self, name: clauses.Name, directive: d.Directive) -> DistributedArray:
        """The distributed array that a name in a directive stands for."""
        variable = self.syntax.variable(name.text, directive.file, directive.start)
        array = self.scopes.of_variable(variable) if variable else None
        if array is None:
            if variable is None:
                raise Refused(name.place, f"'{name.text}' is not declared")
            raise Refused(name.place, f"'{name.text}' is not aligned with a template")
        return array

    def check_fixed(self, template: TemplateOf | None, directive: d.Directive, place: Place) -> None:
        """A directive cannot use a template before that is fixed, as far as the text of a function tells."""
        fix = self.fixes.get(id(template))
        if (
            fix
            and template
            and directive.start < fix.start
            and self.function_of(fix) is self.function_of(directive)
        ):
            note = (fix.place, "it is fixed here")
            raise Refused(place, f"template '{template.name}' is used before it is fixed", note)

    def new_name(self, stem: str) -> str:
        """A name that no other generated object has."""
        self._names += 1
        return f"{stem}__{self._names}"

    # ---- what is generated

    def declare(self, directive: d.Directive, kind: str, name: str, end: str = "") -> None:
        """A descriptor: of the unit, or of the block that the directive is in; `end` is called where that
        ends.
        """
        if self.function_of(directive) is None:
            self.top.append(f"static {kind} {name};")
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
            self.edits.before(block.start + 1, f" {text}")
        else:
            self.put_at(offset, [text])

    def set_up(self, directive: d.Directive, text: str) -> None:
        """A call that fills a descriptor: before main, or where the directive is."""
        if self.function_of(directive) is None:
            self.setup.append(text)
        else:
            self.put(directive, [text])

    def put(self, directive: d.Directive, lines: list[str]) -> None:
        """Lines in the place of a directive."""
        if directive.file != self.file:
            raise Refused(
                directive.place,
                "this directive in a header is not supported yet; put it into the source file",
            )
        self._lines.setdefault(directive.start, []).extend(lines)

    def put_at(self, start: int, lines: list[str]) -> None:
        """Lines in the place of the directive that begins at an offset."""
        self._lines.setdefault(start, []).extend(lines)

    def is_cyclic(self, directive: d.Loop) -> bool:
        """Is a dimension that a loop goes over cyclic?"""
        result = (
            self.scopes.find(directive.on.name.text, self.function_of(directive), directive.start)
            if directive.on
            else None
        )
        formats = result.formats if isinstance(result, TemplateOf) else None
        return any(fmt.kind == "cyclic" for fmt in formats or ())

    @staticmethod
    def words(text: str) -> set[str]:
        """The identifiers in a text."""
        return {span.text for span in scan(text) if span.kind == "name"}

    def explain(self, directive: d.Directive, text: str) -> None:
        """Say what was generated for a directive."""
        self.explained.append((directive.place, text))

    def communicates(self, directive: d.Directive, head: str, *transfers: Transfer) -> None:
        """Say what a directive sends, so that --explain can say by which path."""
        self.communications.append((directive.place, Communication(head, transfers)))

    def finish(self) -> str:
        """The text of the unit with all edits."""
        for directive in self.directives:
            own = directive.file == self.file and not isinstance(directive, d.Omp)
            if own and directive.start not in self.placed:
                self.edits.directive(directive.start, directive.end, self._lines.get(directive.start, []))
        line = f"#line 1 {quoted(self.file)}\n"
        return line + self.edits.text() + self.ending
