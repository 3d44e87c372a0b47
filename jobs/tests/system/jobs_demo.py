"""The jobs monitor on one machine: a virtual Slurm, an agent on each node, the server, good and bad jobs.

    sudo make jobs-demo            # until Ctrl-C; the page's address is printed
    jobs/tests/system/jobs_demo.py --once    # end as soon as every job that is to be found inefficient was

A minute of the rules lasts a second here, so that conclusions come within a minute. Everything lives in
namespaces and in a folder that is removed at the end; root is needed for them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import socket
import sys
import time
from pathlib import Path

from jobs_served import MONITOR, ServedSite
from jobs_site import PORT as INSIDE

from peerway_measure.rehearse.cluster import read, why_not
from peerway_measure.rehearse.cluster.configuration import HEAD, HEAD_ADDRESS
from peerway_measure.rehearse.cluster.ending import (
    end_at_first_signal,
    hold_signals,
    ignore_signals,
    release_signals,
    wait_for_end,
)
from peerway_measure.rehearse.cluster.gpus import PROGRAM, gpu_uuid
from peerway_measure.rehearse.cluster.relay import relay

PORT = 8740
PASSWORD = "correct horse"


def say(text: str) -> None:
    """Print one line at once."""
    print(text, flush=True)


def jobs(folder: Path) -> dict[str, tuple[str, list[str], str, str]]:
    """Owner, options, script, and the rule that should find the job."""

    def gpu(more: str, seconds: int = 3600) -> str:
        return f"exec python3 {folder / PROGRAM} {folder}/gpus/$(hostname) --seconds {seconds} {more}"

    h100, a100 = ["-p", "gpu", "-w", "h100-1"], ["-p", "gpu", "-w", "a100-1"]
    good = "--utilization 0.93 --sm 0.7 --memory-mb 60000 --power 650"
    tiny, others = "--utilization 0.95 --sm 0.03", f"--foreign {gpu_uuid('a100-1', 0)}"
    loop = "while :; do :; done"
    return {
        "train": ("ann", [*h100, "--gres=gpu:2"], gpu(good), ""),
        "forgotten": ("ann", [*h100, "--gres=gpu:1"], "exec sleep 50", "gpu-idle"),
        "notebook": ("ann", [*a100, "--gres=gpu:1"], gpu("--memory-mb 8000"), "gpu-memory-only"),
        "one-of-two": ("ben", [*h100, "--gres=gpu:2"], gpu(f"--only 1 {good}"), "gpu-one-used"),
        "tiny-kernels": ("ben", [*h100, "--gres=gpu:1"], gpu(tiny), "gpu-busy-looking"),
        "hot": ("ben", [*h100, "--gres=gpu:1"], gpu(f"--throttle thermal {good}"), "throttled"),
        "ordinals": ("ben", [*a100, "--gres=gpu:1"], gpu(others), "foreign-process"),
        "serial": ("ann", ["-w", "cpu-1", "-c8"], loop, "serial"),
        "waits": ("ben", ["-w", "cpu-2", "-c4"], "exec sleep 40", "nothing-computes"),
        "too-large": (
            "ann", ["-w", "cpu-2", "--mem=100"],
            "sleep 5; python3 -c \"import time; data = b'x' * (300 << 20); time.sleep(300)\"",
            "out-of-memory",
        ),
        "queued": ("ben", [*h100, "--gres=gpu:8"], "sleep 10", ""),
    }  # fmt: skip


def demo() -> int:
    """Start everything, print the page's address, and stay."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--once", action="store_true", help="end when all conclusions have come")
    parser.add_argument("--port", type=int, default=PORT, help=f"of the page, on 127.0.0.1 (default {PORT})")
    options = parser.parse_args()
    once, port = options.once, options.port
    small = read()
    description = dataclasses.replace(small, users=(*small.users, MONITOR), accounting=True)
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            print(
                f"the demonstration's page needs port {port}, or another with --port: {error.strerror}",
                file=sys.stderr,
            )
            return 1
    if why := why_not(description):
        print(f"the demonstration needs a virtual cluster: {why}", file=sys.stderr)
        return 1
    end_at_first_signal()
    hold_signals()
    site = ServedSite(description, minute_s=1, password=PASSWORD)
    began = time.monotonic()
    try:
        release_signals()
        site.start()
        site.cluster.run("sacctmgr", "-i", "modify", "user", MONITOR, "set", "AdminLevel=Operator")
        relay(site.cluster.spaces[HEAD], (HEAD_ADDRESS, INSIDE), site.folder / "cert.pem", port)
        took = time.monotonic() - began
        say(f"cluster, agents and server are up after {took:.0f} s: {', '.join(site.nodes)}")
        wanted = {}
        for name, (user, options, script, rule) in jobs(site.cluster.folder).items():
            number = site.cluster.sbatch(user, "-J", name, *options, script=script)
            if rule and (site.cluster.cgroups or rule != "out-of-memory"):
                wanted[number] = (name, user, rule)
        say(f"{len(wanted)} bad jobs and 2 others are submitted")
        say(f"\n  http://127.0.0.1:{port}")
        say(f"  log in as ann, ben, or root (the administrator); the password is: {PASSWORD}\n")
        _conclusions(site, wanted)
        say(
            f"all conclusions came after {time.monotonic() - began:.0f} s" + ("" if once else "; Ctrl-C ends")
        )
        if not once:
            wait_for_end()
    except KeyboardInterrupt:
        say("stopped")
    finally:
        try:
            ignore_signals()
        finally:
            site.cluster.stop()
    return 0


def _conclusions(site: ServedSite, wanted: dict[int, tuple[str, str, str]]) -> None:
    """Print each conclusion when it appears."""
    deadline = time.monotonic() + 600
    while wanted:
        for number, (name, user, rule) in list(wanted.items()):
            if rule in site.conclusions(number):
                say(f"  job {number} {name} of {user}: {rule}")
                del wanted[number]
        if time.monotonic() > deadline:
            raise SystemExit(f"no conclusion came for {wanted}\n{site.logs()}")
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(demo())
