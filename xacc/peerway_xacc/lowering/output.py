"""Output of lowering and code generation: edits of the program's text, and what stands around it."""

from __future__ import annotations

from collections.abc import Iterable

from peerway_xacc.analysis.paths import Communication
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.tokens import Text, quoted


class Output:
    """The generated file."""

    def __init__(self, file: str, text: Text) -> None:
        self.edits = Edits(text)
        self.top: list[str] = []  # declarations before the first of the program
        self.setup: list[str] = []  # calls before main
        self.setup_last: list[str] = []  # those that come behind all others
        self.when_fixed: dict[int, list[str]] = {}  # calls when a template is fixed, by its id
        self.ending = ""  # behind the text
        self.placed: set[int] = set()  # starts of directives whose lines stand there already
        self.on_gpu = False  # it has calls for a GPU
        self.has_zero = False  # a data clause has the modifier
        self.one_sided = False  # a gmove in or out reaches arrays of nodes that do not execute it
        self.halo_plans = 0  # of reflects that were explained
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
        """Lines in the place of the directive that begins at an offset."""
        self._lines.setdefault(start, []).extend(lines)

    def finish(self, directives: Iterable[d.Directive]) -> str:
        """The text with all edits."""
        for directive in directives:
            own = directive.file == self._file and not isinstance(directive, d.Omp)
            if own and directive.start not in self.placed:
                self.edits.directive(directive.start, directive.end, self._lines.get(directive.start, []))
        line = f"#line 1 {quoted(self._file)}\n"
        return line + self.edits.text() + self.ending
