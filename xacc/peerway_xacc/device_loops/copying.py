"""Copies parts of the program's text to one line: scalars get the names that they have on the device."""

from __future__ import annotations

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops.rewritten import Part
from peerway_xacc.device_loops.stays import StaysOnHost
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Range, Use, Variable
from peerway_xacc.frontend.tokens import Span, closing, quoted, scan, spans


class Copier:
    """Copies text of one function. `names` are the device names of its scalars, by the variable's id()."""

    def __init__(self, unit: Mapped, uses: list[Use], names: dict[int, str]) -> None:
        self.unit = unit
        self.names = names
        self._uses = {use.range.start: use for use in uses}
        self._directives = {directive.start: directive for directive in unit.directives_in()}

    def name_of(self, variable: Variable | None) -> str | None:
        """The name of a variable on the device, or None if it stays on the host."""
        return self.names.get(id(variable)) if variable is not None else None

    def text(self, inside: Range) -> list[Part]:
        """Copy a range, with the directives in it."""
        parts: list[Part] = []
        text = self.unit.text.text
        at = inside.start
        while at < inside.end:
            span = next(iter(spans(text, at, inside.end)), None)
            if span is None:
                break
            directive = self._directives.get(span.start)
            if directive is not None:
                parts.append(self.directive(directive))
                at = directive.end
                continue
            if (
                span.text in ("#", "%:")
                and not text[text.rfind("\n", 0, span.start) + 1 : span.start].strip()
            ):
                raise StaysOnHost(span.start, "a line of the preprocessor is in it")
            parts.append(self.token(span))
            at = span.end
        return parts

    def token(self, span: Span) -> Part:
        """Copy a token, with a blank before it."""
        use = self._uses.get(span.start)
        name = self.name_of(use.variable) if use is not None else None
        if name is not None:
            return Part(f" {name}", span.start)
        return Part(f" {self.unit.text.text[span.start : span.end]}", span.start - 1, copied=span.start > 0)

    def directive(self, directive: d.Directive, without: str = "", more: str = "") -> Part:
        """A directive as _Pragma: without the clause of this name, and with more text at its end.

        A scalar of the device may be named in reductions only, because all else is evaluated on the host.
        """
        written = self._written(directive)
        words: list[str] = []
        number = 0
        clause = ""
        while number < len(written):
            span = written[number]
            if span.kind == "name" and number + 1 < len(written) and written[number + 1].text == "(":
                clause = span.text
                if without and clause == without:
                    number = closing(written, number + 1) + 1
                    continue
            words.append(self._word(directive, span, clause))
            number += 1
        text = " ".join([*words, more]).strip()
        return Part(f" _Pragma({quoted(text)})", directive.start)

    def _written(self, directive: d.Directive) -> list[Span]:
        """The tokens of a directive, from its language on."""
        text = self.unit.text.text
        written = scan(text, directive.start, directive.end)
        if [span.text for span in written[:2]] in (["#", "pragma"], ["%:", "pragma"]):
            return written[2:]
        raise StaysOnHost(directive.start, "a directive in it is written with _Pragma")

    def _word(self, directive: d.Directive, span: Span, clause: str) -> str:
        if span.kind != "name":
            return span.text
        variable = self.unit.syntax.variable(span.text, directive.file, directive.start)
        name = self.name_of(variable)
        if name is None:
            return span.text
        if clause != "reduction":
            raise StaysOnHost(span.start, f"a directive needs '{span.text}' on the host")
        return name
