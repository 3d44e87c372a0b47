"""Checks style, types and common mistakes; with --fix, formats the sources instead."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from steps import CORES, ROOT, VENV, main, run, say, show_end

OUT = ROOT / "out" / "lint"
BIN = VENV / "bin"
COMMANDS = ROOT / "build" / "lint"
CPP_SUFFIXES = (".c", ".cpp", ".cu", ".cuh", ".h", ".hpp")


def tracked(*suffixes: str) -> list[str]:
    """The project's files with these suffixes: those git tracks, and new ones it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
            "\0"
        )
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        folders = (
            "library",
            "nic",
            "measure",
            "trace",
            "xacc",
            "jobs",
            "common",
            "apps",
            "tests",
            "examples",
            "scripts",
        )
        names = [str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")]
    return sorted(name for name in names if name.endswith(suffixes) and (ROOT / name).is_file())


def list_commands() -> int:
    """Let CMake write how each file is compiled alone, unlike in the unity build. Nothing is built."""
    command = ["cmake", "-S", ROOT, "-B", COMMANDS, "-G", "Ninja", f"-DPython_EXECUTABLE={BIN / 'python'}"]
    settings = ["-DPEERWAY_PYTHON=OFF", "-DCMAKE_UNITY_BUILD=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"]
    return run("list what clang-tidy reads", [*command, *settings], OUT / "commands.log")


def clang_tidy() -> int:
    """Run clang-tidy, a few files at a time. Returns the number of files with findings."""
    if list_commands() != 0:
        show_end(OUT / "commands.log")
        return 1
    files = [name for name in tracked(".cpp") if re.match("library/src/|nic/(?!tests/)", name)]
    with ThreadPoolExecutor(max_workers=CORES) as pool:
        results = list(pool.map(tidy_one, files))
    (OUT / "clang-tidy.log").write_text("".join(text for _, text in results))
    return sum(status != 0 for status, _ in results)


def tidy_one(name: str) -> tuple[int, str]:
    """Run clang-tidy on one source file; returns its status and output."""
    command = [str(BIN / "clang-tidy"), "-p", str(COMMANDS), "--quiet", f"--extra-arg=-I{ROOT}", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def fix() -> int:
    """Format everything in place."""
    run("ruff check --fix", [BIN / "ruff", "check", "--fix", "."], OUT / "ruff.log")
    run("ruff format", [BIN / "ruff", "format", "."], OUT / "ruff-format.log")
    return run(
        "clang-format", [BIN / "clang-format", "-i", *tracked(*CPP_SUFFIXES)], OUT / "clang-format.log"
    )


def lint() -> int:
    """Run every check, show what each found, and sum up."""
    OUT.mkdir(parents=True, exist_ok=True)
    if "--fix" in sys.argv[1:]:
        return fix()
    say("lint:")
    checks: dict[str, list[str | Path]] = {
        "ruff": [BIN / "ruff", "check", "--output-format=concise", "."],
        "ruff-format": [BIN / "ruff", "format", "--check", "."],
        "mypy": [BIN / "mypy"],
        "clang-format": [BIN / "clang-format", "--dry-run", "-Werror", *tracked(*CPP_SUFFIXES)],
        "class-names": [BIN / "python", ROOT / "scripts" / "class_names.py"],
        "names": [BIN / "python", ROOT / "scripts" / "names.py"],
        "clang-tidy": [BIN / "python", __file__, "--tidy"],
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
    main(clang_tidy if "--tidy" in sys.argv[1:] else lint)
