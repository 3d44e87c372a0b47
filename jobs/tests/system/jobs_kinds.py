"""A job for each rule of `peerway jobs`, to be submitted on the virtual cluster of small.toml.

There are two groups. Only one job of the first group computes, so all can run at once on any machine; jobs of
the second group compete for its cores or need nodes of their own. Counters of hardware that is missing here
(Lustre, InfiniBand) are files in the node's namespaces, which the job's own script increments; GPUs are
fake_nvml's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peerway_measure.rehearse.cluster.gpus import PROGRAM, gpu_uuid

LOOP = "while :; do :; done"
SLEEP = "exec sleep 300"

# Smaller thresholds for jobs of partition lite, so that small jobs suffice for a finding.
LITE = {
    "gpu-idle-after-activity": 'long = "5s"',
    "short-swarm": "many = 5",
    "cpu-low": "serial = 0.02",
    "serial": "most = 0.02\n  little = 0.01",
    "cpu-starved-gpu": "saturated = 0.2",
}


# Jobs of partition lite last less than two minutes here, and most users have enough of them to count as a
# swarm.
ANY_LITE = "short-swarm"


@dataclass(frozen=True)
class Kind:
    """A job, the rules that must find it, and those that may; no other rule may find it."""

    user: str
    options: tuple[str, ...]
    script: str
    rules: tuple[str, ...] = ()
    ends: bool = False  # by itself
    may: tuple[str, ...] = ()

    @property
    def allowed(self) -> set[str]:
        """All rules that may find the job."""
        return {*self.rules, *self.may, *(() if "-p" in self.options else (ANY_LITE,))}

    @property
    def sbatch(self) -> tuple[str, ...]:
        """Options of sbatch."""
        return ("-p", "lite", *self.options)


def _python(program: str) -> str:
    return f'exec python3 -c "{program}"'


def _counts_up(file: str, line: str, each: int) -> str:
    """A script that increments a counter in a file five times a second; `line` is the format in the file."""
    return (
        f"n=0; while :; do n=$((n + {each})); echo {line} > {file}.new; mv {file}.new {file}; sleep 0.2; done"
    )


def quiet(folder: Path) -> dict[str, Kind]:
    """The jobs that can run at once."""

    def gpu(node: str, more: str, seconds: int = 300) -> str:
        return f"python3 {folder / PROGRAM} {folder}/gpus/{node} --seconds {seconds} {more}"

    def h100(user: str, gpus: int, more: str, *rules: str, may: tuple[str, ...] = ()) -> Kind:
        script = f"exec {gpu('h100-1', more)}" if more else SLEEP
        return Kind(user, ("-w", "h100-1", f"--gres=gpu:{gpus}"), script, rules, may=may)

    def a100(
        gpus: int, script: str, *rules: str, options: tuple[str, ...] = (), may: tuple[str, ...] = ()
    ) -> Kind:
        return Kind("ann", ("-w", "a100-1", f"--gres=gpu:{gpus}", *options), script, rules, may=may)

    def cpu(
        user: str, node: int, options: str, script: str, *rules: str, ends: bool = False,
        may: tuple[str, ...] = ("nothing-computes",),
    ) -> Kind:  # fmt: skip
        return Kind(user, ("-w", f"cpu-{node}", *options.split()), script, rules, ends, may)

    good = "--utilization 0.9 --sm 0.7 --memory-mb 60000 --power 350"
    apart = [
        f"CUDA_VISIBLE_DEVICES={n} {gpu('a100-1', f'--utilization {u}')}" for n, u in ((0, 0.9), (1, 0.2))
    ]
    # A parent whose child has not called exec yet is in state D, like a process that waits for a disk; the
    # child waits for a writer of the pipe.
    blocked = "import os; pipe = '/tmp/pipe%d' % os.getpid(); os.mkfifo(pipe); os.posix_spawn('/bin/true', "
    blocked += "['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 3, pipe, os.O_RDONLY, 0)])"
    held = "import time; data = b'x' * ({} << 20); time.sleep(300)"
    return {
        "good": Kind("ann", ("-p", "gpu", "-w", "h100-1", "--gres=gpu:1"), f"exec {gpu('h100-1', good)}"),
        "idle": h100("ann", 1, "", "gpu-idle"),
        "one_of_two": h100("ben", 2, f"--only 1 {good}", "gpu-one-used"),
        "foreign": h100(
            "ben", 1, f"--foreign {gpu_uuid('h100-1', 0)} --utilization 0.01", "foreign-process",
            may=("gpu-idle",),
        ),
        "memory_only": h100("ben", 1, "--memory-mb 8000", "gpu-memory-only", may=("gpu-idle",)),
        "busy_looking": h100("ann", 1, "--utilization 0.95 --sm 0.03", "gpu-busy-looking"),
        "hot": h100("ben", 1, "--throttle thermal --utilization 0.9 --sm 0.7", "throttled"),
        "no_gpu": Kind("ben", ("-w", "h100-1"), SLEEP, ("wrong-node-type", "nothing-computes")),
        "small": a100(
            1, f"exec {gpu('a100-1', '--utilization 0.15 --memory-mb 4000')}",
            "gpu-low", "gpu-too-big", "strands-gpus", options=("-c8",),
        ),
        "unbalanced": a100(2, f"{apart[0]} & {apart[1]} & wait", "gpu-unbalanced"),
        "hangs": a100(
            1, f"{gpu('a100-1', '--utilization 0.9', seconds=3)}; {SLEEP}", "gpu-idle-after-activity",
            may=("gpu-low", "gpu-too-big"),
        ),
        "serial": Kind("ann", ("-p", "cpu", "-w", "cpu-1", "-c8"), LOOP, ("serial",)),  # any core will do
        "nothing": cpu("ben", 1, "-c2", SLEEP, "nothing-computes"),
        "killed": cpu("ben", 1, "--mem=100", f"sleep 1; {_python(held.format(300))}", "out-of-memory",
            # Without free memory a job reads its program again and again; agents may miss its life of a few
            # seconds.
            may=("nothing-computes", "io-wait", "no-data"),
        ),
        "near": cpu("ben", 1, "--mem=500", _python(held.format(482)), "memory-near-limit"),
        "long": cpu("ann", 1, "--time=10", "sleep 6", "time-over-requested", ends=True),
        "roomy": cpu("ann", 2, "--mem=60000", SLEEP, "memory-over-requested"),
        "blocked": cpu("ann", 2, "-c1 --mem=100", _python(blocked), "io-wait"),
        "swarm": cpu(
            "cat", 2, "--array=1-5 --mem=100", '[ "$SLURM_ARRAY_TASK_ID" != 5 ] || sleep 2', "short-swarm",
            ends=True, may=("time-over-requested", "no-data", "nothing-computes"),
        ),
    }  # fmt: skip


def computing(folder: Path) -> dict[str, Kind]:
    """The jobs that keep cores busy, or have two nodes to themselves."""
    starts_and_stops = (
        f"while :; do python3 {folder / PROGRAM} {folder}/gpus/a100-1 --seconds 0.6 --utilization 0.9; "
        "sleep 0.6; done"
    )
    infiniband = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"
    lustre = "/proc/fs/lustre/llite/scratch-ffff0000/stats"
    both = [
        _counts_up(infiniband, "$n", 100_000_000),
        _counts_up(lustre, '"open $n samples [usec] 1 1 1"', 5000),
    ]
    return {
        "few_of_many": Kind("ann", ("-w", "h100-1", "-c8"), LOOP, ("cpu-low",), may=("wrong-node-type",)),
        "starved": Kind(
            "ben", ("-w", "a100-1", "--gres=gpu:1", "-c1"), f"{LOOP} & {LOOP} & {LOOP} & {starts_and_stops}",
            ("cpu-starved-gpu", "oversubscribed"), may=("gpu-low", "gpu-too-big"),
        ),
        "scattered": Kind(
            "ann", ("-N2", "-w", "cpu-1,cpu-2", "--exclusive"), f"{both[0]} & {both[1]}",
            ("spread", "communication-bound", "metadata-storm"),
            may=("nothing-computes", "cpu-low", "serial"),
        ),
    }  # fmt: skip


HARDWARE = """
mount -t tmpfs tmpfs /proc/fs
mkdir -p /proc/fs/lustre/llite/scratch-ffff0000
mkdir /tmp/class
mount --bind /sys/class /tmp/class
mount -t tmpfs tmpfs /sys/class
mkdir -p /sys/class/net /sys/class/infiniband/mlx5_0/ports/1/counters
mount --bind /tmp/class/net /sys/class/net
chmod -R a+rwX /proc/fs/lustre /sys/class/infiniband
"""  # a node's files, at the paths that its agent reads
