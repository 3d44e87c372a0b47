"""Runs jobs where /dev/shm is full, and kills all of their processes at once.

    unshare --mount --net --pid --fork --mount-proc python killed_jobs.py PATH...

Prints a line of JSON for each path: what the two ranks said once they had moved their bytes, the sockets and
files that there were while they ran, and those that were left; then what `explain` says with UCX.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import peerway

RANKS = 2
SHARED = Path("/dev/shm")


def rank() -> None:
    """Put to the other rank, print whether everything arrived, and wait to be killed."""
    ctx = peerway.Context()
    target, source = ctx.allocate("host", 1 << 20), ctx.allocate("host", 1 << 20)
    source.array()[:] = ctx.rank + 1
    other = 1 - ctx.rank
    far = ctx.import_key(ctx.team.all_gather(target.key())[other])
    ctx.put(far, source)
    ctx.flush(other)
    ctx.team.barrier()
    print(bool((target.array() == other + 1).all()), flush=True)
    signal.pause()


def fill() -> None:
    """Fill /dev/shm until not one byte is free."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(SHARED)], check=True)
    try:
        SHARED.joinpath("full").write_bytes(bytes(1 << 20))
    except OSError:
        return
    sys.exit("/dev/shm takes 1 MiB more than it has")


def there() -> list[str]:
    """What a job could leave: names in this network namespace, or files."""
    sockets = [word for word in Path("/proc/net/unix").read_text().split() if word.startswith("@")]
    return sorted({*sockets, *(path.name for path in SHARED.iterdir() if path.name != "full")})


def job(path: str) -> dict[str, object]:
    """Run one job; returns the results."""
    command = [sys.executable, "-m", "peerway", "run", "-n", str(RANKS), "--", sys.executable, __file__]
    with subprocess.Popen(
        command, env={**os.environ, "PEERWAY_PATHS": path}, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        said = [running.stdout.readline().split()[-1:] for _ in range(RANKS)]
        during = there()
        os.kill(-1, signal.SIGKILL)  # kills everything in this namespace except this process
    deadline = time.monotonic() + 60  # the kernel ends them one after another
    while there() and time.monotonic() < deadline:
        time.sleep(0.01)
    return {"path": path, "said": said, "during": during, "left": there()}


def main() -> None:
    """Run one job after another."""
    fill()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for path in sys.argv[1:]:
        print(json.dumps(job(path)), flush=True)
    explained = subprocess.run(
        [sys.executable, "-m", "peerway", "explain"],
        env={**os.environ, "PEERWAY_UCX": "on"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(json.dumps({"explain": explained.returncode, "text": explained.stdout}))


if __name__ == "__main__":
    rank() if "PEERWAY_RANK" in os.environ else main()
