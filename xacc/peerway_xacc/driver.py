"""Runs `peerway cc`: translates each source file, has the C compiler compile the results, and links them.

The generated C is the user's text with edits. A directive asks for edits of ranges of the original; all other
text stays as it is, so errors of the C compiler name the user's lines. We never print C from a syntax tree.

For each source file, `translate` runs the phases in this order:

frontend   returns a Parsed: directives (the classes of frontend/directives.py) and the syntax as objects;
analysis   works on a Mapped: a Parsed with its nodes, templates and distributed arrays;
lowering   writes the Output of a Unit, which is a Mapped with what lowering knows of loops and data;
codegen    adds the kernels of compute constructs to it, and the calls that launch them.

The result is a Translated: the text, and what --explain shows. Errors of the program are collected in one
Diagnostics, so a run shows several.

No output appears before it is complete: each is written to a temporary file beside it, and renamed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from peerway_common import atomic_file
from peerway_xacc.analysis.explained_paths import Paths
from peerway_xacc.command_line import Command
from peerway_xacc.frontend.characters import readable, to_bytes
from peerway_xacc.frontend.diagnostics import Diagnostics, HasErrors, Place
from peerway_xacc.frontend.preprocess import CompilerFailed, started
from peerway_xacc.installed import prefix
from peerway_xacc.translate import Translated, translate

MACROS = ("-D_XCALABLEMP=201411", "-D_XCALABLEACC=201706", "-D_OPENACC=201711")
_FOLDER = re.compile(r"^ (/.*?)(?: \(framework directory\))?$", re.MULTILINE)


def run(command: Command) -> int:
    """Run the command and return its exit code.

    Errors of the program are printed as a compiler prints them.
    """
    try:
        return _run(command)
    except CompilerFailed as failed:
        sys.stderr.write(str(failed))
        return failed.status
    except OSError as wrong:  # a file cannot be read or written
        sys.stderr.write(f"peerway cc: error: {wrong.filename}: {wrong.strerror}\n")
        return 1


def _run(command: Command) -> int:
    diagnostics = Diagnostics()
    translated: dict[str, Translated] = {}
    folders = system_folders(command)
    for source in command.sources:
        with contextlib.suppress(HasErrors):
            translated[source] = translated_file(command, source, folders, diagnostics)
    sys.stderr.write(diagnostics.text())
    if diagnostics:
        return 1
    if command.explain:
        _explain(translated)
    if command.emit is not None:
        return _emit(command, translated)
    if command.explain and command.output is None and not command.stage:
        return 0
    with tempfile.TemporaryDirectory(prefix="peerway-cc-") as folder:
        return _build(command, translated, Path(folder))


def _explain(translated: dict[str, Translated]) -> None:
    """Print what was generated for each directive, and by which path its data is sent."""
    paths = Paths([communication for unit in translated.values() for _, communication in unit.communications])
    for source, unit in translated.items():
        sent = [(place, paths.text(communication)) for place, communication in unit.communications]
        for place, text in sorted([*unit.explained, *sent], key=lambda line: _order(source, line[0])):
            print(readable(f"{place.file}:{place.line}: {text}"))
    if paths.note:
        print(f"note: {paths.note}")


def _order(source: str, place: Place) -> tuple[bool, str, int]:
    """Sort key: headers first, then the lines of the source file."""
    return place.file == source, place.file, place.line


def _includes(command: Command) -> list[str]:
    """The options for the folders of xmp.h, mpi.h and, if we translate the acc directives, our openacc.h."""
    include = prefix() / "include"
    headers = include / "peerway" / ("xmp" if command.openacc else "xacc")
    own_mpi = include / "peerway" / "xacc" / "mpi"  # last, for systems without an mpi.h
    return ["-I", str(headers), "-I", str(include), "-idirafter", str(own_mpi)]


def translated_file(
    command: Command, source: str, folders: list[str], diagnostics: Diagnostics
) -> Translated:
    """Translate one source file. `folders` are those of the compiler's headers."""
    preprocessor = [*command.compiler, *command.parallel, *MACROS, *command.compiling(), *_includes(command)]
    arguments = [
        "-xc", "-nostdinc", "-fno-builtin", "-w", "-ferror-limit=0", "-Wno-implicit-function-declaration",
        "-Wno-implicit-int", "-Wno-int-conversion", "-Wno-incompatible-function-pointer-types",
        "-D_OPENMP=201511", *MACROS, *command.for_libclang(), *_includes(command),
        *(f"-isystem{folder}" for folder in folders),
    ]  # fmt: skip
    return translate(source, preprocessor, arguments, diagnostics, bool(command.openacc))


def system_folders(command: Command) -> list[str]:
    """The folders in which the C compiler looks for <…>, so that libclang reads the same headers."""
    done = started([*command.compiler, "-xc", "-E", "-v", os.devnull], LC_ALL="C")
    text = done.stderr.decode(errors="replace")
    if done.returncode:
        raise CompilerFailed(text, done.returncode)
    behind = text.partition("#include <...> search starts here:")[2]
    return _FOLDER.findall(behind.partition("End of search list.")[0])


def _emit(command: Command, translated: dict[str, Translated]) -> int:
    text = "".join(unit.text for unit in translated.values())
    if command.emit == "-":
        sys.stdout.buffer.write(to_bytes(text))
        return 0
    assert command.emit is not None
    try:
        with atomic_file.draft(Path(command.emit)) as file:
            file.write_bytes(to_bytes(text))
    except OSError as error:
        sys.stderr.write(f"peerway: cannot write {command.emit}: {error.strerror}\n")
        return 1
    return 0


def compilation_of(command: Command, source: str) -> list[str]:
    """The compiler and the options that a file's generated text needs."""
    return [
        *command.compiler, *command.parallel, "-Wno-unknown-pragmas", *MACROS, "-iquote",
        str(Path(source).parent), *command.compiling(), *_includes(command),
    ]  # fmt: skip


def _build(command: Command, translated: dict[str, Translated], folder: Path) -> int:
    objects = []
    for number, (source, unit) in enumerate(translated.items()):
        generated = folder / f"{number}" / Path(source).name
        generated.parent.mkdir()
        generated.write_bytes(to_bytes(unit.text))
        compilation = compilation_of(command, source)
        if command.stage:
            output = command.output or Path(source).with_suffix(".o" if command.stage == "-c" else ".s").name
            with atomic_file.draft(Path(output)) as draft:
                status = subprocess.call([*compilation, command.stage, str(generated), "-o", draft])
        else:
            objects.append(str(folder / f"{number}" / "unit.o"))
            status = subprocess.call([*compilation, "-c", str(generated), "-o", objects[-1]])
        if status:
            return status
    return 0 if command.stage else _link(command, objects)


def _link(command: Command, objects: list[str]) -> int:
    library = prefix() / "lib"
    first = ["-lgomp"] if command.openacc and "-fopenacc" in command.parallel else []  # its acc_… before ours
    with atomic_file.draft(Path(command.output or "a.out")) as draft:
        return subprocess.call([
            *command.compiler, *command.parallel, *objects, *command.others, *command.linking(),
            f"-L{library}", f"-Wl,-rpath,{library}", *first, "-lpeerway_xacc", "-lpeerway",
            *_atomics(command.compiler), "-o", draft,
        ])  # fmt: skip


def _atomics(compiler: list[str]) -> list[str]:
    """The linker option for libatomic, if the compiler has that library; it holds the larger atomics.

    clang calls it where threads combine a long double or a complex number; gcc's OpenMP has such calls
    itself. The linker leaves it out of programs that do not need it.
    """
    answer = started([*compiler, "-print-file-name=libatomic.so"]).stdout.decode(errors="replace").strip()
    # If the compiler has no such file, or does not know the option, its answer is no absolute path.
    return ["-Wl,--push-state,--as-needed,-latomic,--pop-state"] if answer.startswith("/") else []
