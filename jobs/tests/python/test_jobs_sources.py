"""What the agent reads of a node, from file trees as the kernel and several versions of Slurm make them."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from node_tree import add_process, add_step, end, make_node, write

from peerway_jobs.agent import files
from peerway_jobs.agent.cgroups import Cgroup, Cgroups
from peerway_jobs.agent.fabric import Fabric
from peerway_jobs.agent.processes import Processes, cpu_list, parse_stat
from peerway_jobs.agent.records import parse as parse_record
from peerway_jobs.agent.slurm import Answer, expand_numbers, parse
from peerway_jobs.agent.steps import Step, Steps
from peerway_jobs.agent.system import System
from peerway_jobs.batch import Samples
from peerway_jobs.hosts import expand_hosts

TICK = os.sysconf("SC_CLK_TCK")


def test_the_node_its_cores_disks_and_nics(tmp_path: Path) -> None:
    make_node(tmp_path)
    found = System(str(tmp_path)).sample()
    node = {name: values[0] for name, values in found["node"].values.items()}
    assert node["node_cpu_busy_seconds_total"] == 1500 / TICK
    assert node["node_cpu_iowait_seconds_total"] == 200 / TICK
    assert node["node_memory_total_bytes"] == 1 << 30
    assert node["node_memory_available_bytes"] == 1 << 29
    assert node["node_swap_used_bytes"] == 40 << 10
    assert node["node_oom_kills_total"] == 2
    assert node["node_cpu_pressure_seconds_total"] == 1.5
    assert "node_io_pressure_seconds_total" not in node  # no file, no figure
    assert found["core"].devices == ["0", "1", "2", "3"]
    assert found["core"].values["core_busy_seconds_total"] == [375 / TICK] * 4
    assert found["disk"].devices == ["sda"]
    assert found["disk"].values["disk_written_bytes_total"] == [4000 * 512]
    assert found["nic"].devices == ["net:eth0"]
    assert found["nic"].values["nic_sent_bytes_total"] == [6000]
    assert found["nic"].values["nic_errors_total"] == [1 + 2 + 3 + 4]


@pytest.mark.parametrize(
    ("texts", "watts"),
    [
        ({}, None),
        ({"class/hwmon/hwmon3/power1_average": "743000000", "class/hwmon/hwmon3/power1_input": "1"}, 743),
        ({"class/hwmon/hwmon3/power1_input": "743000000"}, 743),
        ({"class/hwmon/hwmon3/power1_average": "broken"}, None),
        ({"class/hwmon/hwmon3/name": "coretemp", "class/hwmon/hwmon3/power1_input": "743000000"}, None),
        # of two meters it is not known what each measures
        ({"class/hwmon/hwmon3/power1_input": "743000000", "class/hwmon/hwmon4/name": "power_meter"}, None),
        ({"class/hwmon/hwmon3/power1_input": "743000000", "cray/pm_counters/power": "612 W 1795300 us"}, 612),
        ({"cray/pm_counters/power": "-1 W 1795300 us"}, None),
    ],
)
def test_the_power_of_the_whole_node(tmp_path: Path, texts: dict[str, str], watts: float | None) -> None:
    make_node(tmp_path)
    for path, text in {"class/hwmon/hwmon3/name": "power_meter\n", **texts}.items():
        write(tmp_path, f"sys/{path}", text)
    system = System(str(tmp_path))
    for _ in range(2):  # the second time by the meter that was found
        values = system.sample()["node"].values.get("node_power_watts", [None])
        assert values == [watts]


def test_infiniband_and_lustre(tmp_path: Path) -> None:
    make_node(tmp_path)
    fabric, nics = Fabric(str(tmp_path)), System(str(tmp_path)).sample()["nic"]
    fabric.add_ports(nics)
    assert nics.devices == ["net:eth0", "ib:mlx5_0:1"]
    assert nics.values["nic_received_bytes_total"] == [5000, 4000]  # the port counts units of four bytes
    assert nics.values["nic_sent_wait_total"] == [None, 9]
    lustre = fabric.filesystems()
    assert lustre.devices == ["lustre:scratch"]
    assert {name: values[0] for name, values in lustre.values.items()} == {
        "filesystem_read_bytes_total": 5_000_000, "filesystem_written_bytes_total": 3_000_000,
        "filesystem_data_operations_total": 14, "filesystem_metadata_operations_total": 113,
        "filesystem_opens_total": 7,
    }  # fmt: skip


LUSTRE = "proc/fs/lustre/llite/scratch-ffff0000/stats"
PORT = "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data"


@pytest.mark.parametrize(
    ("file", "text", "metric", "reason"),
    [
        (LUSTRE, "read_bytes 5 samples [bytes] 1 9 -45", "filesystem_read_bytes_total", "-45"),
        (
            LUSTRE,
            f"read_bytes 5 samples [bytes] 1 9 {2**64 - 45}",
            "filesystem_read_bytes_total",
            "from 0 to",
        ),
        (LUSTRE, "read_bytes 5 samples [bytes] 1 9 nan", "filesystem_read_bytes_total", "'nan'"),
        (LUSTRE, "open -5 samples [usec] 1 9 7", "filesystem_opens_total", "-5"),
        (PORT, str(2**64 - 1), "nic_received_bytes_total", "all bits"),
        (PORT, str(2**32 - 1), "nic_received_bytes_total", "all bits"),
        (PORT, "-1", "nic_received_bytes_total", "-4"),
    ],
)
def test_a_counter_that_cannot_be_true_is_absent_with_its_reason(
    tmp_path: Path, file: str, text: str, metric: str, reason: str
) -> None:
    make_node(tmp_path)
    write(tmp_path, file, f"{text}\nwrite_bytes 3 samples [bytes] 1 9 12\n" if file == LUSTRE else text)
    if file == LUSTRE:
        (tmp_path / "proc/fs/lustre/llite/scratch-ffff8881/stats").unlink()
        # mounted twice: a good part must not hide the bad one
        other = LUSTRE.replace("ffff0000", "ffff0001")
        write(tmp_path, other, "read_bytes 5 samples [bytes] 1 9 4500\nopen 70 samples [usec] 1 9 7\n")
    fabric, nics = Fabric(str(tmp_path)), Samples()
    fabric.add_ports(nics)
    lustre = fabric.filesystems()
    assert metric not in {**nics.values, **lustre.values}
    assert nics.values["nic_sent_bytes_total"]
    if file == LUSTRE:
        assert lustre.values["filesystem_written_bytes_total"] == [12]
    (why,) = (why for (_, about), why in fabric.reasons.items() if about == metric)
    assert reason in why


def test_a_node_with_nothing_of_all_this(tmp_path: Path) -> None:
    found = System(str(tmp_path)).sample()
    assert found["core"].devices == found["disk"].devices == found["nic"].devices == []
    assert Fabric(str(tmp_path)).filesystems().devices == []
    assert Cgroups(str(tmp_path)).version() == "none"


def sample(root: Path) -> list[Step]:
    processes = Processes(str(root))
    processes.scan()
    return Steps(processes, Cgroups(str(root))).sample()


@pytest.mark.parametrize(("version", "name"), [(1, "v1"), (2, "v2"), (26, "v2")])
def test_a_step_in_cgroups(tmp_path: Path, version: int, name: str) -> None:
    make_node(tmp_path)
    pids = add_step(tmp_path, 4711, "0", version=version, tasks=3)
    assert Cgroups(str(tmp_path)).version() == name
    (step,) = sample(tmp_path)
    assert (step.job, step.step, step.pids, step.cores) == (4711, "0", pids, [2, 3])
    expected = {
        "step_cpu_user_seconds_total": 7.0, "step_cpu_system_seconds_total": 0.5,
        "step_memory_bytes": 1_300_000, "step_memory_cache_bytes": 600_000,
        "step_memory_limit_bytes": 4_000_000, "step_oom_kills_total": 1, "step_processes": 3,
        "step_threads": 6, "step_running_processes": 3,
        "step_read_bytes_total": 3000, "step_written_bytes_total": 1500, "step_major_faults_total": 9,
    }  # fmt: skip
    assert {key: step.figures[key] for key in expected} == expected
    assert ("step_cpu_pressure_seconds_total" in step.figures) == (version != 1)


def test_what_the_kernel_does_not_say_is_absent_and_not_0(tmp_path: Path) -> None:
    make_node(tmp_path)
    add_step(tmp_path, 7, "0", version=2)
    inside = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0"
    write(tmp_path, "proc/meminfo", "MemTotal: 1048576 kB\nSwapTotal: 100 kB\n")
    write(tmp_path, f"{inside}/cpu.stat", "usage_usec 7500000\nuser_usec 7000000\n")
    write(tmp_path, f"{inside}/memory.stat", "file 900000\n")
    node = System(str(tmp_path)).sample()["node"].values
    assert "node_memory_total_bytes" in node
    assert not {"node_memory_available_bytes", "node_swap_used_bytes"} & node.keys()
    figures = Cgroup(2, {"all": f"{tmp_path}/{inside}"}).figures()
    assert not {name for name in figures if "_cpu_user" in name or "_cpu_system" in name}
    assert not {"step_memory_bytes", "step_memory_cache_bytes"} & figures.keys()
    folders = {name: f"{tmp_path}/v1/{name}" for name in ("cpuacct", "memory")}
    write(tmp_path, "v1/cpuacct/cpuacct.stat", "user 100\n")
    write(tmp_path, "v1/memory/memory.stat", "total_cache 900000\n")
    assert Cgroup(1, folders).figures() == {}


def test_a_step_as_slurm_makes_it_in_version_2(tmp_path: Path) -> None:
    """The files of a job on a kernel that has only version 2, with Slurm 22.05.

    It is `sbatch -n1 --mem=300` of a script with two programs, one of which holds 100 MiB. If several nodes
    run on one host, their daemons add the node's name.
    """
    make_node(tmp_path)
    files = json.loads(Path(__file__).with_name("cgroup2_slurm22.json").read_text())
    for path, text in files.items():
        write(tmp_path, path, text)
    inside = "system.slice/n1_slurmstepd.scope/job_1/step_batch"
    add_process(tmp_path, 211, "slurmstepd", 1, title="slurmstepd: [1.batch] ")
    write(tmp_path, "proc/211/cgroup", f"0::/{inside}/slurm\n")
    pids = [int(pid) for pid in files[f"sys/fs/cgroup/{inside}/user/task_0/cgroup.procs"].split()]
    for pid in pids:
        add_process(tmp_path, pid, "python3", 211)
    (step,) = sample(tmp_path)
    assert (step.job, step.step, step.pids) == (1, "batch", pids)

    def counters(name: str) -> dict[str, int]:
        lines = files[f"sys/fs/cgroup/{inside}/{name}"].splitlines()
        return {line.split()[0]: int(line.split()[-1]) for line in lines if line.split()[-1].isdigit()}

    assert step.figures["step_cpu_user_seconds_total"] == counters("cpu.stat")["user_usec"] / 1e6
    assert step.figures["step_cpu_system_seconds_total"] == counters("cpu.stat")["system_usec"] / 1e6
    assert (
        step.figures["step_memory_bytes"]
        == counters("memory.stat")["anon"] + counters("memory.stat")["shmem"]
    )
    assert 100 << 20 < step.figures["step_memory_bytes"] < 120 << 20
    assert step.figures["step_memory_limit_bytes"] == 300 << 20
    assert step.figures["step_oom_kills_total"] == 0
    # srun --mem=100 within the job: Slurm limits the memory of the folder "user"
    write(tmp_path, f"sys/fs/cgroup/{inside}/user/memory.max", f"{100 << 20}\n")
    assert sample(tmp_path)[0].figures["step_memory_limit_bytes"] == 100 << 20


@pytest.mark.parametrize(
    ("version", "file", "text", "state", "suspended", "blocked"),
    [
        (1, "freezer/slurm/uid_1000/job_4711/step_0/freezer.state", "FROZEN", "D", 1, 0),
        (1, "freezer/slurm/uid_1000/job_4711/step_0/freezer.state", "THAWED", "D", 0, 2),
        (2, "system.slice/slurmstepd.scope/job_4711/step_0/user/cgroup.events", "frozen 1", "S", 1, 0),
        (2, "system.slice/slurmstepd.scope/job_4711/step_0/user/cgroup.events", "frozen 0", "D", 0, 2),
        (0, "none", "", "T", 1, 0),
        (0, "none", "", "D", 0, 2),
    ],
)
def test_a_step_that_slurm_has_suspended_waits_for_no_disk(
    tmp_path: Path, version: int, file: str, text: str, state: str, suspended: int, blocked: int
) -> None:
    make_node(tmp_path)
    pids = add_step(tmp_path, 4711, "0", version=version, tasks=2)
    write(tmp_path, f"sys/fs/cgroup/{file}", f"{text}\n")
    for pid in pids:
        add_process(tmp_path, pid, "a", pids[0] - 1, state=state)
    (step,) = sample(tmp_path)
    assert step.figures["step_suspended_ratio"] == suspended
    assert step.figures["step_blocked_processes"] == blocked


@pytest.mark.parametrize(
    ("version", "file"),
    [
        (1, "memory/slurm/uid_1000/job_4711/step_0/memory.max_usage_in_bytes"),
        (2, "system.slice/slurmstepd.scope/job_4711/step_0/memory.peak"),
        (2, "none"),
    ],
)
def test_what_was_killed_for_want_of_memory_had_what_its_cgroup_had(
    tmp_path: Path, version: int, file: str
) -> None:
    make_node(tmp_path)
    add_step(tmp_path, 4711, "0", version=version)  # with one kill
    write(tmp_path, f"sys/fs/cgroup/{file}", "3900000\n")
    (step,) = sample(tmp_path)
    assert step.figures["step_memory_bytes"] == 1_300_000
    assert step.figures["step_memory_peak_bytes"] == (4_000_000 if file == "none" else 3_900_000)


def test_file_cache_is_no_peak_of_a_step_that_was_not_killed(tmp_path: Path) -> None:
    make_node(tmp_path)
    add_step(tmp_path, 4711, "0", version=2)
    inside = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_4711/step_0"
    write(tmp_path, f"{inside}/memory.peak", "3900000\n")
    write(tmp_path, f"{inside}/memory.events", "low 0\noom_kill 0\n")
    (step,) = sample(tmp_path)
    assert step.figures["step_memory_peak_bytes"] == 1_300_000


def test_a_step_without_cgroups_is_the_tree_of_its_daemon(tmp_path: Path) -> None:
    make_node(tmp_path)
    first, *_ = add_step(tmp_path, 5, "batch", version=0, tasks=2)
    add_process(tmp_path, 900, "child", first, ticks=100)
    add_process(tmp_path, 901, "stranger", 1, ticks=100)
    (step,) = sample(tmp_path)
    assert 900 in step.pids
    assert 901 not in step.pids
    # Two tasks with 200 ticks each, a child with 100, and 100 of tasks that the daemon has waited for.
    assert step.figures["step_cpu_user_seconds_total"] == 600 / TICK
    assert step.figures["step_memory_bytes"] == 3 * (2048 << 10) + (1024 << 10)


def test_cpu_time_of_a_tree_never_falls_and_bytes_of_the_ended_stay(tmp_path: Path) -> None:
    make_node(tmp_path)
    pids = add_step(tmp_path, 5, "batch", version=0, tasks=2)
    processes = Processes(str(tmp_path))
    steps = Steps(processes, Cgroups(str(tmp_path)))
    processes.scan()
    (before,) = [dict(step.figures) for step in steps.sample()]
    end(tmp_path, pids[1])
    processes.scan()
    (after,) = [dict(step.figures) for step in steps.sample()]
    for name in ("step_cpu_user_seconds_total", "step_read_bytes_total"):
        assert after[name] == before[name], name
    assert after["step_processes"] == 1


def test_a_program_that_calls_itself_a_step_is_none(tmp_path: Path) -> None:
    make_node(tmp_path)
    add_step(tmp_path, 5, "batch", version=0)
    add_process(tmp_path, 800, "slurmstepd", 1, title="slurmstepd: [6.0]")
    if os.geteuid() == 0:
        os.chown(tmp_path / "proc/800", 1000, 1000)
        assert [step.job for step in sample(tmp_path)] == [5]
    for title in (
        "slurmstepd: [0.0]",
        "slurmstepd: [99999999999.0]",
        "slurmstepd: [5.0;x]",
        "x slurmstepd: [5.0]",
    ):
        write(tmp_path, "proc/801/cmdline", title)
        add_process(tmp_path, 801, "slurmstepd", 1, title=title)
        assert 801 not in [step.daemon for step in sample(tmp_path)], title


def test_a_daemon_that_was_seen_before_it_had_its_title_is_a_step_later(tmp_path: Path) -> None:
    make_node(tmp_path)
    add_step(tmp_path, 5, "batch", version=0)
    title = (tmp_path / "proc/150/cmdline").read_text()
    write(tmp_path, "proc/150/cmdline", "/usr/sbin/slurmstepd")  # after its exec, before it sets its title
    processes = Processes(str(tmp_path))
    steps = Steps(processes, Cgroups(str(tmp_path)))
    processes.scan()
    assert steps.sample() == []
    write(tmp_path, "proc/150/cmdline", title)
    processes.scan()
    assert [step.job for step in steps.sample()] == [5]


def test_a_step_that_was_seen_while_slurm_made_its_cgroups_gets_all_of_them(tmp_path: Path) -> None:
    make_node(tmp_path)
    add_step(tmp_path, 5, "batch", version=1)
    memory = tmp_path / "sys/fs/cgroup/memory/slurm"
    later, task = memory.rename(tmp_path / "later"), tmp_path / "proc/151"
    waits = task.rename(tmp_path / "not yet")  # the freezer is made first, tasks start last
    processes = Processes(str(tmp_path))
    steps = Steps(processes, Cgroups(str(tmp_path)))
    processes.scan()
    (step,) = steps.sample()
    assert "step_memory_limit_bytes" not in step.figures
    later.rename(memory)
    waits.rename(task)
    processes.scan()
    (step,) = steps.sample()
    assert step.figures["step_memory_limit_bytes"] == 4_000_000


@pytest.mark.parametrize(
    ("number", "remains"), [(errno.ENOENT, False), (errno.ESRCH, False), (errno.EMFILE, True)]
)
def test_a_process_that_cannot_be_read_for_lack_of_files_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remains: bool
) -> None:
    add_step(tmp_path, 7, "0", version=2)
    processes = Processes(str(tmp_path))
    processes.scan()
    before = dict(processes.table)

    def fails(*_: object) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "read", fails)
    if remains:
        with pytest.raises(OSError, match="Too many open files"):
            processes.scan()
    else:
        processes.scan()
    assert processes.table == (before if remains else {})


def test_names_of_processes_may_hold_anything() -> None:
    found = parse_stat("7 (a) R (b) S 1 7 7 0 -1 4 1 2 3 4 50 60 70 80 20 0 9 0 1234 5 6 7\n")
    assert (found.pid, found.name, found.state, found.parent) == (7, "a) R (b", "S", 1)
    assert (found.threads, found.start, found.user) == (9, 1234, 50 / TICK)


def test_lists_of_the_kernel_and_of_slurm() -> None:
    assert cpu_list("0-2,8") == expand_numbers("0-2,8") == [0, 1, 2, 8]
    assert cpu_list("") == expand_numbers("x") == expand_numbers("0-") == []
    assert expand_hosts("cpu[01-03,7],big,a[1]b") == {"cpu01", "cpu02", "cpu03", "cpu7", "big", "a1b"}
    assert expand_hosts("n[0-99999999]") == set()


LINE = (
    "JobId=7 JobName={name} UserId=ann(7001) GroupId=ann(7001) JobState={state} Requeue=1 Restarts=2 "
    "Partition=gpu NumCPUs=6 JOB_GRES=gpu:h100:3 Nodes=h100-[1-2] CPU_IDs=0-2 Mem=3000 "
    "GRES=gpu:h100:3(IDX:0,2-3) MinCPUsNode=1 Command=/x WorkDir={folder}\n"
)


def test_what_scontrol_says() -> None:
    found = parse(7, "h100-2", LINE.format(name="a", state="RUNNING", folder="/home/ann"))
    assert found == Answer(7, True, True, 7001, "gpu", 2, [0, 2, 3], 3, 3000 << 20)
    shared = LINE.replace("GRES=gpu:h100:3(IDX:0,2-3)", "GRES=shard:h100:3(0/8,3/8)")
    assert parse(7, "h100-2", shared.format(name="a", state="RUNNING", folder="/")).shares
    assert parse(7, "cpu-1", LINE.format(name="a", state="RUNNING", folder="/")).gpus == []
    assert not parse(7, "h100-2", LINE.format(name="a", state="NODE_FAIL", folder="/")).running
    assert parse(7, "h100-2", "") == Answer(7, known=False)


@pytest.mark.parametrize("name", ["UserId=root(0)", "x JobState=COMPLETED", "x Restarts=0 UserId=bob(5)"])
def test_a_jobs_name_cannot_speak_for_slurm(name: str) -> None:
    for found in (
        parse(7, "h100-1", LINE.format(name=name, state="RUNNING", folder="/")),
        parse(7, "h100-1", LINE.format(name="a", state="RUNNING", folder=f"/ {name}")),
    ):
        assert found.uid in (7001, None)
        assert found.running
        assert found.restart in (2, None)


def test_numbers_beyond_32_bits_are_none() -> None:
    """The server would refuse such a number with its whole batch."""
    text = "JobId=7 UserId=ann(9999999999) JobState=RUNNING Restarts=4294967296 Partition=p"
    found = parse(7, "n1", text)
    assert (found.known, found.uid, found.restart, found.partition) == (True, None, None, "p")
    record = "job=7\nwall_ms=1000\nmono_ms=5\nuid=4294967296\nrestart=99999999999\nuser=ann\n"
    read = parse_record("7.1000.prolog", record)
    assert read is not None
    assert (read.uid, read.restart, read.user) == (None, None, "ann")


def test_a_jobs_name_cannot_claim_gpus() -> None:
    name = "x Nodes=h100-1 CPU_IDs=0 Mem=1 GRES=gpu:h100:1(IDX:7)"
    assert parse(7, "h100-1", LINE.format(name=name, state="RUNNING", folder="/")).gpus == []


def test_a_program_that_a_process_runs_later_brings_its_own_environment(tmp_path: Path) -> None:
    """A process keeps its number across exec, so what was read before says nothing about the new program."""
    make_node(tmp_path)
    processes = Processes(str(tmp_path))

    def job_of(name: str, environ: str) -> int | None:
        add_process(tmp_path, 700, name, 1, environ=environ)
        processes.scan()
        return processes.job_in_environment(processes.table[700])

    assert job_of("setpriv", "PATH=/bin\0") is None
    assert job_of("sleep", "") is None  # during exec: the name is new, the environment is empty
    assert job_of("sleep", "PATH=/bin\0SLURM_JOB_ID=42\0") == 42
    assert job_of("sleep", "PATH=/bin\0") == 42  # read once
