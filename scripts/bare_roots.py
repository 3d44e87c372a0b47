"""Makes bare systems in folders: a Linux distribution with Python and nothing else, made from its packages.

Wheels are installed there as a user would, without a network and without a compiler. Debian and Ubuntu are
made by mmdebstrap, Rocky Linux by dnf --installroot. Both need root, or a user namespace.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checklist import Skipped
from steps import ROOT, StepError, must

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE = ROOT / "build" / "release" / "roots"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
# Of that package. It has Ubuntu's keys 790BC7277767219C42C86F933B4FE6ACC0B21F32 and
# F6ECB3762474EDA9D21B7022871920D1991BC93C.
KEYRING_SHA256 = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
ROCKY = "https://dl.rockylinux.org/pub/rocky/9"


@dataclass(frozen=True)
class System:
    """A system that the wheels must work on: where its packages are, and which Python it has."""

    name: str
    python: str  # the version of its python3, or of the package to install
    mirror: str
    suite: str = ""  # of Debian and Ubuntu
    components: str = "main"  # Ubuntu has python3-venv in universe
    keyring: str = ""  # the mirror's package with the signing keys, if Debian's keys do not apply


SYSTEMS = (
    System("debian-12", "3.11", "http://deb.debian.org/debian", "bookworm"),
    System("debian-13", "3.13", "http://deb.debian.org/debian", "trixie"),
    System(
        "ubuntu-24.04",
        "3.12",
        UBUNTU,
        "noble",
        components="main,universe",
        keyring="pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
    ),
    System("rocky-9", "3.12", ROCKY),
)
# Runs a command in a root, with /proc, /dev and shared memory of its own, and no variable of this machine.
_ENTER = """
root=$1; shift
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
exec env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" "$@"
"""


@contextmanager
def fresh(system: System, folder: Path, log: Path, *packages: str) -> Iterator[Path]:
    """Give a root of a system, with these packages more, and remove it again. Its archive is made once."""
    archive = CACHE / f"{'-with-'.join((system.name, *packages[:1]))}.tar"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        if not archive.is_file():
            _make(system, archive, log, packages)
        folder.mkdir(parents=True)
        options = ["--exclude=./dev/*", "--numeric-owner"]
        must(f"unpack {archive.stem}", ["tar", "-C", folder, *options, "-xf", archive], log)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def enter(root: Path) -> list[object]:
    """The words to put before a command to run it in a root, in namespaces of its own."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", _ENTER, "sh", root]


def _make(system: System, archive: Path, log: Path, packages: tuple[str, ...]) -> None:
    program = "mmdebstrap" if system.suite else "dnf"
    if not _is_reached(system):
        raise Skipped(f"its packages are not reached from here ({system.mirror})")
    if shutil.which(program) is None:
        raise Skipped(f"{program} is missing: apt-get install {program}")
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(".unfinished.tar")
    title = f"make {archive.stem} from its packages"
    if system.suite:
        # Every system that people use has apt, and with it the C++ runtime; Ubuntu's minbase has not.
        include = f"--include={','.join(('apt', 'python3-venv', *packages))}"
        content = ["--variant=minbase", f"--components={system.components}", include]
        with _keyring(system, log) as keys:
            must(title, ["mmdebstrap", *content, *keys, system.suite, unfinished, system.mirror], log)
    else:
        folder = archive.with_suffix("")
        shutil.rmtree(folder, ignore_errors=True)
        sources = [
            f"--repofrompath={name},{system.mirror}/{name}/x86_64/os" for name in ("BaseOS", "AppStream")
        ]
        keys = [
            f"--setopt={name}.gpgkey={system.mirror}/RPM-GPG-KEY-Rocky-9" for name in ("BaseOS", "AppStream")
        ]
        options = ["-y", "--releasever=9", "--disablerepo=*", "--enablerepo=BaseOS,AppStream"]
        python = f"python{system.python}"
        content = ["bash", "coreutils-single", python, f"{python}-pip", *packages]
        must(title, ["dnf", *sources, *keys, *options, f"--installroot={folder}", "install", *content], log)
        must(f"pack {system.name}", ["tar", "-C", folder, "-cf", unfinished, "."], log)
        shutil.rmtree(folder)
    unfinished.rename(archive)


@contextmanager
def _keyring(system: System, log: Path) -> Iterator[list[str]]:
    """The option that names the keys of a system with Debian packages, out of its own package of keys."""
    if not system.keyring:
        yield []
        return
    # apt reads keys as a user of its own, which cannot enter a clone in root's home.
    with tempfile.TemporaryDirectory() as temporary:
        package, folder = Path(temporary) / "keyring.deb", Path(temporary) / "keyring"
        with urllib.request.urlopen(f"{system.mirror}/{system.keyring}", timeout=60) as answer:
            package.write_bytes(answer.read())
        if hashlib.sha256(package.read_bytes()).hexdigest() != KEYRING_SHA256:
            raise StepError(
                f"{system.mirror}/{system.keyring} is not the package of keys that this script knows"
            )
        must(f"unpack the keys of {system.name}", ["dpkg-deb", "-x", package, folder], log)
        Path(temporary).chmod(0o755)
        yield [f"--keyring={folder / 'usr' / 'share' / 'keyrings' / 'ubuntu-archive-keyring.gpg'}"]


def _is_reached(system: System) -> bool:
    """Whether a system's packages can be downloaded from here."""
    page = f"{system.mirror}/dists/{system.suite}/Release" if system.suite else f"{system.mirror}/BaseOS/"
    try:
        with urllib.request.urlopen(page, timeout=20):
            return True
    except OSError:
        return False
