"""Finds the Pythons of this machine for which wheels are built and tried, and makes environments of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from distributions import PIP
from steps import ROOT, must

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
_ASK = "import json, sys, sysconfig, pathlib; print(json.dumps([sys.version_info[:2], "
_ASK += "(pathlib.Path(sysconfig.get_path('include')) / 'Python.h').is_file()]))"


def interpreter(version: str) -> Path | None:
    """A Python of this version with its headers, from the PATH, pyenv or uv; None if there is none."""
    on_path = shutil.which(f"python{version}")
    managed = [Path("~/.pyenv/versions").expanduser(), Path("~/.local/share/uv/python").expanduser()]
    candidates = [Path(on_path)] if on_path else []
    for folder in managed:
        candidates += sorted(folder.glob(f"*{version}.*/bin/python{version}"), reverse=True)
    return next((python for python in candidates if _is(python, version)), None)


def _is(python: Path, version: str) -> bool:
    """Whether a program is this Python with headers; a shim of pyenv may lead to none."""
    try:
        answer = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=True).stdout
        numbers, has_headers = json.loads(answer)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return False
    return has_headers and ".".join(map(str, numbers)) == version


def make_environment(python: Path, folder: Path, log: Path, *requirements: str) -> Path:
    """Make a virtual environment with these packages at the locked versions; returns its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    must(f"make an environment of {python.name}", [python, "-m", "venv", folder], log)
    inside = folder / "bin" / "python"
    if requirements:
        lock = ["--constraint", ROOT / "requirements.lock"]
        title = f"install what is built with for {python.name}"
        must(title, [inside, *PIP, "install", *lock, *requirements], log)
    return inside
