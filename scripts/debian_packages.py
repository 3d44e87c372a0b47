"""Builds the Debian packages: `libpeerway0` and `libpeerway-dev` for C and C++ programs, and `peerway`.

CMake's packer makes the first two. `peerway` has the command, the Python package and all that they need in
/opt/peerway, because the Python packages of Debian 12 and Ubuntu 24.04 are too old. It uses the system's
Python, so it is built for each system of which a bare root can be made.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import bare_roots
import distributions
from checklist import Skipped
from steps import ROOT, VENV, StepError, must

CONTROL = """Package: peerway
Version: {version}~{system}
Architecture: amd64
Maintainer: The Peerway maintainers <maintainers@peerway.example>
Depends: python3 (>= {python}), python3 (<< {next_python}), libstdc++6 (>= 11), libc6 (>= 2.34)
Section: net
Priority: optional
Homepage: https://github.com/peerway/peerway
Description: the direct way between two memories
 Peerway finds every path that bytes can take between GPUs and hosts, measures
 each, and moves data by the table. This package has the command peerway with
 measuring and the agent of jobs, in /opt/peerway.
"""
"""What dpkg reads; the system's name in the version keeps packages for different Pythons apart."""
TRY = """
dpkg --install /wheels/*.deb
peerway --help >/dev/null
peerway run -n 2 -- /opt/peerway/bin/python /wheels/put.py
peerway bench put_latency --device host --sizes 8 --quick >/dev/null
dpkg --remove peerway
! command -v peerway
test ! -e /opt/peerway
"""


def build(folder: Path, build_folder: Path, logs: Path) -> str:
    """Build all packages into the folder with the wheels, and try them where a bare system can be made."""
    for program in ("dpkg-deb", "dpkg-shlibdeps", "cpack"):
        if shutil.which(program) is None:
            raise Skipped(f"{program} is missing: apt-get install dpkg-dev cmake")
    names = _libraries(folder, build_folder / "debian", logs / "debian-libraries.log")
    for system in bare_roots.SYSTEMS[:2]:
        names.append(_command(system, folder, build_folder, logs / f"{system.name}-package.log"))
    return ", ".join(names)


def _libraries(folder: Path, build_folder: Path, log: Path) -> list[str]:
    """Let CPack make the packages of the library and of its headers from an ordinary build."""
    settings = ["-DPEERWAY_PYTHON=OFF", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INSTALL_PREFIX=/usr"]
    settings += ["-DPEERWAY_MANYLINUX=ON", f"-DPython_EXECUTABLE={VENV / 'bin' / 'python'}"]
    must("configure for Debian", ["cmake", "-S", ROOT, "-B", build_folder, "-G", "Ninja", *settings], log)
    must("compile for Debian", ["cmake", "--build", build_folder], log)
    packages = build_folder / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    config = build_folder / "CPackConfig.cmake"
    must(
        "pack libpeerway0 and libpeerway-dev", ["cpack", "--config", config, "-G", "DEB", "-B", packages], log
    )
    made = sorted(packages.glob("*.deb"))
    for package in made:
        shutil.copy(package, folder)
    return [package.name for package in made]


def _command(system: bare_roots.System, folder: Path, build_folder: Path, log: Path) -> str:
    """Make the package `peerway` in a bare system, and try it in another one."""
    root = build_folder / f"package-{system.name}"
    wheels = build_folder / f"try-{system.python}" / "wheels"
    if not wheels.is_dir():
        raise StepError(f"the wheels for Python {system.python} were not tried, so there is nothing to pack")
    name = f"peerway_{distributions.version()}~{system.name}_amd64.deb"
    shutil.rmtree(root, ignore_errors=True)
    try:
        bare_roots.unpack(system, root, log)
        shutil.copytree(wheels, root / "wheels")
        inside = bare_roots.enter(root)
        install = (
            "python3 -m venv --without-pip /opt/peerway && python3 -m venv /tmp/pip && /tmp/pip/bin/pip "
        )
        install += "--python /opt/peerway/bin/python install --no-index --find-links /wheels "
        install += "peerway peerway-measure peerway-jobs"
        must(f"install what {name} has", [*inside, "sh", "-ec", install], log)
        _pack(system, root, folder / name, log)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    _try(system, folder / name, wheels, root, log)
    return name


def _pack(system: bare_roots.System, root: Path, package: Path, log: Path) -> None:
    """Make a package of /opt/peerway in a root, with a link in /usr/bin."""
    tree = root / "package"
    for part in ("DEBIAN", "opt", "usr/bin", "usr/share/doc/peerway"):
        (tree / part).mkdir(parents=True)
    shutil.move(root / "opt" / "peerway", tree / "opt" / "peerway")
    (tree / "usr" / "bin" / "peerway").symlink_to("/opt/peerway/bin/peerway")
    shutil.copy(ROOT / "LICENSE", tree / "usr" / "share" / "doc" / "peerway" / "copyright")
    major, _, minor = system.python.partition(".")
    fields = {"version": distributions.version(), "system": system.name, "python": system.python}
    control = CONTROL.format(**fields, next_python=f"{major}.{int(minor) + 1}")
    (tree / "DEBIAN" / "control").write_text(control)
    must(
        f"pack {package.name}",
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-z2", "--build", tree, package],
        log,
    )


def _try(system: bare_roots.System, package: Path, wheels: Path, root: Path, log: Path) -> None:
    """Install, use and remove the package on a bare system."""
    try:
        bare_roots.unpack(system, root, log)
        (root / "wheels").mkdir()
        shutil.copy(package, root / "wheels")
        shutil.copy(wheels / "put.py", root / "wheels")
        must(f"try {package.name}", [*bare_roots.enter(root), "sh", "-ec", TRY], log)
    finally:
        shutil.rmtree(root, ignore_errors=True)
