"""The table of all metrics: agents measure these, and the server stores no others.

A metric belongs to one kind of device. A sample is (node, kind, device, metric, time, value), without a job.
Counters end in _total and grow until their device starts again (a reboot, a new step in a slot; a new agent,
if the help says "since the agent saw the step"), so a reader takes a fall for a new start from zero. All
other metrics are gauges: values of one moment.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table. A ratio is between 0 and 1; bytes and seconds are never scaled."""

    name: str
    kind: str
    unit: str
    help: str

    @property
    def type(self) -> str:
        """The type in OpenMetrics: counter or gauge."""
        return "counter" if self.name.endswith("_total") else "gauge"


# Kind of device -> how the devices of one node are named.
KINDS = {
    "node": 'the node itself; its one device is "node"',
    "core": "a logical CPU by Linux's number: 0, 1, ...",
    "gpu": "a GPU or a MIG instance by its UUID",
    "nic": "a network interface, net:eth0, or an InfiniBand port, ib:mlx5_0:1",
    "disk": "a whole block device by its kernel name",
    "filesystem": "a mounted parallel file system, lustre:scratch",
    "step": "a slot of the node: the intervals say which step of which job had it when",
}


def _of(kind: str, *rows: tuple[str, str, str]) -> list[Metric]:
    return [Metric(name, kind, unit, text) for name, unit, text in rows]


_TABLE = [
    *_of(
        "node",
        ("node_cpu_busy_seconds_total", "seconds", "CPU time of all cores, neither idle nor I/O wait"),
        ("node_cpu_iowait_seconds_total", "seconds", "idle time of all cores with something waiting for I/O"),
        ("node_memory_total_bytes", "bytes", "memory of the node"),
        ("node_memory_available_bytes", "bytes", "memory that programs can still get without swapping"),
        ("node_swap_used_bytes", "bytes", "swap in use"),
        ("node_oom_kills_total", "processes", "processes that the kernel killed for want of memory"),
        ("node_running_threads", "threads", "threads that run or wait for a CPU"),
        ("node_blocked_threads", "threads", "threads that wait for I/O"),
        ("node_cpu_pressure_seconds_total", "seconds", "time with a thread waiting for a CPU"),
        ("node_io_pressure_seconds_total", "seconds", "time with a thread waiting for I/O"),
        ("node_memory_pressure_seconds_total", "seconds", "time with a thread waiting for memory"),
        ("node_power_watts", "watts", "power that the whole node draws, by a meter of its own"),
        ("node_leftover_processes", "processes", "processes of jobs that have ended on this node"),
        ("agent_cpu_seconds_total", "seconds", "CPU time of the agent itself"),
        ("agent_resident_bytes", "bytes", "memory of the agent itself"),
        ("agent_tick_seconds", "seconds", "how long the last round of measuring took by the clock"),
        ("agent_spooled_batches", "batches", "batches on disk that the server has not acknowledged"),
        ("agent_dropped_batches_total", "batches", "batches dropped from a full spool, oldest first"),
        ("agent_failures_total", "failures", "sources that could not be read, since the agent started"),
    ),
    *_of(
        "core",
        ("core_busy_seconds_total", "seconds", "CPU time that was neither idle nor I/O wait"),
        ("core_iowait_seconds_total", "seconds", "idle time with something waiting for I/O"),
    ),
    *_of(
        "gpu",
        ("gpu_utilization_ratio", "ratio", "share of the last sampling period with a kernel running"),
        ("gpu_memory_utilization_ratio", "ratio", "share of the last sampling period with memory traffic"),
        ("gpu_sm_activity_ratio", "ratio", "mean share of SMs with a warp, since the last sample (GPM)"),
        ("gpu_sm_occupancy_ratio", "ratio", "mean share of the warps that SMs can hold (GPM)"),
        ("gpu_tensor_activity_ratio", "ratio", "share of cycles with the tensor pipe active (GPM)"),
        ("gpu_dram_activity_ratio", "ratio", "share of the memory's bandwidth in use (GPM)"),
        ("gpu_memory_used_bytes", "bytes", "memory of the GPU in use"),
        ("gpu_memory_total_bytes", "bytes", "memory of the GPU"),
        ("gpu_power_watts", "watts", "power drawn"),
        ("gpu_power_limit_watts", "watts", "power limit in force"),
        ("gpu_energy_joules_total", "joules", "energy drawn since the driver was loaded or the GPU started"),
        ("gpu_temperature_celsius", "celsius", "temperature"),
        ("gpu_sm_clock_hertz", "hertz", "clock of the SMs or compute units"),
        ("gpu_throttled_power_ratio", "ratio", "share of time that a power limit holds the clock down"),
        ("gpu_throttled_thermal_ratio", "ratio", "share of time that heat holds the clock down"),
        ("gpu_throttled_hardware_ratio", "ratio", "share of time that the hardware holds the clock down"),
        ("gpu_processes", "processes", "processes that use the GPU"),
        ("gpu_foreign_processes", "processes", "processes that use the GPU and are not of its job"),
    ),
    *_of(
        "nic",
        ("nic_received_bytes_total", "bytes", "bytes received"),
        ("nic_sent_bytes_total", "bytes", "bytes sent"),
        ("nic_received_packets_total", "packets", "packets received"),
        ("nic_sent_packets_total", "packets", "packets sent"),
        ("nic_errors_total", "errors", "errors and drops in both directions"),
        ("nic_sent_wait_total", "ticks", "ticks in which an InfiniBand port had no credit to send"),
    ),
    *_of(
        "disk",
        ("disk_read_bytes_total", "bytes", "bytes read"),
        ("disk_written_bytes_total", "bytes", "bytes written"),
        ("disk_busy_seconds_total", "seconds", "time with a request in flight"),
    ),
    *_of(
        "filesystem",
        ("filesystem_read_bytes_total", "bytes", "bytes read by this client"),
        ("filesystem_written_bytes_total", "bytes", "bytes written by this client"),
        ("filesystem_data_operations_total", "operations", "reads and writes"),
        ("filesystem_metadata_operations_total", "operations", "opens, stats, creates, removes and the like"),
        ("filesystem_opens_total", "operations", "opens alone"),
    ),
    *_of(
        "step",
        ("step_cpu_user_seconds_total", "seconds", "CPU time in programs"),
        ("step_cpu_system_seconds_total", "seconds", "CPU time in the kernel"),
        ("step_cpu_pressure_seconds_total", "seconds", "time with a thread waiting for a CPU (cgroup v2)"),
        ("step_memory_bytes", "bytes", "private and shared memory with /dev/shm, without file cache"),
        ("step_memory_cache_bytes", "bytes", "file cache charged to the step"),
        ("step_memory_peak_bytes", "bytes", "largest memory so far; at a kill, the cgroup's peak"),
        ("step_memory_limit_bytes", "bytes", "limit of the step's or its job's cgroup"),
        ("step_oom_kills_total", "processes", "processes killed for want of memory within the limit"),
        ("step_read_bytes_total", "bytes", "bytes read (files, sockets) since the agent saw the step"),
        ("step_written_bytes_total", "bytes", "bytes written (files, sockets) since the agent saw the step"),
        ("step_major_faults_total", "faults", "page faults that read a disk since the agent saw the step"),
        ("step_processes", "processes", "processes of the step"),
        ("step_threads", "threads", "threads of the step"),
        ("step_running_processes", "processes", "processes that run or wait for a CPU"),
        ("step_blocked_processes", "processes", "processes that wait for I/O (uninterruptible sleep)"),
        ("step_suspended_ratio", "ratio", "1 while the step is frozen or all its processes are stopped"),
    ),
]  # fmt: skip

METRICS = {metric.name: metric for metric in _TABLE}


def of_kind(kind: str) -> list[Metric]:
    """The metrics of one kind of device, in the order of the table."""
    return [metric for metric in METRICS.values() if metric.kind == kind]
