"""The fake GPUs of the nodes: device files that Slurm gives to jobs, and files that fake_nvml reads.

dev/nvidia0 ...         character devices 195:N without a driver; all nodes share them
gpus/NODE/gpus.json     what the driver would report about each GPU, in NVML's order
gpus/NODE/use/UUID.PID  how much of a GPU process PID uses, written by gpu_program.py
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import uuid
from pathlib import Path

from peerway_measure.rehearse.cluster.description import Description, NodeType

MAJOR = 195  # the major number of NVIDIA's devices
PROGRAM = "gpu_program.py"
_SPACE = uuid.UUID("5a3c1f0e-52cf-4c43-a6a5-1f6f2d1f8e11")


def gpu_uuid(node: str, minor: int) -> str:
    """A UUID that is the same each time, so that tests can name it."""
    return f"GPU-{uuid.uuid5(_SPACE, f'{node}/{minor}')}"


def prepare(description: Description, folder: Path) -> None:
    """Make the device files and the folders of figures."""
    (folder / "dev").mkdir()
    # A copy, because users may not read this repository.
    shutil.copy(Path(__file__).with_name(PROGRAM), folder / PROGRAM)
    for minor in range(max(type_.gpus for type_ in description.nodes)):
        path = folder / "dev" / f"nvidia{minor}"
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(MAJOR, minor))
        path.chmod(0o666)
    for name, type_ in description.types().items():
        at = folder / "gpus" / name
        (at / "use").mkdir(parents=True)
        (at / "use").chmod(0o1777)
        (at / "gpus.json").write_text(json.dumps(_facts(name, type_)))


def _facts(node: str, type_: NodeType) -> list[dict[str, object]]:
    minors = list(range(type_.gpus))
    if type_.reversed_minors:
        minors.reverse()
    return [
        {
            "uuid": gpu_uuid(node, minor),
            "minor": minor,
            "name": type_.gpu_name,
            "memory": type_.gpu_memory_mb << 20,
        }
        for minor in minors
    ]
