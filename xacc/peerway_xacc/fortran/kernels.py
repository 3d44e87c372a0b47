"""Lets `peerway cc` translate and compile the C that the acc constructs of a Fortran file became."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from peerway_xacc import driver
from peerway_xacc.command_line import Command
from peerway_xacc.fortran.translate import Translated
from peerway_xacc.frontend.characters import to_bytes
from peerway_xacc.frontend.diagnostics import Diagnostics, HasErrors

_OTHER_KINDS = ("-fdefault-", "-freal-", "-finteger-4-")
_FOR_C = ("-O", "-g", "-m", "-ffast-math", "-ffp-contract", "-funroll", "-w")


def translated(command: Command, source: str, unit: Translated, diagnostics: Diagnostics) -> str:
    """The generated C, with its kernels. Errors and warnings of the C are about the lines of the Fortran."""
    _check_kinds(command, unit, diagnostics)
    with tempfile.TemporaryDirectory(prefix="peerway-fc-") as folder:
        path = Path(folder) / "kernels.c"
        path.write_bytes(to_bytes(unit.kernels))
        of_c = _command(command, str(path))
        own = Diagnostics()
        try:
            made = driver.translated_file(of_c, str(path), driver.system_folders(of_c), own)
        except HasErrors:
            diagnostics.take(own, str(path), source)
            raise
        diagnostics.take(own, str(path), source)
    unit.explained.extend((place.moved(source), text) for place, text in made.explained)
    return made.text.replace(str(path), source)


def _check_kinds(command: Command, unit: Translated, diagnostics: Diagnostics) -> None:
    """Raises HasErrors where an option changes the kinds that declarations and numbers have by default."""
    changed = next((word for word in command.compiling() if word.startswith(_OTHER_KINDS)), None)
    if changed:
        message = (
            f"kernels have the default kinds of Fortran: take {changed} out, and write kinds, as real(8)"
        )
        diagnostics.error(unit.explained[0][0], message)
        raise HasErrors


def compiled(command: Command, text: str, source: str, folder: Path, output: str) -> int:
    """Compile the generated C; the exit code."""
    path = folder / "kernels.c"
    path.write_bytes(to_bytes(text))
    compilation = driver.compilation_of(_command(command, str(path)), source)
    return subprocess.call([*compilation, "-fPIC", "-w", "-c", str(path), "-o", output])


def _command(command: Command, path: str) -> Command:
    """What `peerway cc` would be asked."""
    options = [words for words in command.options if words[0].startswith(_FOR_C)]
    return Command(command.compiler, [path], options=options or [["-O2"]], stage="-c")
