"""Builds the source archive and the wheels of every distribution.

Each wheel is built from its source archive, as an installer does if it finds no wheel for its Python. The
five distributions in pure Python have one wheel each. The library has one for each Python, because the tracer
reads the interpreter's frames, which the stable ABI (abi3) does not expose.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from pathlib import Path

import products
from steps import ROOT, VENV, StepError, must

FOLDERS = {"peerway": ROOT, **{f"peerway-{name}": ROOT / name for name in products.PRODUCTS}}
PIP = ["-m", "pip", "--disable-pip-version-check"]
SDIST = "import sys, scikit_build_core.build as backend; backend.build_sdist(sys.argv[1])"


def version() -> str:
    """The version of all distributions, from the one file that states it."""
    match = re.search(r"project\(peerway VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert match is not None
    return match[1]


def build_sdists(python: Path, folder: Path, log: Path) -> None:
    """Make the source archive of each distribution in a folder. `python` must have what builds need."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in FOLDERS.items():
        in_source = ["sh", "-ec", 'cd "$1"; shift; exec "$@"', "sh", source]
        must(f"archive {name}", [*in_source, python, "-c", SDIST, folder], log)


def sdist(folder: Path, name: str) -> Path:
    """The source archive of a distribution in a folder of them. Raises StepError if it is missing."""
    archive = folder / f"{name.replace('-', '_')}-{version()}.tar.gz"
    if not archive.is_file():
        raise StepError(f"there is no {archive.name} in {folder}: the source archives come before the wheels")
    return archive


def build_pure_wheels(python: Path, sdists: Path, folder: Path, log: Path) -> None:
    """Make the wheels of all distributions except the library from their source archives."""
    archives = [sdist(sdists, name) for name in FOLDERS if name != "peerway"]
    command = [python, *PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    must("wheels in pure Python", [*command, "--wheel-dir", folder, *archives], log)


def build_library_wheel(python: Path, sdists: Path, folder: Path, build: Path, log: Path) -> Path:
    """Compile the library for one Python and make its wheel, for this machine's C library.

    The archive is unpacked below `build`. Use the same `build` for each Python, so that ccache recognises the
    sources.
    """
    source = unpack_library(sdists, build)
    folder.mkdir(parents=True, exist_ok=True)
    before = {*folder.glob("*.whl")}
    command = [
        python,
        *PIP,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        folder,
    ]
    command += [f"--config-settings=build-dir={build / 'cmake'}"]
    command += [
        f"--config-settings=cmake.define.{name}={value}" for name, value in library_settings().items()
    ]
    must(f"compile the library for {python.parent.parent.name}", [*command, source], log)
    (wheel,) = {*folder.glob("*.whl")} - before
    return wheel


def unpack_library(sdists: Path, build: Path) -> Path:
    """Unpack the library's source archive, and nothing else, below `build`; gives its folder."""
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    with tarfile.open(sdist(sdists, "peerway")) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(build, filter="data")
        else:  # Python 3.11 before 3.11.4; the archive was made here
            archive.extractall(build)
    return build / f"peerway-{version()}"


def library_settings() -> dict[str, object]:
    """Give CMake's settings of all that is published: each Python gets the same compiler and the same header
    libraries, those of .venv. A Python that was compiled elsewhere names a compiler of its own.
    """
    folders = {"peerway_fmt": "cmeel.prefix/include", "peerway_json": "nlohmann_json/include"}
    places = {name: [*VENV.glob(f"lib/python*/site-packages/{place}")] for name, place in folders.items()}
    headers = {f"{name}_INCLUDE": paths[0] for name, paths in places.items() if paths}
    compilers = {
        f"CMAKE_{name}_COMPILER": shutil.which(os.environ.get(variable, default)) or default
        for name, variable, default in (("C", "CC", "gcc"), ("CXX", "CXX", "g++"))
    }
    return {"PEERWAY_MANYLINUX": "ON", **headers, **compilers}
