"""The peer compiler's own Fortran tests through `peerway fc`: a line of the record for each program.

    python xacc/tests/shared/fc_peers.py omni-compiler/tests FILE... > results/xacc/fortran-peers.jsonl

Each program runs on as many processes as the Makefile beside it says, else on 4, 16, 8 or 2. `checks` says
whether a program looks at its results at all; one that does not has passed when it ends without an error. A
module that is in another file of the folder is compiled with the program.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

PEERWAY = Path(sys.executable).with_name("peerway")
_TOO_FEW = re.compile(r"start more|start another|does not divide")
_WRONG = re.compile(r"ERROR|\bNG\b|FAIL|invalid result", re.IGNORECASE)
_CHECKED = re.compile(r"error|\bNG\b|\bOK\b|pass|fail|invalid|\bstop\b|chk_", re.IGNORECASE)
_ABSENT = re.compile(r"Cannot open module file .(\w+)\.mod")
_SECONDS = 300  # after which a program hangs


def nodes_for(program: Path) -> list[int]:
    """The numbers of processes to try, the Makefile's alone if it names one."""
    makefile = program.parent / "Makefile"
    text = makefile.read_text(errors="replace") if makefile.exists() else ""
    of_all = re.search(r"^NPE\s*=\s*(\d+)", text, re.MULTILINE)
    match = re.search(rf"-np?\s+(\d+)[^\n]*[/ ]{re.escape(program.stem)}\.x", text) or of_all
    return [int(match[1])] if match else [4, 16, 8, 2]


def _with_module(program: Path, name: str) -> str | None:
    """The file beside a program that defines a module; None without one."""
    defines = re.compile(rf"^\s*module\s+{name}\s*$", re.IGNORECASE | re.MULTILINE)
    beside = [path for path in sorted(program.parent.glob("*.[fF]90")) if path != program]
    found = [path for path in beside if defines.search(path.read_text(errors="replace"))]
    named = [path for path in found if path.stem[:3] == program.stem[:3]]
    return str((named or found)[0]) if found else None


def outcome(program: Path, options: list[str], folder: Path) -> dict[str, object]:
    """Compile and run one program: passed, failed, refused (by peerway fc) or not Fortran (for gfortran)."""
    check = program.parent / "chk" / "chk.f90"
    more = [str(check)] if check.exists() and "chk_" in program.read_text(errors="replace") else []
    first: list[str] = []
    while True:
        words = [PEERWAY, "fc", "-cpp", *options, *first, str(program), *more, "-o", str(folder / "made")]
        compilation = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        module = _ABSENT.search(compilation.stderr)
        beside = _with_module(program, module[1]) if module else None
        if beside is None or beside in first:
            break
        first.insert(0, beside)
    if compilation.returncode:
        ours = re.search(r"^\S+:\d+:\d+: error: (.*)", compilation.stderr, re.MULTILINE)
        theirs = re.search(r"^(?:Fatal )?Error: (.*)", compilation.stderr, re.MULTILINE)
        missing = re.search(r"undefined reference to (.*)", compilation.stderr)
        reason = ours or theirs or missing
        state = "refused" if ours else "not compiled by gfortran" if theirs else "not linked"
        if missing and "main" in missing[1]:
            return {"outcome": "part of a program"}
        return {"outcome": state, "reason": reason[1] if reason else compilation.stderr[-200:]}
    done, nodes = None, 0
    for nodes in nodes_for(program):
        run = [PEERWAY, "run", "-n", str(nodes), "--", str(folder / "made")]
        settings = {**os.environ, "PEERWAY_WAIT": "blocking", "PEERWAY_ACC": "host", "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                run, cwd=folder, env=settings, capture_output=True, text=True, check=False, timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"outcome": "failed", "nodes": nodes, "reason": f"still runs after {_SECONDS} s"}
        if not _TOO_FEW.search(done.stderr):
            break
    assert done is not None
    text = done.stdout + done.stderr
    right = done.returncode == 0 and not _WRONG.search(text)
    reason = "" if right else next((line for line in text.splitlines() if line.strip()), "")[:200]
    return {
        "outcome": "passed" if right else "failed",
        "nodes": nodes,
        **({"reason": reason} if reason else {}),
    }


def main(tests: str, *words: str) -> None:
    """Print the record of these programs; words that begin with `-` are options of peerway fc."""
    options = [word for word in words if word.startswith("-")]
    root = Path(tests).resolve()
    for word in words:
        if word in options:
            continue
        program = Path(word).resolve()
        with tempfile.TemporaryDirectory() as folder:
            facts = outcome(program, options, Path(folder))
        command = " ".join(["peerway fc -cpp", *options])
        facts = {
            "program": str(program.relative_to(root)),
            **facts,
            "checks": bool(_CHECKED.search(program.read_text(errors="replace"))),
            "command": command,
            "date": str(date.today()),
        }
        for name, value in facts.items():
            facts[name] = str(value).replace(f"{root}/", "") if isinstance(value, str) else value
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
