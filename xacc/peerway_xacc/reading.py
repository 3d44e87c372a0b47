"""Runs the front end on one source file: preprocessor, directives, and the syntax from libclang."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Diagnostics, HasErrors, Refused
from peerway_xacc.frontend.parsed import Parsed, read_directives
from peerway_xacc.frontend.preprocess import Texts, active
from peerway_xacc.frontend.syntax import Syntax
from peerway_xacc.lowering import coarray, descriptors
from peerway_xacc.lowering.sections import hidden, with_some_sizes


@dataclass(frozen=True)
class ParsedWithExtensions:
    """A parsed file, with the parts of its text that are not C: descriptors, coarrays and their transfers."""

    parsed: Parsed
    described: list[descriptors.Described]
    coarrays: list[coarray.Declared]
    transfers: list[coarray.Transfer]


def read(
    texts: Texts,
    file: str,
    preprocessor: list[str],
    arguments: list[str],
    diagnostics: Diagnostics,
    foreign_acc: bool,
) -> ParsedWithExtensions:
    """Parse a file with the front end. Raises HasErrors; the errors are in `diagnostics`.

    `preprocessor` is the C compiler with its options, `arguments` are libclang's.
    """
    try:
        pragmas = active(preprocessor, file, texts)
    except Refused as refused:
        diagnostics.add(refused)
        raise HasErrors from refused
    try:
        text = texts.of(file)
        coarrays, transfers = coarray.find(text)
        described = descriptors.find(text)
        visible = hidden(
            text, pragmas, [*(coarray.mark for coarray in coarrays), *(call.range for call in described)],
            [transfer.statement for transfer in transfers],
        )  # fmt: skip
        for call in described:
            start = call.range.start
            visible = visible[:start] + "0" + visible[start + 1 :]
    except Refused as refused:
        diagnostics.add(refused)
        raise HasErrors from refused
    syntax = Syntax(file, visible, arguments, texts)
    directives = read_directives(pragmas, diagnostics)
    syntax = _sized(directives, syntax, visible, file, arguments, texts)
    syntax.errors(diagnostics)
    if diagnostics:
        raise HasErrors
    parsed = Parsed(file, texts, text, syntax, directives, diagnostics, foreign_acc)
    return ParsedWithExtensions(parsed, described, coarrays, transfers)


def _sized(
    directives: Iterable[d.Directive],
    syntax: Syntax,
    visible: str,
    file: str,
    arguments: list[str],
    texts: Texts,
) -> Syntax:
    """Parse again if an aligned array of the file has a size that is known only at run time.

    Such an array becomes a pointer in the generated text. C does not allow its declaration, and libclang
    tells little about a declaration that it rejects, so libclang gets the array with some constant size.
    """
    text = texts.of(file)
    aligned = {
        name.text for directive in directives if isinstance(directive, d.Align) for name in directive.arrays
    }
    places = [place for place in syntax.sized_at_run_time() if text.word(place) in aligned]
    starts = frozenset(text.line_start(place.line) + place.column - 1 for place in places)
    if not starts:
        return syntax
    for start in starts:
        visible = with_some_sizes(visible, start)
    return Syntax(file, visible, arguments, texts, starts)
