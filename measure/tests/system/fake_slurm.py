"""Slurm's commands as a campaign uses them, for what no real controller does on demand: silence, and nodes in
any state. `install` puts them into a folder for PATH; they keep their state in files beside them:

    nodes       NODE STATE lines, as sinfo tells them (or NODE GRES); jobs wait for what is not idle or mixed
    silent      while it is there, no controller answers
    hangs       while it is there, sbatch submits and then says nothing
    jobs/N      a job in the queue: its state, node, comment and command
"""

from __future__ import annotations

import shlex
import stat
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("sbatch", "squeue", "sinfo", "scancel")


def install(folder: Path, nodes: dict[str, str]) -> Path:
    """Write the commands into a folder, which must come first in PATH."""
    (folder / "jobs").mkdir(parents=True)
    for name in PROGRAMS:
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nexec {shlex.join([sys.executable, __file__, name, str(folder)])} "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    tell(folder, nodes)
    return folder


def tell(folder: Path, nodes: dict[str, str]) -> None:
    """Set what sinfo reports from now on."""
    draft = folder / "nodes.new"
    draft.write_text("".join(f"{name} {state}\n" for name, state in nodes.items()))
    draft.replace(folder / "nodes")


def _nodes(folder: Path) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in (folder / "nodes").read_text().splitlines())


def sbatch(folder: Path, words: list[str]) -> None:
    options = dict(word[2:].split("=", 1) for word in words if "=" in word)
    nodes = [_nodes(folder)[name] for name in options["nodelist"].split(",")]
    state = "RUNNING" if {*nodes} <= {"idle", "mixed"} else "PENDING"
    with (folder / "submitted").open("a") as log:
        number = log.tell() + 1  # grows with each job
        job = folder / "jobs" / str(number)
        draft = folder / f"job.{number}"
        draft.write_text("\n".join([state, options["nodelist"], options["comment"], options["wrap"]]))
        draft.replace(job)  # atomically, because others read it
        # Only now, because a process that waits for the job's end must not find that the job does not exist
        # yet.
        log.write(options["nodelist"] + "\n")
    if state == "RUNNING":
        script = f"({options['wrap']}) >{options['output'].replace('%%', '%')} 2>&1; rm {job}"
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen(["sh", "-c", script], start_new_session=True, **quiet)
    while (folder / "hangs").exists():
        time.sleep(0.05)
    print(number)


def squeue(folder: Path, _: list[str]) -> None:
    for job in (folder / "jobs").iterdir():
        try:
            state, _node, comment, _wrap = job.read_text().split("\n", 3)
        except FileNotFoundError:
            continue
        print(f"{job.name}|{state}|{comment}")


def scancel(folder: Path, words: list[str]) -> None:
    job = folder / "jobs" / words[-1]
    if job.exists() and job.read_text().startswith("PENDING"):
        job.unlink()


def sinfo(folder: Path, words: list[str]) -> None:
    if "--format=%C" in words:
        print("0/4/0/4")
        return
    for name, told in _nodes(folder).items():
        print(f"{name}|partition|features|{told}" if words[-1].endswith("%G") else f"{name}|{told}|none")


if __name__ == "__main__":
    if (Path(sys.argv[2]) / "silent").exists():
        sys.exit(f"{sys.argv[1]}: error: Unable to contact slurm controller (connect failure)")
    {"sbatch": sbatch, "squeue": squeue, "sinfo": sinfo, "scancel": scancel}[sys.argv[1]](
        Path(sys.argv[2]), sys.argv[3:]
    )
