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
Maintainer: The Peerway maintainers (https://github.com/peerway/peerway/issues)
Depends: python3 (>= {python}), python3 (<< {next_python}), libstdc++6 (>= 11), libc6 (>= 2.34)
Section: net
Priority: optional
Homepage: https://github.com/peerway/peerway
Description: one-sided communication between GPUs and hosts
 Peerway finds every path that bytes can take between GPUs and hosts, measures
 each, and moves data by the table. This package has the command peerway with
 measuring and the agent of jobs, in /opt/peerway.
"""
"""What dpkg reads; the system's name in the version keeps packages for different Pythons apart."""
TRY = """
dpkg --install /wheels/*.deb
peerway --help >/dev/null
peerway doctor >/dev/null
peerway run -n 2 -- /opt/peerway/bin/python /wheels/put.py
peerway bench put_latency --device host --sizes 8 --quick >/dev/null
dpkg --remove peerway
! command -v peerway
test ! -e /opt/peerway
"""
COMPILER = ("gcc", "libc6-dev", "make", "cmake", "pkgconf")  # what a program in C needs beside libpeerway-dev


def build_libraries(folder: Path, build_folder: Path, logs: Path) -> str:
    """Let CPack make the packages of the library and of its headers from an ordinary build."""
    for program in ("dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(program) is None:
            raise Skipped(f"{program} is missing: apt-get install dpkg-dev")
    # In the folders of the wheels, by the CMake that compiled them: ccache then knows all of it.
    programs = next(iter(sorted(build_folder.glob("python-*/bin"))), None)
    if programs is None:
        raise StepError("no wheel of the library was built, and the packages are compiled as the wheels are")
    source = distributions.unpack_library(folder, build_folder / "library")
    tree, packages, log = source.parent / "cmake", build_folder / "debian-packages", logs / "debian.log"
    settings: dict[str, object] = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_INSTALL_PREFIX": "/usr"}
    settings |= {"PEERWAY_PYTHON": "OFF", "Python_EXECUTABLE": VENV / "bin" / "python"}
    settings |= distributions.library_settings()
    defines = [f"-D{name}={value}" for name, value in settings.items()]
    must("configure for Debian", [programs / "cmake", "-S", source, "-B", tree, "-G", "Ninja", *defines], log)
    must("compile for Debian", [programs / "cmake", "--build", tree], log)
    shutil.rmtree(packages, ignore_errors=True)
    pack = [programs / "cpack", "--config", tree / "CPackConfig.cmake", "-G", "DEB", "-B", packages]
    must("pack libpeerway0 and libpeerway-dev", pack, log)
    names = sorted(package.name for package in packages.glob("*.deb"))
    for name in names:
        shutil.copy(packages / name, folder)
    return ", ".join(names)


def build_command(system: bare_roots.System, folder: Path, build_folder: Path, logs: Path) -> str:
    """Make the package `peerway` in a bare system, and try it in another one."""
    log = logs / f"{system.name}-package.log"
    root = build_folder / f"package-{system.name}"
    wheels = build_folder / f"try-{system.python}" / "wheels"
    if not wheels.is_dir():
        raise StepError(f"the wheels for Python {system.python} were not tried, so there is nothing to pack")
    name = f"peerway_{distributions.version()}~{system.name}_amd64.deb"
    with bare_roots.fresh(system, root, log):
        shutil.copytree(wheels, root / "wheels")
        inside = bare_roots.enter(root)
        install = (
            "python3 -m venv --without-pip /opt/peerway && python3 -m venv /tmp/pip && /tmp/pip/bin/pip "
        )
        install += "--python /opt/peerway/bin/python install --no-index --find-links /wheels "
        install += "peerway peerway-measure peerway-jobs"
        must(f"install what {name} has", [*inside, "sh", "-ec", install], log)
        _pack(system, root, folder / name, log)
    with bare_roots.fresh(system, root, log):
        (root / "wheels").mkdir()
        shutil.copy(folder / name, root / "wheels")
        shutil.copy(wheels / "put.py", root / "wheels")
        must(f"try {name}", [*bare_roots.enter(root), "sh", "-ec", TRY], log)
    return f"{name}, {(folder / name).stat().st_size / 1e6:.1f} MB"


def try_libraries(system: bare_roots.System, folder: Path, build_folder: Path, logs: Path) -> str:
    """Compile and run programs in C where only a compiler and our three packages are."""
    log = logs / f"{system.name}-c.log"
    root = build_folder / f"c-{system.name}"
    packages = [
        *folder.glob("libpeerway*.deb"),
        folder / f"peerway_{distributions.version()}~{system.name}_amd64.deb",
    ]
    lacking = [package.name for package in packages if not package.is_file()]
    if lacking or len(packages) != 3:
        raise StepError(f"libpeerway0, libpeerway-dev and peerway are not all there: {lacking or packages}")
    with bare_roots.fresh(system, root, log, *COMPILER):
        (root / "try").mkdir()
        for path in (*packages, ROOT / "packaging" / "try_debs.sh", ROOT / "examples" / "c" / "put.c"):
            shutil.copy(path, root / "try")
        must(
            f"compile in C on {system.name}", [*bare_roots.enter(root), "sh", "/try/try_debs.sh", "/try"], log
        )
    lines = log.read_text().splitlines()
    return ", ".join(line for line in lines if line.startswith(("pkg-config:", "CMake:")))


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
        ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", tree, package],
        log,
    )
