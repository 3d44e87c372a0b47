"""The program with which a job "uses" its fake GPUs. It sees the GPUs that a CUDA program would see.

    python3 gpu_program.py FOLDER --seconds 20 --utilization 0.9 --memory-mb 3000 --sm 0.7 --power 300

FOLDER is gpus/NODE of the cluster. The visible GPUs are those whose device file the program may open (cgroup
"devices"), in NVML's order. CUDA_VISIBLE_DEVICES chooses some of them by number. --foreign uses any GPU by
its UUID instead.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import time
from pathlib import Path


def may_open(device: Path) -> bool:
    """Whether the cgroup lets this process open the device. No driver answers, so a permitted open fails with
    ENXIO.
    """
    try:
        os.close(os.open(device, os.O_RDWR))
    except OSError as error:
        return error.errno != errno.EPERM
    return True


def visible(folder: Path) -> list[str]:
    """The UUIDs of the GPUs that CUDA would number 0, 1, ..."""
    gpus = json.loads((folder / "gpus.json").read_text())
    devices = folder.parents[1] / "dev"
    seen = [gpu["uuid"] for gpu in gpus if may_open(devices / f"nvidia{gpu['minor']}")]
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return seen
    return [seen[int(each)] for each in wanted.split(",") if each.isdigit() and int(each) < len(seen)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--only", type=int, help="use so many of the visible GPUs")
    parser.add_argument("--foreign", help="use this GPU, whoever has it")
    parser.add_argument("--throttle", default="", help="power, thermal or hardware")
    for name in ("utilization", "sm", "memory-mb", "power"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    options = parser.parse_args()
    uuids = [options.foreign] if options.foreign else visible(options.folder)[: options.only]
    use = {
        "utilization": options.utilization, "sm": options.sm, "memory": int(options.memory_mb) << 20,
        "power": options.power, "throttle": options.throttle,
    }  # fmt: skip
    files = [options.folder / "use" / f"{each}.{os.getpid()}" for each in uuids]
    for file in files:
        draft = file.with_name(f".{file.name}")
        draft.write_text(json.dumps(use))
        draft.rename(file)
    print("uses", *uuids, flush=True)
    try:
        time.sleep(options.seconds)
    finally:
        for file in files:
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
