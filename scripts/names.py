"""Refuse names that say nothing of what they hold, as parameters, attributes, functions and modules.

    python scripts/names.py

Local variables are left to their readers: there a line above says what they hold.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EMPTY = frozenset(["asked", "found", "left", "made", "one", "said", "told", "what"])
# Folders that still have such names, with how many; a number may only shrink.
ALLOWED: dict[str, int] = {}


def python_files() -> list[Path]:
    """Give the Python files that git tracks, and new ones that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


def empty_names(path: Path, text: str) -> list[tuple[int, str]]:
    """Give the line and the name of each that says nothing; line 1 for the module's own name."""
    empty = [(1, path.stem)] if path.stem in EMPTY else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.arg) and node.arg in EMPTY:
            empty.append((node.lineno, node.arg))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name in EMPTY:
            empty.append((node.lineno, node.name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in EMPTY:
            empty.append((node.lineno, node.attr))
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    empty += [(field.lineno, field.target.id)] if field.target.id in EMPTY else []
    return empty


def main() -> int:
    """Say where such names are, beyond those that are allowed; 1 if there is any."""
    by_folder: dict[str, list[str]] = {}
    for path in python_files():
        name = path.relative_to(ROOT).as_posix()
        for line, word in empty_names(path, path.read_text(encoding="utf-8")):
            folder = "tests" if "tests" in path.parts else name.partition("/")[0]
            by_folder.setdefault(folder, []).append(f"{name}:{line}: {word}")
    status = 0
    for folder, places in sorted(by_folder.items()):
        if len(places) <= ALLOWED.get(folder, 0):
            continue
        status = 1
        print("\n".join(places))
        print(
            f"{folder} has {len(places)} such names, and {ALLOWED.get(folder, 0)} are allowed: "
            "say what each holds"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
