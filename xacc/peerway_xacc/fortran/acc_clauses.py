"""The directives of OpenACC in Fortran: their words as a construct with clauses, and which line ends each."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.fortran.grammar import place_of
from peerway_xacc.fortran.source import FortranText, Logical
from peerway_xacc.fortran.words import Word, closing, split, words_of
from peerway_xacc.frontend import grammar_acc
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.parser import hint

_SECOND = {
    "parallel": ("loop",), "kernels": ("loop",), "serial": ("loop",), "enter": ("data",), "exit": ("data",),
    "end": (),
}  # fmt: skip
_ENDED = ("data", "host_data", "parallel", "kernels", "serial", "atomic",
          "parallel loop", "kernels loop", "serial loop")  # fmt: skip
OPERATORS = {
    "+": "+", "*": "*", "max": "max", "min": "min", ".and.": "&&", ".or.": "||", "iand": "&", "ior": "|",
    "ieor": "^",
}  # fmt: skip
COMPUTE = ("parallel", "kernels", "serial")


@dataclass(frozen=True)
class Item:
    """A variable in a clause, with the words of each dimension of its section; None without a section."""

    word: Word
    section: tuple[tuple[Word, ...], ...] | None = None


@dataclass(frozen=True)
class AccClause:
    """A clause: its words in parentheses; None without parentheses. A reduction has its operator of C."""

    name: str
    word: Word
    words: tuple[Word, ...] | None = None
    operator: str = ""
    modifier: str = ""

    @property
    def items(self) -> list[Item]:
        """The variables that it names."""
        items = []
        for part in split(list(self.words or ()), ","):
            if not part:
                continue
            if part[0].kind != "name":
                raise Refused(part[0].place, f"expected the name of a variable, found '{part[0].text}'")
            section = None
            if len(part) > 1 and part[1].kind == "component":
                message = "a component in a clause of acc must be an array that is allocatable, a pointer or "
                raise Refused(part[0].place, f"{message}distributed; name the variable '{part[0].text}'")
            if len(part) > 1:
                if part[1].text != "(" or closing(part, 1) != len(part) - 1:
                    raise Refused(part[1].place, f"expected a section of '{part[0].text}', as (1:n)")
                section = tuple(tuple(bound) for bound in split(part[2:-1], ","))
            items.append(Item(part[0], section))
        return items


@dataclass
class AccDirective:
    """A directive of acc."""

    construct: str
    clauses: list[AccClause]
    place: Place
    number: int  # of its logical line
    is_end: bool = False
    words: list[Word] = field(default_factory=list)

    def all(self, *names: str) -> list[AccClause]:
        """The clauses with these names."""
        return [clause for clause in self.clauses if clause.name in names]


def read(text: FortranText, logical: Logical, number: int) -> AccDirective:
    """Read a directive. Raises Refused if it is none of OpenACC."""
    words = words_of(text, logical)
    place = text.place(logical.start)
    if not words:
        raise Refused(place, "expected a directive behind !$acc")
    texts = [word.text for word in words]
    if texts[0] == "end" or texts[0] in {f"end{name.replace(' ', '')}" for name in _ENDED}:
        construct = " ".join(texts[1:]) if texts[0] == "end" else texts[0][3:]
        if construct not in (*_ENDED, "loop"):
            raise Refused(words[-1].place, f"there is no 'end {construct}' of acc")
        return AccDirective(construct, [], place_of(words), number, True, words)
    construct, at = texts[0], 1
    if texts[1:2] and texts[1] in _SECOND.get(construct, ()):
        construct, at = f"{construct} {texts[1]}", 2
    if construct not in grammar_acc.GRAMMAR:
        known = grammar_acc.GRAMMAR
        raise Refused(words[0].place, f"unknown directive '{construct}' of acc{hint(construct, known)}")
    directive = AccDirective(construct, [], place_of(words[:at]), number, words=words)
    if construct in ("wait", "cache", "routine") and texts[at : at + 1] == ["("]:
        end = closing(words, at)
        directive.clauses.append(AccClause("queues", words[0], tuple(words[at + 1 : end])))
        at = end + 1
    while at < len(words):
        if words[at].text == ",":
            at += 1
            continue
        clause, at = _clause(words, at, construct)
        directive.clauses.append(clause)
    return directive


def _clause(words: list[Word], at: int, construct: str) -> tuple[AccClause, int]:
    word = words[at]
    allowed = grammar_acc.GRAMMAR[construct].allowed
    if word.text not in allowed:
        raise Refused(word.place, f"'{word.text}' is no clause of acc {construct}{hint(word.text, allowed)}")
    at += 1
    if at >= len(words) or words[at].text != "(":
        return AccClause(word.text, word), at
    end = closing(words, at)
    if words[end].text != ")":
        raise Refused(words[at].place, "this parenthesis is not closed")
    inside = words[at + 1 : end]
    operator = modifier = ""
    if word.text == "reduction":
        if len(inside) < 3 or inside[1].text != ":" or inside[0].text not in OPERATORS:
            known = ", ".join(OPERATORS)
            raise Refused(word.place, f"expected an operator ({known}), a colon and variables")
        operator, inside = OPERATORS[inside[0].text], inside[2:]
    elif len(inside) > 2 and inside[1].text == ":" and inside[0].text in ("readonly", "zero"):
        modifier, inside = inside[0].text, inside[2:]
    return AccClause(word.text, word, tuple(inside), operator, modifier), end + 1
