"""Refuse names that say nothing of what they hold, in Python and in C and C++.

    python scripts/names.py

In Python these are parameters, attributes, functions and modules, also with underscores before or after them.
Local variables are left to their readers, as there a line above says what they hold. In C and C++ every
identifier counts, and the name of each file.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EMPTY = frozenset(["asked", "found", "left", "made", "one", "said", "told", "what"])
CPP_SUFFIXES = ("c", "cpp", "cu", "cuh", "h", "hpp")
# The number of such names that a folder may still have; it may only shrink. A file counts in its longest
# folder.
ALLOWED_IN_PYTHON = {"library/python/peerway/_arguments": 1, "tests": 1, "xacc/peerway_xacc/fortran": 1}
ALLOWED_IN_CPP: dict[str, int] = {}

# What is no identifier in C or C++: comments, strings, characters, and names of headers.
SKIPPED = re.compile(
    r'//(?:[^\n\\]|\\.)*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'|#[ \t]*include[^\n]*",
    re.DOTALL,
)
# The words, with a type's capital or a member's underscore. Names of the standard library are allowed: what()
# of exceptions, std::left.
WORDS = "|".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in sorted(EMPTY))
IDENTIFIER = re.compile(rf"(?<!\bstd::)\b(?!what\(\))(?:{WORDS})_?\b")


def files(*suffixes: str) -> list[Path]:
    """The files with these suffixes that git tracks, and new ones that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    command += [f"*.{suffix}" for suffix in suffixes]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


def empty_names(path: Path, text: str) -> list[tuple[int, str]]:
    """The line and the text of each empty name in a Python file; line 1 for the module's own name."""
    named = [(1, path.stem)]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.arg):
            named.append((node.lineno, node.arg))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            named.append((node.lineno, node.name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            named.append((node.lineno, node.attr))
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    named.append((field.lineno, field.target.id))
    return [(line, name) for line, name in named if name.strip("_") in EMPTY]


def empty_identifiers(path: Path, text: str) -> list[tuple[int, str]]:
    """The line and the text of each empty name in a C or C++ file; line 1 for the file's own name."""
    empty = [(1, path.stem)] if path.stem in EMPTY else []
    code = SKIPPED.sub(lambda skipped: "\n" * skipped[0].count("\n"), text)
    return empty + [(code.count("\n", 0, word.start()) + 1, word[0]) for word in IDENTIFIER.finditer(code)]


def folder_of(name: str, allowed: dict[str, int]) -> str:
    """The folder in which a file's names count.

    This is "tests" for a test of any product, or the longest folder in `allowed` that contains the file, or
    else the top folder.
    """
    if "tests" in name.split("/"):
        return "tests"
    within = [folder for folder in allowed if name.startswith(f"{folder}/")]
    return max(within, key=len, default=name.partition("/")[0])


def beyond_allowed(names: list[tuple[str, int, str]], allowed: dict[str, int]) -> bool:
    """Print where such names (file, line, name) are, for each folder that has more than its number."""
    by_folder: dict[str, list[str]] = {}
    for name, line, word in names:
        by_folder.setdefault(folder_of(name, allowed), []).append(f"{name}:{line}: {word}")
    excess = {folder: places for folder, places in by_folder.items() if len(places) > allowed.get(folder, 0)}
    for folder, places in sorted(excess.items()):
        print("\n".join(places))
        print(
            f"{folder} has {len(places)} such names, and {allowed.get(folder, 0)} are allowed: "
            "say what each holds"
        )
    return bool(excess)


def main() -> int:
    """Print all empty names beyond the allowed numbers; returns 1 if there are any."""
    status = 0
    for check, suffixes, allowed in (
        (empty_names, ("py",), ALLOWED_IN_PYTHON),
        (empty_identifiers, CPP_SUFFIXES, ALLOWED_IN_CPP),
    ):
        names = [
            (path.relative_to(ROOT).as_posix(), line, word)
            for path in files(*suffixes)
            for line, word in check(path, path.read_text(encoding="utf-8"))
        ]
        status |= beyond_allowed(names, allowed)
    return status


if __name__ == "__main__":
    sys.exit(main())
