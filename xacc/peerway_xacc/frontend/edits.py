"""Edits a source text by ranges of the original; text that no edit names stays as the user wrote it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peerway_xacc.frontend.tokens import Text, quoted


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    order: int
    text: str


class Edits:
    """The edits of one text."""

    def __init__(self, source: Text) -> None:
        self.source = source
        self._edits: list[_Edit] = []
        self._replaced: dict[tuple[int, int], str] = {}
        self._insertions = 0

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a range by a text. The same replacement of the same range twice counts once."""
        if self._replaced.setdefault((start, end), text) == text and not any(
            edit.start == start and edit.end == end and edit.text == text for edit in self._edits
        ):
            self._edits.append(_Edit(start, end, 0, text))

    def before(self, offset: int, text: str) -> None:
        """Insert a text before what begins at an offset. Of several insertions, the first comes first."""
        self._insertions += 1
        self._edits.append(_Edit(offset, offset, self._insertions, text))

    def behind(self, offset: int, text: str) -> None:
        """Insert a text after what ends at an offset.

        Of several insertions, the last comes first, like brackets.
        """
        self._insertions += 1
        self._edits.append(_Edit(offset, offset, -self._insertions, text))

    def next_to(self, offset: int, text: str) -> None:
        """Insert a text at an offset: after all insertions of `behind` there, and before all of `before`."""
        self._edits.append(_Edit(offset, offset, 0, text))

    def directive(self, start: int, end: int, lines: list[str]) -> None:
        """Put lines in the place of a directive; the text that follows keeps its line number.

        If other text is on the directive's line, as with a _Pragma, the lines are separated from it by
        newlines.
        """
        source = self.source
        newlines = source.text.count("\n", start, end)
        line = source.line_of(start)
        if lines and (start > source.line_start(line) or source.text[end : end + 1] not in ("\n", "")):
            line = source.place(end).line
            self.replace(start, end, "\n".join(["", *lines, f"#line {line} {quoted(source.file)}", ""]))
            return
        if not lines:
            self.replace(start, end, "\n" * newlines)
            return
        body = "\n".join(lines)
        if newlines == len(lines) - 1:
            self.replace(start, end, body)
        else:
            self.replace(start, end, f"{body}\n#line {line + newlines + 1} {quoted(source.file)}")

    def rewrite(self, start: int, end: int, change: Callable[[str], str]) -> None:
        """Replace a range by what `change` makes of its edited text. Insertions at its ends stay."""
        inner = [
            edit
            for edit in self._edits
            if start <= edit.start
            and edit.end <= end
            and (edit.start, edit.end) not in ((start, start), (end, end))
        ]
        outer = [edit for edit in self._edits if edit not in inner]
        self._edits = inner
        text = change(self.part(start, end))
        self._edits = outer
        self.replace(start, end, text)

    def text(self) -> str:
        """The edited text."""
        return self.part(0, len(self.source.text))

    def part(self, start: int, end: int) -> str:
        """The edited text of a range of the original."""
        out = []
        at = start
        for edit in sorted(self._edits, key=lambda edit: (edit.start, edit.end > edit.start, edit.order)):
            if edit.start < start or edit.end > end:
                continue
            assert edit.start >= at, "two edits of one place"
            out += [self.source.text[at : edit.start], edit.text]
            at = edit.end
        out.append(self.source.text[at:end])
        return "".join(out)
