"""Run unmodified MPI programs over a NIC plugin: find out which MPI an mpirun belongs to, and which variables
its ranks need.

UCX, which both Open MPI and MPICH use, is given one more transport by a library that is preloaded into the
ranks (docs/nic/mpi-over-nics.md). Only the ranks get it: the launcher's own processes have no use for it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from peerway import _core
from peerway.launch.preload import preload

LIBRARY = "libpeerway_uct.so"
SECRET = "PEERWAY_NIC_SECRET"
TRACE = (  # variables of `peerway trace`
    "PEERWAY_TRACE_DIR",
    "PEERWAY_TRACE_MEMORY",
    "PEERWAY_TRACE_LEVEL",
    "PEERWAY_TRACE_RANKS",
    "PEERWAY_TRACE_EVENTS",
)
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
LIBRARIES = {
    "openmpi": (b"libmpi.so.40",),
    "mpich": (b"libmpi.so.12", b"libmpich.so.12"),
}  # which programs need
BETWEEN_HOSTS = "PEERWAY_MPI_BETWEEN_HOSTS"  # OMPI_MCA_osc of ranks that are not all on one host


class MpiError(Exception):
    """The program cannot be started; the message says why."""


@dataclass(frozen=True)
class Launcher:
    """An mpirun, and the MPI that it belongs to."""

    path: str
    kind: str  # "openmpi" or "mpich"


def find_launcher(named: str | None) -> Launcher:
    """Find the mpirun, and ask it which MPI it belongs to. Raises MpiError."""
    names = [named] if named else ["mpirun", "mpiexec"]
    path = next((result for name in names if (result := shutil.which(name))), None)
    if path is None and named:
        raise MpiError(f"there is no command {named}; --mpirun names the mpirun of an MPI")
    if path is None:
        raise MpiError(
            "no mpirun and no mpiexec in PATH; install Open MPI or MPICH, or name theirs with --mpirun"
        )
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=60, env=_as_root()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MpiError(f"{path} --version failed: {error}") from error
    text = answer.stdout + answer.stderr
    if "Open MPI" in text or "OpenRTE" in text:
        return Launcher(path, "openmpi")
    if "HYDRA" in text:
        return Launcher(path, "mpich")
    first = text.strip().splitlines()[0] if text.strip() else "nothing"
    raise MpiError(
        f"{path} belongs to an unknown MPI: --version says '{first}'; use that of Open MPI or MPICH"
    )


def check_program(launcher: Launcher, program: str) -> None:
    """Refuse a program that was linked with another MPI than the launcher's: its ranks would not find one
    another, and each would run alone. Scripts, and programs that load their MPI, cannot be checked.
    """
    path = shutil.which(program)
    if path is None:
        return  # the launcher will report that
    try:
        with Path(path).open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return
            content = file.read()
    except OSError:
        return
    needs = {kind: name for kind, names in LIBRARIES.items() for name in names if name + b"\0" in content}
    if needs and launcher.kind not in needs:
        kind, library = next(iter(needs.items()))
        raise MpiError(
            f"{program} was built with {NAMES[kind]} (it needs {library.decode()}), but {launcher.path} "
            f"belongs to {NAMES[launcher.kind]}: each rank would run alone. Give the mpirun of {NAMES[kind]} "
            "with --mpirun"
        )


def _as_root() -> dict[str, str]:
    """The environment with Open MPI's permission to run it as root."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **allowed}


def transport_library() -> Path:
    """Find the library that gives UCX the transport. Raises MpiError."""
    if named := os.environ.get("PEERWAY_UCT_LIBRARY"):
        if Path(named).is_file():
            return Path(named).resolve()
        raise MpiError(f"PEERWAY_UCT_LIBRARY={named} is not a file")
    core = Path(_core.__file__).parent
    for folder in (core / "lib", core):
        if (folder / LIBRARY).is_file():
            return folder / LIBRARY
    raise MpiError(f"{LIBRARY} is not installed with this Peerway ({core / 'lib'}); build it anew")


def nic_for_ranks(nic: str) -> str:
    """Name the NIC so that ranks find it from any folder. Raises MpiError and peerway.Error."""
    named = _core.nic_spec(nic, "--nic")
    if not Path(named.file).is_file():
        raise MpiError(f"--nic {nic}: there is no file {named.file}")
    return f"{named.file}?{named.options}" if named.options else named.file


def rank_environment(launcher: Launcher, nic: str) -> dict[str, str]:
    """The variables of the ranks. Raises MpiError and peerway.Error."""
    variables = {
        "PEERWAY_NIC": nic_for_ranks(nic),
        "PEERWAY_NIC_JOB": str(secrets.randbits(63)),
        "UCX_TLS": "peerway",
        "UCX_ADDRESS_VERSION": "v2",  # the older form holds only 63 bytes of address
    }
    variables |= {name: os.environ[name] for name in TRACE if name in os.environ}
    variables |= preload(transport_library(), os.environ)
    if launcher.kind == "openmpi":
        variables |= {
            "OMPI_MCA_pml": "ucx",
            **_windows(_components(launcher)),
            # Otherwise Open MPI uses UCX only with transports that it knows.
            "OMPI_MCA_opal_common_ucx_tls": "any",
            "OMPI_MCA_opal_common_ucx_devices": "any",
        }
    else:
        # Otherwise MPICH uses its own shared memory between the ranks of a node.
        variables["MPIR_CVAR_NOLOCAL"] = "1"
    return variables


def command_over_nic(
    launcher: Launcher, nic: str, ranks: int, extra: list[str], program: list[str]
) -> tuple[list[str], dict[str, str]]:
    """The command line, and the environment of the launcher. Raises MpiError and peerway.Error.

    All users of the host can read the command line, but not the environment. So the command line only names
    the variable of the secret.
    """
    variables = rank_environment(launcher, nic)
    environment = {**os.environ, SECRET: secrets.token_hex(16)}
    words = [launcher.path]
    if launcher.kind == "openmpi":
        environment |= {name: value for name, value in variables.items() if name.startswith("OMPI_MCA_")}
        for name, value in variables.items():
            if not name.startswith("OMPI_MCA_"):
                words += ["-x", f"{name}={value}"]
        words += ["-x", SECRET]
    else:  # MPICH's launcher passes its whole environment on
        for name, value in variables.items():
            words += ["-genv", name, value]
    return [*words, "-n", str(ranks), *extra, *program], environment


def _components(launcher: Launcher) -> str:
    """Ask an Open MPI for its components. Raises MpiError when it was built without UCX."""
    folder = Path(launcher.path).parent
    name = Path(launcher.path).name
    info = folder / name.replace("mpirun", "ompi_info").replace("mpiexec", "ompi_info").removesuffix(
        ".openmpi"
    )
    if not info.is_file():
        return ""
    listing = subprocess.run(
        [str(info), "--parsable"], capture_output=True, text=True, check=False, env=_as_root()
    ).stdout
    if listing and "mca:pml:ucx:" not in listing:
        raise MpiError(f"the Open MPI of {launcher.path} was built without UCX ({info} lists no pml ucx)")
    return listing


def _windows(components: str) -> dict[str, str]:
    """Choose the component for one-sided windows.

    Open MPI's osc/ucx gives wrong results (docs/nic/mpi-over-nics.md says for what). Its osc/rdma is right,
    but uses Open MPI's own transports; osc/sm has the windows in shared memory. Open MPI 4 also has
    osc/pt2pt, which is made of messages and is used for windows of a single rank.

    Between hosts, Open MPI 4's osc/rdma cannot be used and osc/pt2pt waits for ever, so only osc/ucx is left.
    A component that the user names is kept. osc/ucx needs no other transport.
    """
    old = "mca:osc:pt2pt:" in components
    named = dict(os.environ).get("OMPI_MCA_osc")
    osc = named or ("rdma,sm,pt2pt" if old else "rdma,sm")
    own = "rdma" in osc.split(",")
    variables = {"OMPI_MCA_osc": osc, "OMPI_MCA_btl": "self,vader,tcp" if own else "self"}
    if old and not named:
        variables[BETWEEN_HOSTS] = "ucx,sm"
    return variables


def replace_process(words: list[str], environment: dict[str, str]) -> int:
    """Replace this process by the launcher, whose signals and exit code are then those of this command."""
    try:
        os.execve(words[0], words, environment)
    except OSError as error:
        raise MpiError(f"{words[0]} cannot be run: {error.strerror}") from error
