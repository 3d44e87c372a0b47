"""Checks what the operating system must provide: a compiler, Python's headers, and programs for some tests.

As root on Debian or Ubuntu, missing packages are installed with apt. Otherwise Python's headers are unpacked
from their Debian package into build/, which needs no root; for all other packages, the command that an
administrator must run is printed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

from steps import ROOT, StepError, must, say

LOGS = ROOT / "out" / "setup"
UNPACKED = ROOT / "build" / "debian"

# Debian package -> (a file or program that shows it is there, the tests that need it)
TEST_PACKAGES = {
    "libgtest-dev": ("/usr/include/gtest/gtest.h", "C++ unit tests"),
    "clang": ("clang++", "fuzzing"),
    "libclang-rt-dev": ("/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a", "fuzzing"),
    "clang-19": ("clang++-19", "device code for AMD GPUs"),
    "pkg-config": ("pkg-config", "the examples through pkg-config"),
    "chromium": ("chromium", "the report in a browser"),
    "chromium-driver": ("chromedriver", "the report in a browser"),
    "munge": ("/usr/sbin/munged", "starting under srun"),
    "slurmctld": ("/usr/sbin/slurmctld", "starting under srun"),
    "slurmd": ("/usr/sbin/slurmd", "starting under srun"),
    "slurm-client": ("srun", "starting under srun"),
    "slurmdbd": ("/usr/sbin/slurmdbd", "accounting of the virtual cluster"),
    "mariadb-server-core": ("/usr/sbin/mariadbd", "accounting of the virtual cluster"),
    "mariadb-client-core": ("mariadb", "accounting of the virtual cluster"),
    "postgresql": ("/usr/lib/postgresql/*/bin/postgres", "jobs in PostgreSQL"),
    "prometheus": ("prometheus", "samples of jobs in Prometheus"),
    "victoria-metrics": ("victoria-metrics", "samples of jobs in VictoriaMetrics"),
    "libpmix-dev": ("/usr/lib/*/pmix2/lib/libpmix.so", "starting under srun with PMIx"),
    "libsimgrid-dev": ("/usr/include/simgrid/s4u.hpp", "the simulations of apps/scale"),
    "openmpi-bin": ("mpirun.openmpi", "MPI over the plugins of NICs"),
    "libopenmpi-dev": ("/usr/lib/*/openmpi/include/mpi.h", "MPI over the plugins of NICs"),
    "mpich": ("mpiexec.mpich", "MPI over the plugins of NICs"),
    "libmpich-dev": ("mpicc.mpich", "MPI over the plugins of NICs"),
    "netpipe-openmpi": ("NPopenmpi", "NetPIPE over the plugins of NICs"),
    "hpcc": ("hpcc", "Linpack that others wrote over the plugins of NICs"),
    "libblis4-pthread": ("/usr/lib/*/blis-pthread/libblis.so.4", "apps/hpl with BLIS"),
    "ucx-utils": ("ucx_info", "what UCX sees of the plugins of NICs"),
    "libucx-dev": ("/usr/include/uct/api/uct.h", "the declarations of UCX's transports"),
    "glusterfs-server": ("glusterfsd", "the file server of `peerway rehearse`"),
    "glusterfs-client": ("glusterfs", "the file server of `peerway rehearse`"),
    "nfs-ganesha-vfs": ("/usr/lib/*/ganesha/libfsalvfs.so", "the server of NFS in `peerway rehearse`"),
    "libnfs-utils": ("nfs-cat", "the server of NFS in `peerway rehearse`"),
    "btrfs-progs": ("mkfs.btrfs", "a real quota under `peerway storage`"),
    "fio": ("fio", "the engine fio of `peerway storage`"),
    "otf2-tools": ("otf2-print", "the export of traces as OTF2 beside its own reader"),
    "gfortran": ("gfortran", "traces of MPI programs in Fortran"),
    "libsodium23": ("/usr/lib/*/libsodium.so.23", "the keyed hash beside another's"),
    "libucx0": ("/usr/lib/*/libucp.so.0", "the paths over the oldest UCX that is supported"),
}


def present(proof: str) -> bool:
    """Whether a program is on the PATH, or a file that matches an absolute pattern exists."""
    if not proof.startswith("/"):
        return shutil.which(proof) is not None
    return any(Path("/").glob(proof[1:]))


def can_install() -> bool:
    """Whether packages can be installed with apt here."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(packages: list[str]) -> None:
    """Install Debian packages as root."""
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    must("apt-get update", ["apt-get", "-q", "update"], LOGS / "apt-update.log", env)
    command = ["apt-get", "-qy", "--no-install-recommends", "install", *packages]
    must(f"apt-get install {' '.join(packages)}", [*command], LOGS / "apt-install.log", env)


def ensure_compiler() -> None:
    """Check for g++ and make sure that Python's headers are available."""
    if not (shutil.which("g++") or os.environ.get("CXX")):
        if not can_install():
            raise StepError("no C++ compiler: ask an administrator for `apt-get install g++`, or set CXX")
        apt_install(["g++"])


def install_test_packages() -> None:
    """Install what the tests need with apt, or list what is missing and which tests are skipped."""
    missing = {name: why for name, (proof, why) in TEST_PACKAGES.items() if not present(proof)}
    if not missing:
        return
    if can_install():
        apt_install(sorted(missing))
        return
    say("  these Debian packages are missing, and only root can install them:")
    for name, why in missing.items():
        say(f"    {name:<18} skipped without it: {why}")
    say(f"  ask an administrator for: apt-get install {' '.join(missing)}")


def python_has(module: str) -> bool:
    """Whether the running Python has a module."""
    return importlib.util.find_spec(module) is not None


def ensure_python_can_make_venv() -> None:
    """Install python3-venv if possible: Debian keeps venv's pip there."""
    if not python_has("ensurepip") and not os.environ.get("PEERWAY_BUILD_WHEELS") and can_install():
        apt_install([f"python3.{sys.version_info[1]}-venv"])


def headers_folder() -> Path:
    """The folder in which the running Python expects its C headers."""
    return Path(sysconfig.get_path("include"))


def python_headers() -> dict[str, str]:
    """The CMake settings that find Python.h; empty if CMake finds it without them."""
    if (headers_folder() / "Python.h").exists():
        return {}
    name = f"libpython3.{sys.version_info[1]}-dev"
    if can_install():
        apt_install([name])
        return {}
    unpack_without_root(name)
    include = UNPACKED / "usr" / "include" / f"python3.{sys.version_info[1]}"
    if not (include / "Python.h").exists():
        raise StepError(f"Python.h is missing: ask an administrator for `apt-get install {name}`")
    return {"Python_INCLUDE_DIR": str(include), "CMAKE_CXX_FLAGS": f"-isystem {UNPACKED / 'usr' / 'include'}"}


def unpack_without_root(package: str) -> None:
    """Download a Debian package with our own package lists and unpack it below build/."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return
    state = UNPACKED / "apt"
    for folder in (state / "lists" / "partial", state / "cache" / "archives" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    own = [
        "-q",
        "-o",
        f"Dir::State={state}",
        "-o",
        f"Dir::Cache={state / 'cache'}",
        "-o",
        "Debug::NoLocking=1",
    ]
    own += ["-o", "Dir::State::status=/var/lib/dpkg/status"]
    must("apt-get update, lists in build/debian", ["apt-get", *own, "update"], LOGS / "apt-update.log")
    fetch = ["sh", "-c", 'cd "$1" && shift && exec apt-get "$@"', "sh", UNPACKED, *own, "download", package]
    must(f"download {package}", [*fetch], LOGS / "apt-download.log")
    for archive in UNPACKED.glob("*.deb"):
        must(f"unpack {package}", ["dpkg-deb", "-x", archive, UNPACKED], LOGS / "apt-unpack.log")


def version_of(command: list[str]) -> tuple[int, ...]:
    """The first version number that a program prints; (0,) if the program is missing."""
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return (0,)
    match = re.search(r"(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else (0,)


def start_again_with_newer_python(oldest: tuple[int, int]) -> None:
    """Replace this process by the same script in a Python that is new enough."""
    for minor in range(16, oldest[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer and version_of([newer, "--version"]) >= oldest:
            os.execv(newer, [newer, *sys.argv])
    have = sys.version.split()[0]
    raise StepError(
        f"Python {oldest[0]}.{oldest[1]} or newer is needed, {sys.executable} is {have}; set PYTHON=..."
    )


def start_again_with_python_beneath() -> None:
    """Replace this process by the same script in the Python that this virtual environment was made from."""
    beneath = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    os.execv(beneath, [str(beneath), *sys.argv])


def fetch_pip(wheels: str | None, folder: Path) -> Path:
    """A wheel of pip, from the folder of wheels or from the configured package index."""
    if wheels:
        result = sorted(Path(wheels).glob("pip-*.whl"))
        if result:
            return result[-1]
        raise StepError(f"this Python has no ensurepip, and {wheels} holds no wheel of pip")
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    request = urllib.request.Request(
        f"{index}/pip/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        files = [
            file for file in json.load(answer)["files"] if file["filename"].endswith("-py3-none-any.whl")
        ]
    newest = max(files, key=lambda file: [int(n) for n in re.findall(r"\d+", file["filename"])])
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / str(newest["filename"])
    with urllib.request.urlopen(newest["url"], timeout=60) as answer:
        target.write_bytes(answer.read())
    return target
