"""The node checks of `peerway jobs doctor`: each yields what was found and, if something is wrong, advice."""

from __future__ import annotations

import http.client
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

from peerway_jobs.agent.cgroups import Cgroups
from peerway_jobs.agent.node_gpus import NodeGpus
from peerway_jobs.agent.processes import Processes
from peerway_jobs.agent.settings import BadSettings, Settings, read_token
from peerway_jobs.batch import Gpu
from peerway_jobs.slurm_json import SlurmFailed, ran, why_failed

_CLOCK_S = 2
_TIMEOUT_S = 10


@dataclass(slots=True)
class Diagnosis:
    """One result. `state` is ok, warning, broken, or absent if the node has nothing to check."""

    check: str
    state: str
    observed: str
    advice: str = ""


def all_checks(settings: Settings) -> Iterator[Diagnosis]:
    """Every check of this node: Slurm first, then what stands on it, and the server last."""
    slurm, why_not = scontrol("show", "config")
    yield slurm_answers(slurm, why_not)
    yield cgroup_layout(Cgroups(settings.root).version(), slurm)
    yield from hooks(slurm, Path(settings.state) / "events")
    yield from gpus(NodeGpus(settings.nvml, settings.root), slurm)
    yield rights(settings)
    yield token(settings)
    if not settings.servers():
        yield Diagnosis("server", "absent", "no server is set")
    for name in settings.servers():
        yield server(settings, name)


def scontrol(*words: str) -> tuple[str, str]:
    """The output of scontrol and ""; if scontrol fails, "" and the reason."""
    try:
        done = ran("scontrol", *words)
    except SlurmFailed as error:
        return "", str(error)
    if done.returncode:
        return "", why_failed(done)
    return done.stdout.decode(errors="replace"), ""


def setting(config: str, name: str) -> str:
    """The value of one setting in the output of `scontrol show config`; empty if it is not set."""
    match = re.search(rf"^{re.escape(name)}\s*=\s*(.*?)\s*$", config, re.MULTILINE)
    return "" if match is None or match[1] == "(null)" else match[1]


def slurm_answers(config: str, why_not: str) -> Diagnosis:
    """Whether the agent can ask Slurm about jobs that prolog and epilog did not report."""
    if why_not:
        advice = (
            "let the agent's user run scontrol (PATH, SLURM_CONF, munge): the agent asks it for jobs whose "
            "prolog did not run"
        )
        return Diagnosis("slurm", "broken", why_not, advice)
    return Diagnosis(
        "slurm", "ok", f"scontrol answers, version {setting(config, 'SLURM_VERSION') or 'unknown'}"
    )


def cgroup_layout(version: str, config: str) -> Diagnosis:
    """Whether steps are in cgroups that the agent can read."""
    track = setting(config, "ProctrackType")
    gather = setting(config, "JobAcctGatherType")
    if version == "none" or (track and "cgroup" not in track):
        return Diagnosis(
            "cgroups", "warning",
            f"cgroups {version}, ProctrackType={track or 'unknown'}: steps are measured through /proc",
            "set ProctrackType=proctrack/cgroup and TaskPlugin=task/cgroup: then no process leaves its step",
        )  # fmt: skip
    return Diagnosis(
        "cgroups",
        "ok",
        f"cgroups {version}, ProctrackType={track or 'unknown'}, JobAcctGatherType={gather or 'unknown'}",
    )


def hooks(config: str, events: Path) -> Iterator[Diagnosis]:
    """Whether prolog and epilog are installed and can pass their records to the agent."""
    for name in ("Prolog", "Epilog"):
        script = setting(config, name)
        if not config:
            continue
        if not script:
            yield Diagnosis(
                name.lower(), "broken", f"slurm.conf has no {name}",
                f"add {name}=.../{name.lower()}.sh (docs/jobs/install.md)",
            )  # fmt: skip
        elif not any(_mentions(path) for path in sorted(Path("/").glob(script.lstrip("/")))):
            yield Diagnosis(
                name.lower(), "warning", f"{name}={script} does not seem to call Peerway's interval.sh",
                f"call {name.lower()}.sh from it (docs/jobs/install.md)",
            )  # fmt: skip
        else:
            yield Diagnosis(name.lower(), "ok", script)
    flags = setting(config, "PrologFlags")
    if config and "Alloc" not in flags and "Contain" not in flags:
        yield Diagnosis(
            "prolog", "warning", f"PrologFlags={flags or '(null)'}: the prolog runs with the first step only",
            "add PrologFlags=Alloc, so that the agent also sees allocations without a step",
        )  # fmt: skip
    if not events.is_dir():
        advice = f"mkdir {events}, owned by the agent's user"
        yield Diagnosis(
            "events", "broken", f"{events} is not a folder: prolog and epilog write nothing", advice
        )
    elif not os.access(events, os.R_OK | os.W_OK | os.X_OK):
        yield Diagnosis(
            "events",
            "broken",
            f"this user cannot read and empty {events}",
            "chown it to the agent's user",
        )
    else:
        yield Diagnosis("events", "ok", f"{events}, {len(list(events.iterdir()))} records not read yet")


def _mentions(script: Path) -> bool:
    try:
        text = script.read_text(errors="replace")[: 1 << 20]
    except OSError:
        return False
    return "interval.sh" in text or "PEERWAY_JOBS_EVENTS" in text or f"/slurm/{script.name}" in text


def gpus(devices: NodeGpus, config: str) -> Iterator[Diagnosis]:
    """Whether Slurm's GPU numbers can be mapped to UUIDs, and drivers order the GPUs in the same way."""
    nvidia, amd = devices.nvidia.facts(), devices.amd.facts()
    if not nvidia and not amd:
        state = "warning" if "gpu" in setting(config, "GresTypes") else "absent"
        yield Diagnosis("gpus", state, f"no GPU: {devices.why_none()}")
    if nvidia:
        yield nvidia_numbers(nvidia)
    if amd:
        yield amd_numbers(amd, mixed=bool(nvidia))


def amd_numbers(gpus: list[Gpu], *, mixed: bool) -> Diagnosis:
    """Whether Slurm's numbers of AMD GPUs can be mapped to their unique ids."""
    divided = {gpu.parent for gpu in gpus}
    whole = [gpu for gpu in gpus if gpu.uuid not in divided]
    unnumbered = [gpu.uuid for gpu in whole if gpu.minor is None]
    if unnumbered:
        return Diagnosis(
            "gpus", "warning",
            f"{len(unnumbered)} of {len(whole)} AMD GPUs have not exactly one render node, "
            f"as {unnumbered[0]}",
            "the agent does not know which job has these; in a container, pass /dev/dri, /sys/class/drm and "
            "/sys/class/kfd in",
        )  # fmt: skip
    if mixed:
        return Diagnosis(
            "gpus", "warning",
            f"{len(whole)} AMD GPUs beside NVIDIA's: a small number of Slurm may mean either",
            "let the prolog set CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES to UUIDs",
        )  # fmt: skip
    kinds = "AMD GPUs and partitions of GPUs" if len(whole) < len(gpus) else "AMD GPUs"
    return Diagnosis("gpus", "ok", f"{len(whole)} {kinds}; the agent orders them as /dev/dri/renderDN")


def nvidia_numbers(gpus: list[Gpu]) -> Diagnosis:
    """Whether Slurm's numbers of NVIDIA GPUs can be mapped to their UUIDs."""
    whole = [gpu for gpu in gpus if gpu.parent is None]
    other = [gpu for gpu in whole if gpu.index != gpu.minor]
    names = ", ".join(f"index {gpu.index} is /dev/nvidia{gpu.minor}" for gpu in other[:3])
    if any(gpu.minor is None for gpu in whole):
        return Diagnosis(
            "gpus", "broken",
            "NVML reports no minor numbers, so Slurm's GPU numbers cannot be mapped to UUIDs",
            "run the agent where /dev/nvidia* exist; in a container, pass these devices in",
        )  # fmt: skip
    if other:
        return Diagnosis(
            "gpus", "warning",
            f"NVML's order of {len(whole)} GPUs is not that of /dev/nvidiaN, which the agent uses: {names}",
            "set ConstrainDevices=yes in cgroup.conf, or AutoDetect=nvml in gres.conf: otherwise programs "
            "use other GPUs than Slurm allocated, and the agent notes them as foreign processes",
        )  # fmt: skip
    return Diagnosis("gpus", "ok", f"{len(whole)} GPUs; NVML orders them as /dev/nvidiaN")


def rights(settings: Settings) -> Diagnosis:
    """Whether the agent has the privileges that it needs to read /proc/PID/io of other users' processes."""
    processes = Processes(settings.root)
    processes.scan()
    others = [pid for pid in processes.table if (processes.uid(pid) or 0) not in (0, os.geteuid())]
    if not others and os.geteuid() != 0:
        others = [pid for pid in processes.table if processes.uid(pid) == 0]
    if not others:
        return Diagnosis("rights", "absent", "not checked: no process of another user runs here")
    if any(processes.io(pid) is not None for pid in others[:20]):
        return Diagnosis("rights", "ok", "/proc/PID/io of other users can be read")
    return Diagnosis(
        "rights", "broken", "/proc/PID/io of other users cannot be read",
        "give the agent CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, as its systemd unit does",
    )  # fmt: skip


def token(settings: Settings) -> Diagnosis:
    """Whether a server is set and its token file can be read by the agent alone."""
    if not settings.server:
        return Diagnosis("token", "absent", "no server is set, so the agent sends nothing")
    try:
        read_token(Path(settings.token_file))
    except BadSettings as error:
        return Diagnosis("token", "broken", str(error), "store the node's token there, mode 0600")
    return Diagnosis("token", "ok", f"only the agent can read {settings.token_file}")


def server(settings: Settings, name: str) -> Diagnosis:
    """Whether a server answers (over TLS if its address is https) and its clock agrees with this node's."""
    address = urlsplit(name)
    host, port = str(address.hostname), address.port
    try:
        connect: Callable[[], http.client.HTTPConnection]
        if address.scheme == "https":
            context = ssl.create_default_context(cafile=settings.ca_file or None)
            connect = lambda: http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)  # noqa: E731
        else:
            connect = lambda: http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)  # noqa: E731
        connection = connect()
        connection.request("GET", f"{address.path.rstrip('/')}/api/v1/agent/batches")
        response = connection.getresponse()
        response.read(65536)
        now = time.time()
        connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        advice = "check the address, the firewall and, for TLS, ca_file"
        return Diagnosis("server", "broken", f"{name}: {error.__class__.__name__}: {error}", advice)
    try:
        wrong = now - parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
    except (ValueError, TypeError):
        return Diagnosis("server", "warning", f"{name} answers without a date, so its clock is unknown")
    if abs(wrong) > _CLOCK_S + 1:  # the Date header has whole seconds
        advice = (
            "run chrony or ntpd on both; until then the server dates this node's batches by its own clock"
        )
        return Diagnosis("clock", "warning", f"this node's clock is {wrong:+.0f} s off the server's", advice)
    return Diagnosis("server", "ok", f"{name} answers, and its clock agrees")
