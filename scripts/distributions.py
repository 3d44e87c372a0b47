"""Builds the source archive and the wheels of every distribution.

Each wheel is built from its source archive, as an installer does if it finds no wheel for its Python. The
five distributions in pure Python have one wheel each. The library has one for each Python, because the tracer
reads the interpreter's frames, which the stable ABI (abi3) does not expose.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

import products
from steps import ROOT, VENV, StepError, must

FOLDERS = {"peerway": ROOT, **{f"peerway-{name}": ROOT / name for name in products.PRODUCTS}}
PIP = ["-m", "pip", "--disable-pip-version-check"]
LIBRARY_SETTINGS = {"PEERWAY_MANYLINUX": "ON"}
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
    shutil.rmtree(build, ignore_errors=True)
    for part in (folder, build):
        part.mkdir(parents=True, exist_ok=True)
    before = {*folder.glob("*.whl")}
    with tarfile.open(sdist(sdists, "peerway")) as archive:
        archive.extractall(build, filter="data")
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
    settings = {**LIBRARY_SETTINGS, **_headers()}
    command += [f"--config-settings=cmake.define.{name}={value}" for name, value in settings.items()]
    must(
        f"compile the library for {python.parent.parent.name}",
        [*command, build / f"peerway-{version()}"],
        log,
    )
    (wheel,) = {*folder.glob("*.whl")} - before
    return wheel


def _headers() -> dict[str, Path]:
    """The folders of the header libraries in .venv, the same for each Python."""
    folders = {"peerway_fmt": "cmeel.prefix/include", "peerway_json": "nlohmann_json/include"}
    places = {name: [*VENV.glob(f"lib/python*/site-packages/{place}")] for name, place in folders.items()}
    return {f"{name}_INCLUDE": paths[0] for name, paths in places.items() if paths}
