"""Slurm's commands as scripts on the PATH: they answer from a file, and record how they were called."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ANSWERS = """#!/bin/sh
[ -e {folder}/down ] && {{ echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }}
cat {folder}/jobs.json
"""
CHANGES = """#!/bin/sh
echo {name} "$@" >> {folder}/calls
[ -e {folder}/refuses ] && {{ cat {folder}/refuses >&2; exit 1; }}
exit 0
"""


class FakeSlurm:
    """What squeue and sacct answer, and how scontrol, scancel and sacctmgr were called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "slurm"
        self.folder.mkdir()
        for name in ("squeue", "sacct", "scontrol", "scancel", "sacctmgr"):
            script = ANSWERS if name in ("squeue", "sacct") else CHANGES
            (self.folder / name).write_text(script.format(name=name, folder=self.folder))
            (self.folder / name).chmod(0o755)
        self.jobs: list[dict[str, Any]] = []
        self.answers()
        monkeypatch.setenv("PATH", f"{self.folder}:{os.environ['PATH']}")

    def answers(self, *jobs: dict[str, Any]) -> None:
        """Let squeue and sacct list these jobs from now on."""
        (self.folder / "jobs.json").write_text(json.dumps({"jobs": jobs}))

    def refuse(self, why: str) -> None:
        """Let the commands that change something fail with this text; an empty one ends that."""
        file = self.folder / "refuses"
        file.write_text(why) if why else file.unlink()

    def set_down(self, down: bool) -> None:
        """Let squeue and sacct fail."""
        file = self.folder / "down"
        file.touch() if down else file.unlink()

    def changes(self) -> list[str]:
        """The calls that change something since this was last asked."""
        calls = self.folder / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return lines
