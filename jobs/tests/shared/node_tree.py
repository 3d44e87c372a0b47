"""Makes trees of /proc, /sys and cgroups in a folder, like the kernel and Slurm, for the agent to read."""

from __future__ import annotations

from pathlib import Path

STEPD = 100  # the pids of a job's step are STEPD + 10 * job + 0, 1, ...


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def stat_line(pid: int, name: str, parent: int, *, ticks: int = 0, waited: int = 0, state: str = "S") -> str:
    head = (
        f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 4194304 10 0 3 0 {ticks} {ticks // 2} {waited} 0"
    )
    return f"{head} 20 0 2 0 {pid * 7} 1000000 500 18446744073709551615\n"


def add_process(
    root: Path, pid: int, name: str, parent: int, *, title: str = "", environ: str = "", **more: object
) -> None:
    write(root, f"proc/{pid}/stat", stat_line(pid, name, parent, **more))  # type: ignore[arg-type]
    write(root, f"proc/{pid}/cmdline", title or name)
    write(root, f"proc/{pid}/environ", environ)
    write(root, f"proc/{pid}/io", "rchar: 1000\nwchar: 500\nsyscr: 1\n")
    write(root, f"proc/{pid}/status", "Cpus_allowed_list:\t2-3\nRssAnon:\t  2048 kB\nRssShmem:\t  1024 kB\n")
    write(root, f"proc/{pid}/cgroup", "0::/\n")


def make_node(root: Path, cpus: int = 4) -> None:
    """Make the node itself, with a disk, a NIC, an InfiniBand port and a Lustre mount."""
    lines = ["cpu  1000 0 500 8000 200 0 0 0 0 0"] + [
        f"cpu{n} 250 0 125 2000 50 0 0 0 0 0" for n in range(cpus)
    ]
    write(root, "proc/stat", "\n".join([*lines, "procs_running 3", "procs_blocked 1"]) + "\n")
    memory = "MemTotal: 1048576 kB\n"
    memory += "MemFree: 1000 kB\nMemAvailable: 524288 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n"
    write(root, "proc/meminfo", memory)
    write(root, "proc/vmstat", "pgfault 5\noom_kill 2\n")
    write(root, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n")
    write(
        root,
        "proc/diskstats",
        "   8 0 sda 10 0 2000 5 20 0 4000 7 0 1500 12 0 0 0 0\n   7 0 loop0 1 0 8 0 0 0 0 0 0 0 0\n",
    )
    (root / "sys/block/sda/device").mkdir(parents=True)
    header = "Inter-|   Receive\n face |bytes\n"
    counters = "5000 50 1 2 0 0 0 0 6000 60 3 4 0 0 0 0"
    write(root, "proc/net/dev", f"{header}    lo: {counters}\n  eth0: {counters}\nveth12: {counters}\n")
    for name, value in {
        "port_rcv_data": 1000,
        "port_xmit_data": 2000,
        "port_xmit_wait": 9,
        "symbol_error": 1,
    }.items():
        write(root, f"sys/class/infiniband/mlx5_0/ports/1/counters/{name}", f"{value}\n")
    write(root, "proc/fs/lustre/llite/scratch-ffff8881/stats", LUSTRE)
    write(root, "proc/sys/kernel/random/boot_id", "6f1c2b3a-0000-4000-8000-0123456789ab\n")
    write(root, "proc/sys/kernel/osrelease", "6.1.0\n")
    add_process(root, 1, "systemd", 0)


LUSTRE = """snapshot_time             1795300000.123 secs.nsecs
read_bytes                10 samples [bytes] 4096 1048576 5000000
write_bytes               4 samples [bytes] 4096 1048576 3000000 900000000
open                      7 samples [usecs] 1 9 30
close                     6 samples [usecs] 1 9 30
getattr                   100 samples [usecs] 1 9 300
ioctl                     5 samples [reqs]
"""


def add_step(root: Path, job: int, step: str, *, version: int, tasks: int = 1, uid: int = 1000) -> list[int]:
    """Add a step with its slurmstepd, in cgroups of that version (0 for none); returns the pids of its
    tasks.
    """
    daemon = STEPD + 10 * job
    pids = [daemon + 1 + n for n in range(tasks)]
    add_process(root, daemon, "slurmstepd", 1, title=f"slurmstepd: [{job}.{step}]", waited=100)
    for pid in pids:
        add_process(root, pid, "a) R (b", daemon, ticks=200, state="R")
    procs = "".join(f"{pid}\n" for pid in pids)
    if version == 1:
        for controller in ("memory", "cpuacct", "freezer"):
            write(
                root,
                f"sys/fs/cgroup/{controller}/slurm/uid_{uid}/job_{job}/step_{step}/task_0/cgroup.procs",
                procs,
            )
        top = f"uid_{uid}/job_{job}"
        for name, value in {"usage_user": 7_000_000_000, "usage_sys": 500_000_000}.items():
            write(root, f"sys/fs/cgroup/cpuacct/slurm/{top}/step_{step}/cpuacct.{name}", f"{value}\n")
        memory = f"sys/fs/cgroup/memory/slurm/{top}"
        stat = "total_rss 1000000\ntotal_cache 900000\ntotal_shmem 300000\n"
        write(root, f"{memory}/step_{step}/memory.stat", stat)
        write(root, f"{memory}/step_{step}/memory.limit_in_bytes", f"{(1 << 63) - 4096}\n")
        write(root, f"{memory}/memory.limit_in_bytes", "4000000\n")
        write(
            root, f"{memory}/step_{step}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"
        )
    if version in (2, 26):  # 26.05 names the job's folder after its SLUID
        folder = f"job_{job}" if version == 2 else "s8FXK2QZ9P0"
        scope = f"system.slice/slurmstepd.scope/{folder}"
        write(root, f"proc/{daemon}/cgroup", f"0::/{scope}/step_{step}/slurm\n")
        inside = f"sys/fs/cgroup/{scope}/step_{step}"
        write(root, f"{inside}/cpu.stat", "usage_usec 7500000\nuser_usec 7000000\nsystem_usec 500000\n")
        write(root, f"{inside}/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=250000\n")
        write(root, f"{inside}/memory.stat", "anon 1000000\nfile 900000\nshmem 300000\n")
        write(root, f"{inside}/memory.max", "max\n")
        write(root, f"sys/fs/cgroup/{scope}/memory.max", "4000000\n")
        write(root, f"{inside}/memory.events", "low 0\noom 1\noom_kill 1\n")
        write(root, f"{inside}/user/task_0/cgroup.procs", procs)
        write(root, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    return pids


def end(root: Path, *pids: int) -> None:
    for pid in pids:
        for file in (root / "proc" / str(pid)).iterdir():
            file.unlink()
        (root / "proc" / str(pid)).rmdir()
