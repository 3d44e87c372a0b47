"""The project's files."""

from __future__ import annotations

import subprocess

from steps import ROOT


def tracked(*suffixes: str) -> list[str]:
    """Give the project's files with these suffixes: those git tracks, and new ones it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
            "\0"
        )
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        folders = (
            "library",
            "nic",
            "measure",
            "trace",
            "xacc",
            "jobs",
            "common",
            "apps",
            "tests",
            "examples",
            "scripts",
        )
        names = [str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")]
    return sorted(name for name in names if name.endswith(suffixes) and (ROOT / name).is_file())
