"""`peerway fc`: translates each source file, lets the Fortran compiler make objects, and links them.

An object has the generated Fortran and the C beside it. Nothing is written where the user asked before all is
right.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from peerway_common import atomic_file
from peerway_xacc.command_line import Command
from peerway_xacc.fortran import kernels
from peerway_xacc.fortran.modules import Modules, write
from peerway_xacc.fortran.source import FortranText, form_of, read_lines
from peerway_xacc.fortran.translate import Translated, translate
from peerway_xacc.frontend.characters import readable, to_bytes
from peerway_xacc.frontend.diagnostics import Diagnostics, HasErrors, Refused
from peerway_xacc.frontend.preprocess import CompilerFailed, started
from peerway_xacc.installed import prefix

MACROS = ("-D_XCALABLEMP=201411", "-D_XMP=201411")
_USES_XMP_LIB = re.compile(r"^\s*use\s*(?:,\s*\w+\s*::)?\s*xmp_lib\b", re.IGNORECASE | re.MULTILINE)
_PREPROCESSED = ("-cpp", "-nocpp")


def run(command: Command) -> int:
    """Do what was asked; the exit code. Errors of the program are printed as a compiler does."""
    try:
        return _run(command)
    except CompilerFailed as failed:
        sys.stderr.write(str(failed))
        return failed.status
    except OSError as wrong:  # of a file that cannot be read or written, or a compiler that is not there
        sys.stderr.write(f"peerway fc: error: {wrong.filename}: {wrong.strerror}\n")
        return 1


def _run(command: Command) -> int:
    diagnostics = Diagnostics()
    translated: dict[str, Translated] = {}
    modules = Modules([_module_folder(command), *_folders(command), "."])
    files: list[tuple[Path, bytes]] = []
    on_gpus: dict[str, str] = {}
    for source in command.sources:
        with contextlib.suppress(HasErrors):
            translated[source] = _translate(command, source, modules, diagnostics)
            files += modules.keep(translated[source].structure, _module_folder(command))
            if translated[source].kernels:
                on_gpus[source] = kernels.translated(command, source, translated[source], diagnostics)
    sys.stderr.write(diagnostics.text())
    if diagnostics:
        return 1
    if command.explain:
        _explain(translated)
    if command.emit is not None:
        return _emit(command, translated, on_gpus)
    if command.explain and command.output is None and not command.stage:
        return 0
    with tempfile.TemporaryDirectory(prefix="peerway-fc-") as folder:
        status = _build(command, translated, on_gpus, Path(folder))
    if status == 0:
        write(files)
    return status


def _module_folder(command: Command) -> str:
    """Where the compiler writes modules."""
    words = [words for words in command.options if words[0].startswith("-J")]
    return (words[-1][0][2:] or words[-1][-1]) if words else "."


def _folders(command: Command) -> list[str]:
    """Where the compiler looks for modules and included files."""
    words = [words for words in command.options if words[0].startswith("-I")]
    return [parts[0][2:] or parts[-1] for parts in words]


def _explain(translated: dict[str, Translated]) -> None:
    """Print what was generated for each directive."""
    from peerway_xacc.analysis.explained_paths import Paths

    paths = Paths([communication for unit in translated.values() for _, communication in unit.communications])
    for unit in translated.values():
        sent = [(place, paths.text(communication)) for place, communication in unit.communications]
        for place, text in sorted([*unit.explained, *sent], key=lambda item: item[0]):
            print(readable(f"{place.file}:{place.line}: {text}"))
    if paths.note:
        print(f"note: {paths.note}")


def _options(command: Command) -> list[str]:
    return [word for word in command.compiling() if word not in _PREPROCESSED]


def _translate(command: Command, source: str, modules: Modules, diagnostics: Diagnostics) -> Translated:
    try:
        lines = read_lines(source, _preprocessed(command, source), _folders(command))
    except Refused as refused:
        diagnostics.add(refused)
        raise HasErrors from refused
    text = FortranText(source, lines, modules.before(lines))
    form = form_of(source, command.compiling())
    return translate(source, text, form, diagnostics, bool(command.openacc))


def _preprocessed(command: Command, source: str) -> bytes | None:
    """What the preprocessor makes of a file that asks for it: by a capital in its suffix, or by -cpp."""
    choices = [word for word in command.compiling() if word in _PREPROCESSED]
    if (
        choices[-1] if choices else "-cpp" if Path(source).suffix != Path(source).suffix.lower() else ""
    ) != "-cpp":
        return None
    words = [*command.compiler, *_parallel(command), "-cpp", "-E", *MACROS, *_options(command), source]
    done = started(words, LC_ALL="C")
    if done.returncode:
        raise CompilerFailed(done.stderr.decode(errors="replace"), done.returncode)
    return done.stdout


def _parallel(command: Command) -> list[str]:
    return command.parallel if command.openacc else []


def _emit(command: Command, translated: dict[str, Translated], on_gpus: dict[str, str]) -> int:
    text = "".join(
        f"{unit.fortran}\n! C beside it:\n{unit.companion}"
        + (f"\n! C with kernels:\n{on_gpus[source]}" if source in on_gpus else "")
        for source, unit in translated.items()
    )
    if command.emit == "-":
        sys.stdout.buffer.write(to_bytes(text))
        return 0
    assert command.emit is not None
    with atomic_file.draft(Path(command.emit)) as file:
        file.write_bytes(to_bytes(text))
    return 0


def _build(command: Command, translated: dict[str, Translated], on_gpus: dict[str, str], folder: Path) -> int:
    include = prefix() / "include"
    modules = _xmp_lib(command, folder, include)
    objects: list[str] = []
    for number, (source, unit) in enumerate(translated.items()):
        place = folder / f"{number}"
        place.mkdir()
        fixed = form_of(source, command.compiling()).fixed
        generated = place / f"{Path(source).stem}{'.f' if fixed else '.f90'}"
        generated.write_bytes(to_bytes(unit.fortran))
        compilation = [
            *command.compiler, *_parallel(command), *_options(command), "-I", str(Path(source).parent),
            "-I", str(include / "peerway" / "xacc" / "fortran"), *modules,
        ]  # fmt: skip
        if command.stage == "-S":
            output = command.output or Path(source).with_suffix(".s").name
            with atomic_file.draft(Path(output)) as draft:
                if status := subprocess.call([*compilation, "-S", str(generated), "-o", draft]):
                    return status
            continue
        parts = [str(place / "fortran.o"), str(place / "companion.o")]
        if status := subprocess.call([*compilation, "-c", str(generated), "-o", parts[0]]):
            return status
        (place / "companion.c").write_bytes(to_bytes(unit.companion))
        companion = [*command.compiler, *_parallel(command), "-O2", "-fPIC", "-I", str(include), "-c"]
        if status := subprocess.call([*companion, str(place / "companion.c"), "-o", parts[1]]):
            return status
        if source in on_gpus:
            parts.append(str(place / "kernels.o"))
            if status := kernels.compiled(command, on_gpus[source], source, place, parts[-1]):
                return status
        if command.stage:
            output = command.output or Path(source).with_suffix(".o").name
            with atomic_file.draft(Path(output)) as draft:
                if status := subprocess.call(["ld", "-r", *parts, "-o", str(draft)]):
                    return status
        objects += parts
    return 0 if command.stage else _link(command, objects)


def _xmp_lib(command: Command, folder: Path, include: Path) -> list[str]:
    """The option for the folder with the module xmp_lib, which is made for the compiler that is used."""
    texts = (Path(source).read_bytes().decode(errors="replace") for source in command.sources)
    if not any(_USES_XMP_LIB.search(text) for text in texts):
        return []
    module = include / "peerway" / "xacc" / "fortran" / "xmp_lib.f90"
    words = [*command.compiler, "-fsyntax-only", f"-J{folder}", str(module)]
    done = started(words, LC_ALL="C")
    if done.returncode:
        raise CompilerFailed(done.stderr.decode(errors="replace"), done.returncode)
    return ["-I", str(folder)]


def _link(command: Command, objects: list[str]) -> int:
    library = prefix() / "lib"
    first = ["-lgomp"] if command.openacc and "-fopenacc" in command.parallel else []
    threads = [] if command.openacc else ["-fopenmp"]  # for loops of acc on the cores of a CPU
    with atomic_file.draft(Path(command.output or "a.out")) as draft:
        return subprocess.call([
            *command.compiler, *_parallel(command), *threads, *objects, *command.others, *command.linking(),
            f"-L{library}", f"-Wl,-rpath,{library}", *first, "-lpeerway_xacc", "-lpeerway", "-o", draft,
        ])  # fmt: skip
