"""Tokens of Fortran: those of one statement or directive, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peerway_xacc.fortran.source import FortranText, Logical
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.tokens import Token

_TOKEN = re.compile(
    r"""(?P<blank>\s+)
      | (?P<text>(?:'(?:''|[^'])*'?)|(?:"(?:""|[^"])*"?))
      | (?P<number>(?:\d+(?:\.(?![a-zA-Z]+\.)\d*)?|\.\d+)(?:[eEdDqQ][+-]?\d+)?(?:_\w+)?)
      | (?P<name>[A-Za-z_\udc80-\udcff$][\w$\udc80-\udcff]*)
      | (?P<mark>\.[A-Za-z]+\.|\*\*|==|/=|<=|>=|=>|.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True)
class Word(Token):
    """A token with its place in the text of its statement; names are in lower case."""

    start: int
    end: int


def words_of(text: FortranText, logical: Logical) -> list[Word]:
    """The tokens of a statement or directive."""
    words = []
    at = 0
    while at < len(logical.text):
        match = _TOKEN.match(logical.text, at)
        assert match is not None, "the last alternative takes any character"
        assert match.lastgroup is not None
        if match.lastgroup != "blank":
            word = match[0] if match.lastgroup == "text" else match[0].lower()
            offset = logical.offsets[at]
            place = text.place(
                offset, min(offset + match.end() - at, text.line_start(text.line_of(offset) + 1))
            )
            words.append(Word(match.lastgroup, word, place, at, match.end()))
        at = match.end()
    return words


def words_in(text: str, place: Place) -> list[Word]:
    """The tokens of a text that stands elsewhere, all with one place."""
    matches = [match for match in _TOKEN.finditer(text.lower()) if match.lastgroup != "blank"]
    return [Word(match.lastgroup or "", match[0], place, match.start(), match.end()) for match in matches]


def closing(words: list[Word], opening: int) -> int:
    """The number of the bracket that closes the one at `opening`; that of the last word if none does."""
    depth = 0
    for number in range(opening, len(words)):
        if words[number].kind == "mark":
            depth += (words[number].text in ("(", "[")) - (words[number].text in (")", "]"))
        if depth == 0:
            return number
    return len(words) - 1


def split(words: list[Word], mark: str) -> list[list[Word]]:
    """The parts of a list between marks that are in no brackets; one empty part of an empty list."""
    parts: list[list[Word]] = [[]]
    depth = 0
    for word in words:
        if word.kind == "mark":
            depth += (word.text in ("(", "[")) - (word.text in (")", "]"))
        if word.text == mark and depth == 0 and word.kind == "mark":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def joined(words: list[Word]) -> list[Word]:
    """The words with each `%` and the name of the component behind it as one word, `%name`."""
    result: list[Word] = []
    for word in words:
        if result and result[-1].text == "%" and word.kind == "name":
            mark = result.pop()
            result.append(Word("component", f"%{word.text}", word.place, mark.start, word.end))
        else:
            result.append(word)
    return result


def written(logical: Logical, words: list[Word]) -> str:
    """What the program has for some tokens in a row; nothing for none."""
    return logical.text[words[0].start : words[-1].end] if words else ""
