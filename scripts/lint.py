"""Checks style, types and common mistakes; with --fix, formats the sources instead."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from sources import tracked
from steps import ROOT, VENV, main, run, say, show_end

OUT = ROOT / "out" / "lint"
BIN = VENV / "bin"
CPP_SUFFIXES = (".c", ".cpp", ".cu", ".cuh", ".h", ".hpp")


def spelled() -> list[str]:
    """The files whose spelling is checked: not records, inputs of fuzzers, and files of others."""
    skipped = re.compile(
        r"results/|(library|nic)/tests/fuzz/corpus/|requirements\.lock$|common/peerway_common/assets/"
    )
    return [name for name in tracked("") if not skipped.match(name)]


def fix() -> int:
    """Format everything in place."""
    run("ruff check --fix", [BIN / "ruff", "check", "--fix", "."], OUT / "ruff.log")
    run("ruff format", [BIN / "ruff", "format", "."], OUT / "ruff-format.log")
    return run(
        "clang-format", [BIN / "clang-format", "-i", *tracked(*CPP_SUFFIXES)], OUT / "clang-format.log"
    )


def lint() -> int:
    """Run every check, show what each found, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="format the sources instead of checking them")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if options.fix:
        return fix()
    say("lint:")
    checks: dict[str, list[str | Path]] = {
        "ruff": [BIN / "ruff", "check", "--output-format=concise", "."],
        "ruff-format": [BIN / "ruff", "format", "--check", "."],
        "mypy": [BIN / "mypy"],
        "clang-format": [BIN / "clang-format", "--dry-run", "-Werror", *tracked(*CPP_SUFFIXES)],
        "class-names": [BIN / "python", ROOT / "scripts" / "class_names.py"],
        "codespell": [BIN / "codespell", *spelled()],
        "names": [BIN / "python", ROOT / "scripts" / "names.py"],
        "clang-tidy": [BIN / "python", ROOT / "scripts" / "clang_tidy.py"],
    }
    failed = []
    for name, command in checks.items():
        log = OUT / f"{name}.log"
        if run(name, command, log if name != "clang-tidy" else OUT / "clang-tidy-run.log") != 0:
            show_end(log)
            failed.append(name)
    summary = f"{len(checks) - len(failed)} passed, {len(failed)} failed, 0 skipped"
    (OUT / "summary").write_text(summary + "\n")
    say(f"lint: {summary}" + (f" ({', '.join(failed)}); logs in out/lint" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    main(lint)
