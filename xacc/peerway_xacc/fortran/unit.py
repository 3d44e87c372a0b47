"""The state of one Fortran file: the `Unit` of C with scopes, variables and output of Fortran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from peerway_xacc.analysis.mapping import Declared, DistributedArray, NodeArray, Scopes
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call, Generated
from peerway_xacc.fortran.grammar import Arguments, Read
from peerway_xacc.fortran.structure import Scope, Statement, Structure
from peerway_xacc.fortran.words import Word
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Function, Range, Variable
from peerway_xacc.frontend.source import Statement as Block
from peerway_xacc.frontend.syntax import Syntax
from peerway_xacc.frontend.tokens import Text
from peerway_xacc.lowering.output import Output
from peerway_xacc.lowering.unit import Unit

_EVERYWHERE = 1 << 60


def linkage(scope: Scope) -> str:
    """How C declares what describes a scope's names."""
    return "extern " if scope.foreign else "" if scope.kind == "module" else "static "


class FortranSyntax(Syntax):
    """What the phases ask of a file's syntax, answered from the program units of Fortran."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.file = structure.text.file
        self.functions = list(structure.scopes)
        self._entities: dict[tuple[int, str], Variable] = {}
        self.members: dict[tuple[int, str], tuple[Scope, Entity]] = {}  # by a scope's number and c%a

    def function_at(self, file: str, offset: int) -> Scope | None:
        """The innermost program unit or procedure that an offset is in."""
        around = [scope for scope in self.structure.scopes if scope.body.start < offset < scope.body.end]
        return max(around, key=lambda scope: scope.body.start, default=None)

    def enclosing_block(self, file: str, offset: int) -> Block | None:
        """Fortran's declarations hold in the whole of a scope."""
        return None

    def entity(self, name: str, scope: Scope | None) -> tuple[Scope, Entity] | None:
        """What a scope, or one around it, declares of a name; that of a component is `variable%component`."""
        base, _, component = name.partition("%")
        if scope and (scope.number, name) in self.members:
            return self.members[scope.number, name]
        if component:
            declared = self.entity(base, scope)
            known = f"{declared[1].name}%{component}" if declared else ""
            return (
                (declared[0], declared[0].entities[known])
                if declared and known in declared[0].entities
                else None
            )
        for around in scope.chain() if scope else ():
            if name in around.entities:
                return around, around.entities[name]
            if declared := self._used_by(around, name, set()):
                return declared
        return None

    def _used_by(self, scope: Scope, name: str, seen: set[str]) -> tuple[Scope, Entity] | None:
        """What the modules that a scope uses, and those that they use, declare of a name."""
        for module, only in scope.modules:
            used = self.module(module)
            known = name if only is None else only.get(name, name if "" in only else None)
            if used is None or known is None or module in seen:
                continue
            if known in used.entities:
                return used, used.entities[known]
            if declared := self._used_by(used, known, {*seen, module}):
                return declared
        return None

    def module(self, name: str) -> Scope | None:
        """A module of this file."""
        return next(
            (scope for scope in self.structure.scopes if scope.kind == "module" and scope.name == name), None
        )

    def variable(self, name: str, file: str, offset: int) -> Variable | None:
        """The variable that a name means at an offset."""
        declared = self.entity(name, self.function_at(file, offset))
        return self.variable_of(*declared) if declared else None

    def variable_of(self, scope: Scope, entity: Entity) -> Variable:
        """The variable of a declaration."""
        key = (scope.number, entity.name)
        if key not in self._entities:
            mention = entity.typed or entity.others[0]
            start = mention.logical.offsets[mention.word.start]
            rank = len(entity.dimensions or ())
            self._entities[key] = Variable(
                entity.name, self.file, Range(start, start + len(entity.name)), entity.type_text or "",
                (None,) * rank, parameter=False, file_scope=False, static=True, external=False,
                initialised=entity.initialised and not entity.deferred, constant=False,
                visible_until=_EVERYWHERE, scalar=rank == 0, column_major=True,
            )  # fmt: skip
        return self._entities[key]


class FortranScopes(Scopes):
    """All that is declared, found through the scopes around and the modules that these use."""

    sentinel = "!$xmp"

    def __init__(self, syntax: FortranSyntax) -> None:
        super().__init__()
        self._syntax = syntax

    def find(self, name: str, function: Function | None, offset: int) -> Declared | None:
        """The declaration that a name means in a scope."""
        scope = function if isinstance(function, Scope) else None
        if "%" in name:
            entity = self._syntax.entity(name, scope)
            return self._in(entity[0], entity[1].name) if entity else None
        for around in scope.chain() if scope else ():
            if declared := self._in(around, name):
                return declared
            for module, only in around.modules:
                used = self._syntax.module(module)
                known = name if only is None else only.get(name, name if "" in only else None)
                # a template has no name of Fortran: an only-list cannot name it
                if used and (declared := self._in(used, known or name)):
                    return declared
        return None

    def _in(self, scope: Scope, name: str) -> Declared | None:
        return next((known for known in self._all if known.function is scope and known.name == name), None)

    def arrays_of(self, scope: Scope) -> list[DistributedArray]:
        """The distributed arrays that a scope declares."""
        return [array for array in self.arrays() if array.function is scope]


class FortranOutput(Output):
    """Output of the phases of C: lines of C for each directive."""

    def __init__(self, file: str, text: Text) -> None:
        super().__init__(file, text)
        self.lines: dict[int, list[str]] = {}

    def put_at(self, start: int, lines: list[str]) -> None:
        """Lines of C for the directive that begins at an offset."""
        self.lines.setdefault(start, []).extend(lines)


@dataclass(frozen=True)
class Alias:
    """A name for a node's part of an array, and the scope that declares both."""

    scope: Scope
    entity: Entity


@dataclass(frozen=True, eq=False)
class FortranUnit(Unit):
    """A mapped Fortran file, and what is generated of it."""

    structure: Structure = field(kw_only=True)
    generated: Generated = field(kw_only=True)
    reads: dict[int, Read] = field(default_factory=dict)  # by the directive's id
    prefix: str = "pwf"  # of the names of generated functions
    shared: dict[int, Arguments] = field(default_factory=dict)  # of a scope's mapping, by its number
    needs_pointers: set[int] = field(default_factory=set)  # numbers of scopes
    aliases: dict[int, list[Alias]] = field(default_factory=dict)  # by the array's id
    taken_out: dict[int, set[int]] = field(default_factory=dict)  # items of declarations
    waiting: dict[int, list[tuple[DistributedArray, list[str]]]] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)  # assignments that became calls
    set_up_calls: dict[int, list[Call]] = field(default_factory=dict)  # of coarrays, by the scope's number
    temporaries: dict[int, list[str]] = field(default_factory=dict)  # declarations behind those of a scope
    pointing: dict[int, list[str]] = field(default_factory=dict)  # statements before those calls
    # The nodes of coarrays by the number of the scope and the name, and those of statements by their numbers.
    image_nodes: dict[tuple[int, str], NodeArray] = field(default_factory=dict)
    image_statements: dict[int, tuple[d.Directive, NodeArray]] = field(default_factory=dict)
    leaving: dict[int, list[str]] = field(default_factory=dict)  # C where a procedure ends, by its number
    uses_of: dict[int, set[str]] = field(default_factory=dict)  # USE statements that a scope needs
    program_setups: list[str] = field(default_factory=list)  # C that all processes run as the program begins
    module_setups: dict[str, str] = field(default_factory=dict)
    # Loops that execute a margin only, by the number of the DO: of each index two ranges, as Fortran text.
    margins: dict[int, dict[str, list[tuple[str, str]]]] = field(default_factory=dict)

    @property
    def fortran(self) -> FortranSyntax:
        """The syntax of the file."""
        assert isinstance(self.syntax, FortranSyntax)
        return self.syntax

    @property
    def fortran_scopes(self) -> FortranScopes:
        """All that is declared."""
        assert isinstance(self.scopes, FortranScopes)
        return self.scopes

    def output_lines(self, directive: d.Directive) -> list[str]:
        """The lines of C that lowering has for a directive."""
        assert isinstance(self.output, FortranOutput)
        return self.output.lines.get(directive.start, [])

    def name(self, kind: str) -> str:
        """A name for a function of C, which no other file of the program has."""
        return self.output.new_name(f"{self.prefix}_{kind}").replace("__", "_")

    def array_at(self, name: str, scope: Scope) -> DistributedArray | None:
        """The distributed array that a name, or `variable%component`, means in a scope."""
        declared = self.fortran.entity("".join(name.split()).lower(), scope)
        return self.scopes.of_variable(self.fortran.variable_of(*declared)) if declared else None

    def array_named(self, words: list[Word], at: int, scope: Scope) -> tuple[DistributedArray | None, int]:
        """The distributed array that a word names, alone or with the component behind it; and the number of
        the last word of its name.
        """
        if words[at].kind != "name" or (at and words[at - 1].text == "%"):
            return None, at
        if at + 2 < len(words) and words[at + 1].text == "%":
            array = self.array_at(f"{words[at].text}%{words[at + 2].text}", scope)
            return array, at + 2 if array else at
        return self.array_at(words[at].text, scope), at

    def scope_of(self, directive: d.Directive) -> Scope:
        """The program unit or procedure that a directive is in."""
        scope = self.function_of(directive)
        assert isinstance(scope, Scope)
        return scope

    def number_of(self, directive: d.Directive) -> int:
        """The number of the logical line that a directive is."""
        return self.reads[id(directive)].number

    def declare(self, directive: d.Directive, kind: str, name: str, end: str = "") -> None:
        """A descriptor, which is one of the file; that of a module is known to files that use it."""
        scope = self.scope_of(directive)
        self.generated.top.append(f"{linkage(scope)}{kind} {name};")

    def set_up(self, directive: d.Directive, text: str) -> None:
        """A call that fills a descriptor, where the scope begins to execute."""
        self.output.put_at(directive.start, [text])

    def statements_behind(self, number: int) -> Iterable[Statement]:
        """The statements of the file behind a logical line, in their order."""
        return (statement for statement in self.structure.statements if statement.number > number)

    def statement_behind(self, directive: d.Directive) -> Statement | None:
        """The statement that comes next behind a directive, in the same scope."""
        number = self.number_of(directive)
        scope = self.scope_of(directive)
        statement = next(iter(self.statements_behind(number)), None)
        return statement if statement and statement.scope is scope and statement.number < scope.end else None
