"""Modules of other files: their mapping is read again where they are used.

Beside `m.mod` a file `m.xmp` keeps the specification part of a module, a statement a line: its directives,
and the types and kinds that kernels need to know. Its lines stand before those of a file that uses the
module, and nothing is generated of them there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from peerway_common import atomic_file
from peerway_xacc.fortran.source import Line, marked
from peerway_xacc.fortran.structure import Scope, Structure
from peerway_xacc.frontend.characters import of_bytes, to_bytes
from peerway_xacc.frontend.tokens import quoted

_USE = re.compile(r"^\s*(?:\d+\s+)?use\s*(?:,\s*\w+\s*::|::|\s)\s*(\w+)", re.IGNORECASE)
_MODULE = re.compile(r"^\s*module\s+(\w+)\s*(?:!.*)?$", re.IGNORECASE)
_HEAD = "! The declarations of a module, which peerway fc reads in files that use it."


@dataclass
class Modules:
    """The modules of a command's files, and where those of earlier ones are."""

    folders: list[str]
    known: dict[str, list[Line]] = field(default_factory=dict)

    def before(self, lines: list[Line]) -> list[Line]:
        """What stands before a file: the modules that it uses and does not have, behind those they use."""
        own = {match[1].lower() for line, _, _ in lines if (match := _MODULE.match(line))}
        gathered: dict[str, list[Line]] = {}
        self._gather(lines, own, gathered)
        return [line for part in gathered.values() for line in part]

    def _gather(self, lines: Iterable[Line], own: set[str], gathered: dict[str, list[Line]]) -> None:
        for line, _, _ in lines:
            match = _USE.match(line)
            name = match[1].lower() if match else ""
            if not name or name in own or name in gathered:
                continue
            part = self._of(name)
            if part is not None:
                self._gather(part, {*own, name}, gathered)
                gathered.setdefault(name, part)

    def _of(self, name: str) -> list[Line] | None:
        if name not in self.known:
            path = next(
                (path for folder in self.folders if (path := Path(folder) / f"{name}.xmp").is_file()), None
            )
            if path is None:
                return None
            self.known[name] = list(marked(str(path), of_bytes(path.read_bytes()), preprocessed=True))
        return self.known[name]

    def keep(self, structure: Structure, folder: str) -> list[tuple[Path, bytes]]:
        """Keep the modules of a file. Gives the files for those of later commands."""
        files = []
        for scope in structure.scopes:
            if scope.kind == "module" and not scope.foreign:
                lines = list(_specification(structure, scope))
                self.known[scope.name] = lines
                text = "".join(f"# {number} {quoted(file)}\n{line}\n" for line, file, number in lines)
                files.append((Path(folder) / f"{scope.name}.xmp", to_bytes(f"{_HEAD}\n{text}")))
        return files


def _specification(structure: Structure, scope: Scope) -> Iterable[Line]:
    for logical in structure.logicals[scope.begin : scope.first_executable]:
        file, number = structure.text.origins[logical.first - 1]
        if logical.model in ("", "xmp"):
            yield f"!$xmp {logical.text.strip()}" if logical.model else logical.text, file, number
    file, number = structure.text.origins[structure.logicals[scope.begin].first - 1]
    yield f"end module {scope.name}", file, number


def write(files: Iterable[tuple[Path, bytes]]) -> None:
    """Write what later commands read."""
    for path, data in files:
        with atomic_file.draft(path) as draft:
            draft.write_bytes(data)
