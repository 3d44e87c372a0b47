"""Run clang-tidy over all C++ but the tests.

    .venv/bin/python scripts/clang_tidy.py

The library and the NIC kit are read file by file, which also shows that each can be compiled alone. The rest
is read as it is built, the sources of a layer or a program together, which takes a third of the time. What
needs MPI, SimGrid or CUDA's headers is left out, and named.
"""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sources import tracked
from steps import CORES, ROOT, VENV, main, must, say

OUT = ROOT / "out" / "lint"
BUILD = ROOT / "build"
BIN = VENV / "bin"
ALONE = re.compile(r"library/src/|nic/(?!tests/)")
PROGRAMS = re.compile(r"(apps|examples|cmake)/")
FOREIGN = re.compile(r"^#include <((?:mpi|simgrid|cuda_runtime)\b[^>]*)>", re.MULTILINE)
# What alone() reads, what is not ours, and tests.
ELSEWHERE = re.compile(r"(library/src|nic|[^/]*/tests|tests)/|.*nanobind")
# What is read together is one file that includes .cpp files.
IN_UNITS = "--checks=-bugprone-suspicious-include"


def list_commands(name: str, *settings: str) -> Path:
    """Let CMake list how the sources are compiled, in a folder of build. Nothing is built."""
    folder = BUILD / name
    command = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython_EXECUTABLE={BIN / 'python'}"]
    command += ["-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", *settings]
    must(f"list what clang-tidy reads in {name}", command, OUT / f"{name}.log")
    return folder


def alone() -> list[list[str]]:
    """Give the arguments for each file of the library and the NIC kit."""
    folder = list_commands("lint", "-DPEERWAY_PYTHON=OFF", "-DCMAKE_UNITY_BUILD=OFF")
    return [["-p", str(folder), name] for name in tracked(".cpp") if ALONE.match(name)]


def units() -> list[list[str]]:
    """Give the arguments for what the build compiles of the rest: a file, or a layer's sources in one."""
    folder = list_commands("lint-units", "-DPEERWAY_PYTHON=ON", "-DCMAKE_UNITY_BUILD=ON")
    files = [Path(entry["file"]) for entry in json.loads((folder / "compile_commands.json").read_text())]
    products = [
        path
        for path in files
        if not ELSEWHERE.match(str(path.relative_to(folder if path.is_relative_to(folder) else ROOT)))
    ]
    return [["-p", str(folder), IN_UNITS, str(path)] for path in products]


def programs() -> list[list[str]]:
    """Give the arguments for each main program, and for the rest of each folder in one."""
    names = [name for name in tracked(".cpp") if PROGRAMS.match(name) and not name.endswith("_test.cpp")]
    texts = {name: (ROOT / name).read_text() for name in names}
    foreign = {name: match[1] for name, text in texts.items() if (match := FOREIGN.search(text))}
    say("not read: " + ", ".join(f"{name} (it includes {header})" for name, header in foreign.items()))
    mains = [name for name in names if "int main(" in texts[name] and name not in foreign]
    rest = sorted({*names} - {*mains} - {*foreign})
    for folder in sorted({Path(name).parent for name in rest}):
        unit = BUILD / "lint-units" / f"{str(folder).replace('/', '_')}.cpp"
        unit.write_text(
            "".join(f'#include "{ROOT / name}"\n' for name in rest if Path(name).parent == folder)
        )
        mains.append(str(unit))
    options = ["--", "-std=c++20", f"-I{ROOT}", f"-I{ROOT / 'library' / 'include'}"]
    return [[IN_UNITS, name, *options] for name in mains]


def read(arguments: list[str]) -> tuple[int, str]:
    """Run clang-tidy on one file; gives its status and output."""
    done = subprocess.run(
        [BIN / "clang-tidy", "--quiet", f"--extra-arg=-I{ROOT}", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def clang_tidy() -> int:
    """Run it, a few files at a time, the longest first. Returns the number of files with findings."""
    with ThreadPoolExecutor(max_workers=CORES) as pool:
        outcomes = list(pool.map(read, [*units(), *programs(), *alone()]))
    (OUT / "clang-tidy.log").write_text("".join(text for _, text in outcomes))
    say(f"{len(outcomes)} files read")
    return sum(status != 0 for status, _ in outcomes)


if __name__ == "__main__":
    main(clang_tidy)
