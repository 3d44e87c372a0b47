"""Reads the command line of `peerway cc` or `peerway fc`: a compiler's options, most of which are passed on
unread.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from peerway_common.suggestion import did_you_mean

_TAKE_NEXT = (
    "-o", "-I", "-D", "-U", "-L", "-l", "-include", "-imacros", "-isystem", "-iquote",
    "-idirafter", "-iprefix", "-x", "-MF", "-MT", "-MQ", "-T", "-u", "-z", "-e", "-Xlinker", "-Xassembler",
    "-Xpreprocessor", "-aux-info", "--param", "-B", "-wrapper", "-specs", "-dumpbase", "-dumpdir", "-arch",
    "-isysroot", "-J",
)  # fmt: skip
_FOR_LINKING = ("-l", "-L", "-Wl,", "-shared", "-static", "-rdynamic", "-pie", "-no-pie", "-Xlinker", "-T",
                "-u", "-z", "-e", "-nostartfiles", "-nodefaultlibs", "-nostdlib", "-s")  # fmt: skip
_FOR_LIBCLANG = (
    "-D",
    "-U",
    "-I",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-std=",
    "-fgnu89",
)
_OWN = ("--explain", "--emit", "--openacc-backend")


@dataclass(frozen=True)
class Language:
    """A verb's compiler, the variable that names another one, and how the names of its sources end."""

    verb: str
    name: str
    variable: str
    compiler: str
    suffixes: tuple[str, ...]


C = Language("cc", "C", "CC", "gcc", (".c",))
FORTRAN = Language(
    "fc", "Fortran", "FC", "gfortran",
    (".f90", ".f95", ".f03", ".f08", ".f18", ".f", ".for", ".ftn", ".f77"),
)  # fmt: skip


class BadCommand(Exception):
    """The words of the command line contradict each other, or one is missing."""


@dataclass
class Command:
    """The parsed command line.

    `sources` are the .c files and `others` the remaining files, such as objects; `options` are the C
    compiler's, each with its value if it has one. `stage` is -c, -S or empty (link a program); `emit` is a
    file name, `-` for standard output, or None.
    """

    compiler: list[str]
    sources: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    options: list[list[str]] = field(default_factory=list)
    output: str | None = None
    stage: str = ""
    emit: str | None = None
    explain: bool = False
    openacc: str = ""  # the compiler that handles the acc directives instead of us; empty: peerway cc does

    @property
    def parallel(self) -> list[str]:
        """The compiler's option for OpenMP directives, or for OpenACC ones if it handles these."""
        if not self.openacc:
            return ["-fopenmp"]
        of_nvidia = Path(self.compiler[0]).name.startswith(("nvc", "nvfortran", "pgcc", "pgfortran"))
        return ["-acc" if of_nvidia else "-fopenacc"]

    def compiling(self) -> list[str]:
        """The options that matter when a file is compiled."""
        return [word for option in self.options if not _links(option[0]) for word in option]

    def linking(self) -> list[str]:
        """The options for linking: all of them, since some that matter for compiling matter there, too."""
        return [word for option in self.options for word in option]

    def for_libclang(self) -> list[str]:
        """The options that change what libclang reads: macros, include folders and the C standard."""
        return [word for option in self.options if option[0].startswith(_FOR_LIBCLANG) for word in option]


def _links(word: str) -> bool:
    return word in _FOR_LINKING or word.startswith(("-l", "-L", "-Wl,"))


def read(words: list[str], environment: dict[str, str], language: Language = C) -> Command:
    """Parse the words after the verb. `environment` supplies CC or FC. Raises BadCommand."""
    variable = language.variable
    command = Command(_words_of(variable, environment.get(variable, "")) or [language.compiler])
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--explain":
            command.explain = True
        elif word == "--emit" or word.startswith("--emit="):
            command.emit = word.partition("=")[2] or _emit_file(rest, language)
        elif word == "--openacc-backend" or word.startswith("--openacc-backend="):
            command.openacc = word.partition("=")[2]
            command.compiler = _words_of("--openacc-backend", command.openacc)
            if not command.compiler:
                raise BadCommand(
                    f"--openacc-backend needs a compiler, as in --openacc-backend={language.compiler}"
                )
        elif word in ("-c", "-S"):
            command.stage = word
        elif word == "-E":
            raise BadCommand("-E is not supported; --emit shows the generated source")
        elif word == "-o" or (word.startswith("-o") and len(word) > 2):
            if word == "-o" and not rest:
                raise BadCommand("-o needs the name of a file")
            command.output = word[2:] or rest.pop(0)
        elif word in _TAKE_NEXT:
            if not rest:
                raise BadCommand(f"{word} needs a value after it")
            command.options.append([word, rest.pop(0)])
        elif word.startswith("-") and word != "-":
            _refuse_misspelt(word)
            command.options.append([word])
        elif _is_source(word, language):
            command.sources.append(word)
        else:
            command.others.append(word)
    _check(command, language)
    return command


def _is_source(word: str, language: Language) -> bool:
    """Is a word a source file? A capital in Fortran's suffix asks for the preprocessor; C's is C++."""
    suffix = Path(word).suffix
    return (suffix if language is C else suffix.lower()) in language.suffixes


def _refuse_misspelt(word: str) -> None:
    """Refuse an option of our own that is misspelt, to which the compiler's error gives no hint."""
    if word.startswith("--") and (near := did_you_mean(word.partition("=")[0], _OWN, 0.8)):
        raise BadCommand(f"there is no option {word.partition('=')[0]}{near}")


def _words_of(setting: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as wrong:
        raise BadCommand(f"{setting} is {text!r}, in which a quotation is not closed") from wrong


def _emit_file(rest: list[str], language: Language) -> str:
    """The file name after --emit, or `-`.

    The next word is the name only if at least two of the remaining words are source files: one is to be
    compiled.
    """
    sources = [word for word in rest if _is_source(word, language)]
    if rest and not rest[0].startswith("-") and len(sources) > 1:
        return rest.pop(0)
    return "-"


def _check(command: Command, language: Language) -> None:
    if not command.sources and not command.others:
        words = f"prog{language.suffixes[0]} [options of the {language.name} compiler] -o prog"
        raise BadCommand(f"no source file; usage: peerway {language.verb} {words}")
    for name in (*command.sources, *command.others):
        if not Path(name).exists():
            raise BadCommand(f"{name} does not exist")
    if command.stage and command.output and len(command.sources) > 1:
        raise BadCommand(f"{command.stage} with -o takes one source file, not {len(command.sources)}")
    if command.emit not in (None, "-") and len(command.sources) > 1:
        raise BadCommand("--emit with a file takes one source file")
    if command.output and command.output in command.sources:
        raise BadCommand(f"the output {command.output} is also a source file")
    for output in (command.output, None if command.emit == "-" else command.emit):
        if output and not (folder := Path(output).parent).is_dir():
            raise BadCommand(f"cannot write {output}: there is no folder {folder}")
