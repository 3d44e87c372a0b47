"""Directives of Fortran by the grammars of C: what differs is brackets, operators and expressions.

The value of an expression is computed by the Fortran compiler: generated C gets it as `v[number]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from peerway_xacc.fortran.source import FortranText, Logical
from peerway_xacc.fortran.words import Word, words_of, written
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend import grammar_acc, grammar_xmp
from peerway_xacc.frontend.clauses import Expr, Name
from peerway_xacc.frontend.constant import value_of
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.parser import Parser, hint
from peerway_xacc.frontend.preprocess import Pragma
from peerway_xacc.frontend.tokens import Token

_Item = TypeVar("_Item")
_OPERATORS = {".and.": "&&", ".or.": "||", ".neqv.": "^", "iand": "&", "ior": "|", "ieor": "^"}
_REFUSED = (".eqv.",)
_ENDS = ("task", "tasks")


@dataclass
class Arguments:
    """What a generated function of C is given: expressions of Fortran, as elements of an array."""

    array: str = "v"
    texts: list[str] = field(default_factory=list)

    def c_text(self, fortran: str) -> str:
        """The value of an expression, as C text."""
        if fortran not in self.texts:
            self.texts.append(fortran)
        return f"{self.array}[{self.texts.index(fortran)}]"


@dataclass(frozen=True)
class FortranExpr(Expr):
    """An expression of Fortran in a directive."""

    logical: Logical
    arguments: Arguments

    @property
    def fortran(self) -> str:
        """The expression as it is written."""
        return written(self.logical, [token for token in self.tokens if isinstance(token, Word)])

    @property
    def text(self) -> str:
        """Its value as C text."""
        return str(self.value) if self.value is not None else self.arguments.c_text(self.fortran)

    @property
    def value(self) -> int | None:
        """Its value, if it is a constant that needs no names."""
        texts = [
            token.text.lstrip("0") or "0" if token.text.isdigit() else token.text for token in self.tokens
        ]
        return value_of(texts) if texts else None

    def behind(self, count: int) -> Expr:
        """The expression without its first tokens."""
        return FortranExpr(self.tokens[count:], self.logical, self.arguments)


@dataclass(frozen=True)
class SizesExpr(FortranExpr):
    """The array of sizes of a gblock, which C gets whole."""

    @property
    def text(self) -> str:
        """The array, as C text."""
        return f"pwf_sizes_{self.fortran.lower()}"


class FortranParser(Parser):
    """The tokens of one directive of Fortran."""

    def __init__(self, pragma: Pragma, logical: Logical, arguments: Arguments) -> None:
        super().__init__(pragma)
        self._logical = logical
        self._arguments = arguments

    def expr(self, expected: str, stops: Sequence[str] = (",", ")", "]", ":")) -> Expr:
        """An expression; the value of one that is no constant comes from Fortran."""
        kind = SizesExpr if expected == "the name of an array of sizes" else FortranExpr
        return kind(super().expr(expected, stops).tokens, self._logical, self._arguments)

    def name(self, expected: str) -> Name:
        """An identifier; where a variable is wanted, also an element, a section or a component."""
        name = super().name(expected)
        if expected != "the name of a variable":
            return name
        words = [self._before()]
        while self.sees("(") or self.sees("%"):
            opening = self.take()
            words.append(opening)
            depth = int(opening.text == "(")
            while depth and self.next():
                token = self.take()
                depth += (token.text == "(") - (token.text == ")")
                words.append(token)
            if opening.text == "%":
                words.append(self.take() if self.next() else opening)
        place = Place(name.place.file, name.place.line, name.place.column,
                      words[-1].place.column + words[-1].place.length - name.place.column)  # fmt: skip
        return Name(written(self._logical, [word for word in words if isinstance(word, Word)]), place)

    def _before(self) -> Token:
        return self._tokens[self._at - 1]

    def opens_array(self) -> bool:
        """Do the dimensions of an array come next?"""
        return self.sees("(")

    def array_dimensions(self, expected: str, parse_dimension: Callable[[], _Item]) -> list[_Item]:
        """`(1, 2)`: what a directive says of each dimension of an array, in C's order."""
        if not self.accept("("):
            raise self.unexpected(f"'(' and {expected} for each dimension of the array")
        items = self.some(parse_dimension)
        self.expect(")", f"behind {expected}")
        return items[::-1]

    def in_c_order(self, items: list[_Item]) -> list[_Item]:
        """A list with an item for each dimension of an array, in C's order."""
        return items[::-1]

    def array(self) -> Name:
        """The name of an array."""
        name = self.name("the name of an array")
        if not self.accept("%"):
            return name
        component = self.name("the name of a component")
        if self.sees("%"):
            raise Refused(self.here(), "a component of a component has no mapping")
        place = Place(name.place.file, name.place.line, name.place.column,
                      component.place.column + component.place.length - name.place.column)  # fmt: skip
        return Name(f"{name.text}%{component.text}", place)


@dataclass
class End(d.Directive):
    """`end task`: the construct whose end a directive is."""

    construct: str = ""


@dataclass
class LocalAlias(d.Directive):
    """`local_alias x => a`: another name for a node's part of an array."""

    name: Name | None = None
    array: Name | None = None


@dataclass
class CoarrayOn(d.Directive):
    """`coarray on p :: x, y`: the images of these coarrays are the nodes of p."""

    nodes: Name | None = None
    names: list[Name] = field(default_factory=list)


@dataclass
class ImageOn(d.Directive):
    """`image (p)`: the images of the next statement are the nodes of p."""

    nodes: Name | None = None


@dataclass(frozen=True)
class Read:
    """A directive, and the expressions that it needs."""

    directive: d.Directive
    logical: Logical
    number: int
    arguments: Arguments


def read(text: FortranText, logical: Logical, number: int, shared: Arguments) -> Read:
    """Read a directive of xmp or acc. `shared` has the expressions of the mapping of its program unit."""
    words: list[Word] = words_of(text, logical)
    start, end = logical.offsets[0], logical.offsets[-1] + 1
    place = text.place(start)
    tokens = _tokens(words)
    if not words:
        raise Refused(place, f"expected a directive behind !${logical.model}")
    pragma = Pragma(logical.model, text.file, start, end, place, tuple(tokens))
    if logical.model == "acc":
        base = d.Directive(words[0].place, start, end, text.file)
        return Read(_acc(pragma, base, words), logical, number, Arguments())
    if words[0].text in ("end", *(f"end{kind}" for kind in _ENDS)):
        return Read(_end(pragma, words), logical, number, Arguments())
    if words[0].text in _OF_FORTRAN:
        parser = FortranParser(pragma, logical, Arguments())
        return Read(_OF_FORTRAN[words[0].text](parser, pragma), logical, number, Arguments())
    own = Arguments()
    arguments = shared if words[0].text in _WORDS_OF_MAPPING else own
    directive = grammar_xmp.parse(pragma, FortranParser(pragma, logical, arguments))
    return Read(directive, logical, number, arguments)


_WORDS_OF_MAPPING = ("nodes", "template", "distribute", "align", "shadow", "static_desc")


def _tokens(words: list[Word]) -> list[Token]:
    tokens: list[Token] = []
    for number, word in enumerate(words):
        behind = words[number + 1].text if number + 1 < len(words) else ""
        if word.text in _REFUSED and behind == ":":
            raise Refused(word.place, f"a reduction with {word.text} is not supported yet")
        operator = _OPERATORS.get(word.text) if behind == ":" else None
        tokens.append(Token("mark", operator, word.place) if operator else word)
    return tokens


def _end(pragma: Pragma, words: list[Word]) -> End:
    texts = [word.text for word in words]
    construct = texts[0][3:] if len(texts) == 1 else " ".join(texts[1:])
    if construct not in _ENDS:
        word = words[-1]
        raise Refused(word.place, f"unknown directive '{' '.join(texts)}'{hint(construct, _ENDS)}")
    return End(words[0].place, pragma.start, pragma.end, pragma.file, construct)


def _local_alias(parser: FortranParser, pragma: Pragma) -> LocalAlias:
    word = parser.name("a directive of XcalableMP")
    name = parser.name("the name of a local array")
    parser.expect("=>", "behind the name of a local array")
    array = parser.array()
    parser.end()
    return LocalAlias(
        word.place, pragma.start, pragma.end, pragma.file, name=name, array=array, spelling="xmp local_alias"
    )


def _coarray_on(parser: FortranParser, pragma: Pragma) -> CoarrayOn:
    word = parser.name("a directive of XcalableMP")
    parser.expect("on", "behind coarray")
    nodes = parser.name("the name of nodes")
    parser.expect(":", "of '::' behind the nodes")
    parser.expect(":", "of '::' behind the nodes")
    names = parser.some(lambda: parser.name("the name of a coarray"))
    parser.end()
    return CoarrayOn(
        word.place, pragma.start, pragma.end, pragma.file, nodes=nodes, names=names, spelling="xmp coarray"
    )


def _image_on(parser: FortranParser, pragma: Pragma) -> ImageOn:
    word = parser.name("a directive of XcalableMP")
    parser.expect("(", "behind image")
    nodes = parser.name("the name of nodes")
    parser.expect(")", "behind the nodes")
    parser.end()
    return ImageOn(word.place, pragma.start, pragma.end, pragma.file, nodes=nodes, spelling="xmp image")


_OF_FORTRAN: dict[str, Callable[[FortranParser, Pragma], d.Directive]] = {
    "local_alias": _local_alias, "coarray": _coarray_on, "image": _image_on,
}  # fmt: skip


def _acc(pragma: Pragma, base: d.Directive, words: list[Word]) -> d.Acc:
    """A directive of OpenACC, which another compiler reads: only its name is looked at."""
    construct = words[0].text
    known = {name.split()[0] for name in grammar_acc.GRAMMAR} | {"end"}
    if construct not in known:
        raise Refused(words[0].place, f"unknown directive '{construct}' of acc{hint(construct, known)}")
    return d.Acc(
        base.place, base.start, base.end, base.file, tuple(pragma.tokens), spelling=f"acc {construct}"
    )


def place_of(words: list[Word]) -> Place:
    """The place of some tokens in a row."""
    first, last = words[0].place, words[-1].place
    if first.line != last.line:
        return first
    return Place(first.file, first.line, first.column, last.column + last.length - first.column)
