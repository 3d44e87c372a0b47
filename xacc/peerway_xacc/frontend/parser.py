"""The parser that the grammars of xmp and acc share: tokens, expressions, references, lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from peerway_common.suggestion import did_you_mean
from peerway_xacc.frontend.clauses import Expr, Name, Ref, Subscript
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.preprocess import Pragma
from peerway_xacc.frontend.tokens import Token

_OPEN = {"(": ")", "[": "]", "{": "}"}
_Item = TypeVar("_Item")


def hint(word: str, known: Iterable[str]) -> str:
    """Suggest the word that was probably meant, or else list all known ones."""
    names = sorted(set(known))
    return did_you_mean(word.lower(), names) or f"; there are {', '.join(names) or 'none'}"


class Parser:
    """Parses the tokens of one directive from left to right."""

    def __init__(self, pragma: Pragma) -> None:
        self._tokens = pragma.tokens
        self._at = 0
        self._model = Token("name", pragma.model, pragma.place)

    def next(self) -> Token | None:
        """The next token, which is not consumed; None at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def here(self) -> Place:
        """The place of the next token; at the end, the place just after the last token."""
        token = self.next()
        if token:
            return token.place
        last = self._tokens[-1] if self._tokens else self._model
        return Place(last.place.file, last.place.line, last.place.column + last.place.length)

    def sees(self, *texts: str) -> bool:
        """Are these the next tokens? Words are compared without regard to case."""
        tokens = self._tokens[self._at : self._at + len(texts)]
        return len(tokens) == len(texts) and all(
            token.text == text or (token.kind == "name" and token.text.lower() == text)
            for token, text in zip(tokens, texts, strict=True)
        )

    def take(self) -> Token:
        """Consume the next token, which must exist."""
        token = self._tokens[self._at]
        self._at += 1
        return token

    def accept(self, text: str) -> bool:
        """Consume the next token if it has this text."""
        if not self.sees(text):
            return False
        self._at += 1
        return True

    def expect(self, text: str, before: str) -> None:
        """Consume the next token, which must have this text; `before` completes the error message."""
        if not self.accept(text):
            raise self.unexpected(f"'{text}' {before}")

    def unexpected(self, wanted: str) -> Refused:
        """The error for a token that cannot come here."""
        token = self.next()
        text = f"found '{token.text}'" if token else "the directive ends here"
        return Refused(self.here(), f"expected {wanted}, {text}")

    def end(self) -> None:
        """Refuse any further token."""
        if self.next():
            raise self.unexpected("the end of the directive")

    def name(self, expected: str) -> Name:
        """Parse an identifier."""
        token = self.next()
        if token is None or token.kind != "name":
            raise self.unexpected(expected)
        self._at += 1
        return Name(token.text, token.place)

    def array(self) -> Name:
        """Parse the name of an array, or of one that is a member of a struct: `a`, `s.a`."""
        name = self.name("the name of an array")
        if self.sees("->"):
            message = "a member that a pointer leads to has no mapping; name the struct itself, as in s.a"
            raise Refused(self.here(), message)
        if not self.accept("."):
            return name
        member = self.name("the name of a member")
        if self.sees(".") or self.sees("->"):
            raise Refused(self.here(), "only members of a variable can be named, not members of members")
        place = name.place
        length = member.place.column + member.place.length - place.column
        return Name(f"{name.text}.{member.text}", Place(place.file, place.line, place.column, length))

    def arrays(self) -> list[Name]:
        """Parse names of arrays, separated by commas."""
        return self.some(self.array)

    def names(self, expected: str) -> list[Name]:
        """Parse identifiers, separated by commas."""
        return self.some(lambda: self.name(expected))

    def some(self, parse_item: Callable[[], _Item]) -> list[_Item]:
        """Parse one or more items, separated by commas."""
        items = [parse_item()]
        while self.accept(","):
            items.append(parse_item())
        return items

    def listed(self, expected: str) -> list[Name]:
        """Parse a list of identifiers in brackets: `(a, b)`."""
        self.expect("(", f"before {expected}")
        names = self.names(expected)
        self.expect(")", f"behind {expected}")
        return names

    def listed_arrays(self) -> list[Name]:
        """Parse a list of arrays in brackets: `(a, s.b)`."""
        self.expect("(", "before the name of an array")
        names = self.arrays()
        self.expect(")", "behind the name of an array")
        return names

    def at_least(self, least: int, expected: str) -> Expr:
        """Parse an expression; if its value is known, it must be at least `least`."""
        expression = self.expr(expected)
        if expression.value is not None and expression.value < least:
            raise Refused(expression.place, f"{expected} must be at least {least}")
        return expression

    def expr(self, expected: str, stops: Sequence[str] = (",", ")", "]", ":")) -> Expr:
        """Parse an expression: all tokens up to one of `stops` outside the expression's brackets."""
        closing: list[str] = []
        choices = 0
        start = self._at
        while token := self.next():
            text = token.text
            if not closing and text in stops and not (text == ":" and choices):
                break
            if text in _OPEN:
                closing.append(_OPEN[text])
            elif closing and text == closing[-1]:
                closing.pop()
            elif text in (")", "]", "}"):
                raise self.unexpected(f"'{closing[-1]}'" if closing else expected)
            elif not closing and text == "?":
                choices += 1
            elif not closing and text == ":":
                choices -= 1
            self._at += 1
        if closing:
            raise self.unexpected(f"'{closing[-1]}'")
        if self._at == start:
            raise self.unexpected(expected)
        return Expr(tuple(self._tokens[start : self._at]))

    def dimensions(self, expected: str, parse_dimension: Callable[[bool], _Item]) -> tuple[list[_Item], bool]:
        """Parse `(1, 2)` or `[2][1]` to a list in Fortran's order; also return whether it was square."""
        if self.sees("["):
            items = []
            while self.accept("["):
                items.append(parse_dimension(True))
                self.expect("]", f"behind a dimension of {expected}")
            return items[::-1], True
        self.expect("(", f"or '[' before the dimensions of {expected}")
        items = self.some(lambda: parse_dimension(False))
        self.expect(")", f"behind the dimensions of {expected}")
        return items, False

    def opens_array(self) -> bool:
        """Do the dimensions of an array come next?"""
        return self.sees("[")

    def array_dimensions(self, expected: str, parse_dimension: Callable[[], _Item]) -> list[_Item]:
        """`[2][1]`: what a directive says of each dimension of an array, in C's order."""
        items = []
        while self.accept("["):
            items.append(parse_dimension())
            self.expect("]", f"behind {expected}")
        if not items:
            raise self.unexpected(f"'[' and {expected} for each dimension of the array")
        return items

    def in_c_order(self, items: list[_Item]) -> list[_Item]:
        """A list with an item for each dimension of an array, as it is written: in C's order."""
        return items

    def ref(self, expected: str) -> Ref:
        """Parse a reference to nodes or to a template, with or without subscripts."""
        name = self.name(expected)
        if not self.sees("(") and not self.sees("["):
            return Ref(name, None)
        subscripts, square = self.dimensions(f"'{name.text}'", self.subscript)
        return Ref(name, tuple(subscripts), square)

    def subscript(self, square: bool) -> Subscript:
        """Parse an index, `*` or a triplet: (first:last:step) or [first:length:step]."""
        place = self.here()
        if self.sees("*") and (self._at + 1 == len(self._tokens) or self._tokens[self._at + 1].text in ",)]"):
            self.take()
            return Subscript(place, star=True)
        first = None if self.sees(":") else self.expr("an index, '*' or a range")
        if not self.accept(":"):
            return Subscript(place, index=first)
        second = None if self._ends() else self.expr("the end of a range")
        step = self.expr("a step") if self.accept(":") and not self._ends() else None
        if second is None or not square:
            return Subscript(place, first=first, last=second.text if second else None, step=step)
        last = f"({first.text if first else 0}) + (({second.text}) - 1)" + (
            f" * ({step.text})" if step else ""
        )
        return Subscript(place, first=first, last=last, step=step)

    def _ends(self) -> bool:
        return any(self.sees(text) for text in (":", ",", ")", "]"))
