"""The engine gds: moves data between GPU memory and files through KvikIO over NVIDIA's cuFile. It runs in a
process of its own (gds_child.py).

    gds/direct  cuFile alone: fails if GPUDirect Storage cannot be used
    gds/compat  KvikIO's compatibility mode: POSIX calls with a bounce buffer of KvikIO
    gds/bounce  by hand: POSIX calls with pinned host memory, and one copy between it and the GPU
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from dataclasses import asdict

from peerway_measure.storage.engines.base import FileOperation, Outcome
from peerway_measure.storage.operation import OperationFailed, finished


class Gds:
    """One of the three settings."""

    memory = "cuda:0"
    operations = frozenset(("write", "read"))
    takes_direct = False  # the setting decides how files are opened

    def __init__(self, setting: str) -> None:
        self.setting = setting
        self.name = f"gds/{setting}"

    def missing(self) -> str:
        """What to install; "" if nothing is missing."""
        from peerway_measure.bench.machine import gpu_kinds

        if "cuda" not in gpu_kinds():
            return "this machine has no GPU that CUDA can use; `peerway doctor` says why"
        lacking = [name for name in ("kvikio", "cupy") if importlib.util.find_spec(name) is None]
        if lacking:
            return f"{' and '.join(lacking)} not installed: pip install kvikio-cu13 cupy-cuda13x (or 12)"
        return ""

    def run(self, operation: str, job: FileOperation) -> Outcome:
        """Carry out the job. Raises OperationFailed."""
        if job.wait_for_nodes:
            job.wait_for_nodes()
        request = {"setting": self.setting, "operation": operation, "path": str(job.path), "seed": job.seed}
        with tempfile.TemporaryDirectory(prefix="peerway-gds-") as log:
            argument = json.dumps({**request, **_files(job), "log": log})
            command = [sys.executable, "-m", "peerway_measure.storage.engines.gds_child", argument]
            status, out, err = finished(command, job.limit_s, f"{self.name} {operation}")
        if status or not out.strip():
            why = (err.strip().splitlines() or [f"it ended with status {status} without output"])[-1]
            todo = "; `peerway doctor` says what GPUDirect Storage lacks here"
            raise OperationFailed(
                f"{self.name} {operation} failed: {why[:400]}{todo if self.setting == 'direct' else ''}"
            )
        answer = json.loads(out.strip().splitlines()[-1])
        return Outcome(
            answer["ns"],
            answer["cpu_us"],
            bytes_below_cache=answer["fetched"],
            data_is_correct=answer["right"],
            extra=answer["extra"],
        )


def _files(job: FileOperation) -> dict[str, object]:
    files = {name: value for name, value in asdict(job.files).items() if name != "tests"}
    return {**files, "first": job.first_stream}
