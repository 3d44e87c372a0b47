"""Collects what lowering and code generation write: edits of the program's text, and text around it."""

from __future__ import annotations

from collections.abc import Iterable

from peerway_xacc.analysis.explained_paths import Communication
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.tokens import Text, quoted


class Output:
    """The generated file."""

    def __init__(self, file: str, text: Text) -> None:
        self._text = text
        self.edits = Edits(text)
        self.top: list[str] = []  # declarations before the program's first one
        self.setup: list[str] = []  # calls before main
        self.setup_last: list[str] = []  # calls after all of `setup`
        self.when_fixed: dict[int, list[str]] = {}  # calls when a template is fixed, by its id()
        self.ending = ""  # text after the program's
        self.placed: set[int] = set()  # starts of directives whose lines are in the edits already
        self.on_gpu = False  # the text has calls for a GPU
        self.has_zero = False  # a data clause has the modifier zero
        self.one_sided = False  # a gmove in or out reaches arrays of nodes that do not execute it
        self.has_loops = False  # loops of the host are written for the GPU, too
        self.halo_plans = 0  # the number of halo plans explained so far
        self.explained: list[tuple[Place, str]] = []
        self.communications: list[tuple[Place, Communication]] = []
        self._file = file
        self._lines: dict[int, list[str]] = {}
        self._names = 0

    def new_name(self, stem: str) -> str:
        """A name that no other generated object has."""
        self._names += 1
        return f"{stem}__{self._names}"

    def put_at(self, start: int, lines: list[str]) -> None:
        """Put lines in the place of the directive that begins at an offset."""
        self._lines.setdefault(start, []).extend(lines)

    def finish(self, directives: Iterable[d.Directive]) -> str:
        """The text with all edits."""
        for directive in directives:
            own = directive.file == self._file and not isinstance(directive, d.Omp)
            if own and directive.start not in self.placed:
                self.edits.directive(directive.start, directive.end, self._lines.get(directive.start, []))
        for end in self._text.insertions:
            self.edits.next_to(end, f"\n#line {self._text.line_of(end)} {quoted(self._file)}\n")
        line = f"#line 1 {quoted(self._file)}\n"
        return line + self.edits.text() + self.ending
