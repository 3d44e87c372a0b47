"""The transports over which one MPI program is run (UCX's own, and a NIC), and the commands for them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hosts import Network, address, mpi_words

from peerway.launch.mpi import Launcher, find_launcher

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build" / "mpi"
LIMIT = 600.0  # seconds; a longer run counts as hanging


class Failed(Exception):
    """A run failed; the message says why."""


@dataclass(frozen=True, slots=True)
class Transport:
    """A way to move the bytes. `tls` are the only UCX transports that may be used; a NIC's is `peerway`."""

    name: str  # the name in records
    tls: str
    devices: str = "all"  # UCX's devices
    nic: dict[str, object] | None = None  # content of the torus file
    between_hosts: bool = False

    @property
    def engine(self) -> bool:
        """Whether a NIC's thread moves the bytes and needs a core besides those of the ranks."""
        return self.nic is not None and (self.between_hosts or "timed" in self.nic)


APART: dict[str, object] = {"extents": [2], "nodes": {"0": address(0), "1": address(1)}}
TRANSPORTS = (
    Transport("tcp", "tcp", devices="lo"),
    Transport("posix", "posix"),
    Transport("posix+cma", "posix,cma"),
    Transport("sysv", "sysv"),
    Transport("nic:torus", "peerway", nic={"extents": [2]}),
    Transport("nic:torus/timed", "peerway", nic={"extents": [2], "timed": True}),
    Transport("tcp/hosts", "tcp", devices="eth0", between_hosts=True),
    Transport("nic:torus/hosts", "peerway", nic=APART, between_hosts=True),
)


class Mpi:
    """An MPI: its launcher, and pingpong.c compiled by its compiler."""

    def __init__(self, mpirun: str, mpicc: str) -> None:
        self.launcher: Launcher = find_launcher(mpirun)
        compiler = shutil.which(mpicc)
        if compiler is None:
            raise Failed(f"there is no command {mpicc}; --mpicc names the compiler of the MPI of {mpirun}")
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.program = FOLDER / "pingpong"
        flags = ["-O2", "-std=c11", "-D_GNU_SOURCE"]
        _output([compiler, *flags, str(HERE / "pingpong.c"), "-o", str(self.program)])
        self.version = _output([self.launcher.path, "--version"]).strip().splitlines()[0]
        if self.launcher.kind == "mpich":
            numbers = re.search(r"Version:\s+(\S+)", _output([self.launcher.path, "--version"]))
            self.version = f"MPICH {numbers[1]}" if numbers else "MPICH"

    def measure(
        self, transport: Transport, test: str, sizes: str, count: int, hosts: Network | None
    ) -> list[dict[str, object]]:
        """Run the program; returns its results, one for each size."""
        output = _output(self._command(transport, hosts, {}, test, sizes, str(count)))
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]

    def ask_ucx(self, transport: Transport, hosts: Network | None) -> dict[str, str]:
        """UCX's version. Raises Failed if UCX uses other lanes than those of the transport."""
        output = _output(
            self._command(transport, hosts, {"UCX_LOG_LEVEL": "info"}, "latency", "8,65536", "10")
        )
        version = re.search(r"UCX +INFO +Version (\S+)", output)
        lines = [line for line in output.splitlines() if re.search(r"INFO.*cfg[#\[]", line)]
        lanes = " ".join(names for line in lines for names in re.findall(r"\w\(([^()]+)\)", line)).split()
        used = {lane.split("/")[0] for lane in lanes}
        if version is None or not used or not used <= {*transport.tls.split(",")}:
            raise Failed(
                f"{transport.name}: UCX should use {transport.tls} and uses {sorted(used)}:\n{output}"
            )
        return {"mpi": self.version, "ucx": version[1]}

    def _command(
        self, transport: Transport, hosts: Network | None, variables: dict[str, str], *arguments: str
    ) -> list[str]:
        openmpi = self.launcher.kind == "openmpi"
        words = ["--bind-to", "none"]
        if transport.engine and openmpi:
            words += ["--mca", "mpi_yield_when_idle", "1"]
        if transport.between_hosts:
            assert hosts is not None
            words += mpi_words(openmpi, hosts.names[:2], hosts.agent(FOLDER))
        variables = {"UCX_NET_DEVICES": transport.devices, **variables}
        program = [str(self.program), *arguments]
        if transport.nic is None:
            command = [self.launcher.path, "-n", "2", *words, *self._only(transport, variables), *program]
        else:
            words += self._variables(variables)
            command = [sys.executable, "-m", "peerway", "mpirun", "--nic", _nic(transport), "-n", "2"]
            command += ["--mpirun", self.launcher.path]
            command += [*(f"--launcher-option={word}" for word in words), "--", *program]
        return hosts.from_head(command) if transport.between_hosts and hosts is not None else command

    def _only(self, transport: Transport, variables: dict[str, str]) -> list[str]:
        """The words that restrict an MPI to this transport, as `peerway mpirun` does for a NIC."""
        words = self._variables({**variables, "UCX_TLS": transport.tls})
        if self.launcher.kind == "mpich":
            return [*words, *self._variables({"MPIR_CVAR_NOLOCAL": "1"})]
        settings = {"pml": "ucx", "osc": "ucx", "btl": "self"}
        settings |= {"opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
        return words + [word for name, value in settings.items() for word in ("--mca", name, value)]

    def _variables(self, variables: dict[str, str]) -> list[str]:
        if self.launcher.kind == "openmpi":
            return [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        return [word for name, value in variables.items() for word in ("-genv", name, value)]


def _nic(transport: Transport) -> str:
    file = FOLDER / f"{transport.name.replace('/', '-').replace(':', '-')}.json"
    file.write_text(json.dumps(transport.nic))
    return f"torus?{file}"


def _output(command: list[str]) -> str:
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LIMIT, env={**os.environ, **allowed}
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}: not done after {LIMIT:.0f} s") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
