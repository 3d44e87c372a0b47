"""Download the wheels that a host with no network needs to build and test Peerway into a folder.

    .venv/bin/python scripts/wheels.py [--folder wheels] [--python 3.12] [--skip NAME...] [EXTRA...]

Pure Python wheels and those of the given Python version for x86-64 Linux. What that host's Python has, and
is large (numpy, scipy), can be left out with --skip.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import products
from steps import ROOT, VENV, main, must, say

GLIBC = (17, 24, 27, 28, 31, 34)  # pip compares exactly, so every version up to the host's is listed


def requirements(extras: list[str]) -> list[str]:
    """The requirements of the build, the package, the extras and pip."""
    known = products.groups()
    return ["pip", *(need for group in ("base", *extras) for need in known[group])]


def download(python: str, folder: Path, needs: list[str], log: Path) -> None:
    """Download the wheels of requirements and of their dependencies, for a Python version such as 3.12."""
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in GLIBC]
    target = [
        "--implementation=cp",
        f"--python-version={python}",
        *platforms,
        "--platform=manylinux2014_x86_64",
    ]
    command = [VENV / "bin" / "python", "-m", "pip", "download", "--only-binary=:all:", *target]
    command += ["--constraint", ROOT / "requirements.lock", "--dest", folder, *needs]
    must(f"download wheels for Python {python}", command, log)


def wheels() -> int:
    """Download the wheels, then remove those to be left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "wheels")
    parser.add_argument("--python", default="3.12", help="the host's Python version")
    parser.add_argument("--skip", nargs="*", default=[], help="packages to leave out")
    parser.add_argument("extras", nargs="*", default=[], help="extras of pyproject.toml, as gpu-test")
    options = parser.parse_args()
    log = ROOT / "out" / "setup" / "wheels.log"
    download(options.python, options.folder, requirements(options.extras or ["gpu-test"]), log)
    left_out = {re.sub(r"[-_.]+", "_", name).lower() for name in options.skip}
    for wheel in options.folder.glob("*.whl"):
        if wheel.name.split("-")[0].lower() in left_out:
            wheel.unlink()
    result = list(options.folder.glob("*.whl"))
    total = sum(wheel.stat().st_size for wheel in result) / 1e6
    say(f"wheels: {len(result)} in {options.folder}, {total:.0f} MB")
    say("  on the other host: PEERWAY_BUILD_WHEELS=<that folder> make gpu-test")
    return 0


if __name__ == "__main__":
    main(wheels)
