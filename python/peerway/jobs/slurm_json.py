"""What Slurm's commands say as JSON, and how its fields are read.

Fields change their type between versions of Slurm: a number may be 7 or {"set": true, "number": 7}, a state a
word or a list of words. What is read here is read by name and trusted for nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

TIMEOUT_S = 60
_WITHOUT = "it is asked again; on a host that has no Slurm start the server with --no-slurm"


class SlurmFailed(Exception):
    """Slurm's command could not be run, or gave no JSON."""


def asked(*command: str) -> dict[str, Any]:
    """The JSON of one of Slurm's commands. Raises SlurmFailed."""
    try:
        done = subprocess.run(
            [*command, "--json"],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            env={**os.environ, "SLURM_BITSTR_LEN": "0"},  # else long lists of an array's tasks are cut off
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = getattr(error, "strerror", None) or error
        raise SlurmFailed(f"{command[0]}: {why}; {_WITHOUT}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").split("\n")
        last = next((line for line in reversed(said) if line.strip()), "it does not say why")
        last = last.removeprefix(f"{command[0]}: ")[:300]
        raise SlurmFailed(f"{command[0]} ended with {done.returncode}: {last}; {_WITHOUT}")
    try:
        found = json.loads(done.stdout)
    except ValueError as error:
        raise SlurmFailed(f"{command[0]} --json gave no JSON: {error}") from None
    return found if isinstance(found, dict) else {}


def number(value: Any) -> float | None:
    """A number as any version tells it; None where it is none, not set, infinite or below 0."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else None


def time_of(value: Any) -> float | None:
    """Seconds since 1970; None for 0, which stands for no time."""
    found = number(value)
    return float(found) if found else None


def text_of(value: Any) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def words(value: Any) -> list[str]:
    """A list of words, or "A,B+C"."""
    if isinstance(value, str):
        return [part for part in re.split(r"[,+]", value.upper() if value.islower() else value) if part]
    return [str(each) for each in value] if isinstance(value, list) else []


def word(value: Any) -> str:
    """The first of them."""
    found = words(value)
    return found[0] if found else ""


def exit_of(value: Any) -> tuple[int | None, int | None]:
    """The exit code and the signal of a job."""
    if isinstance(value, dict):
        signal = value.get("signal")
        signal = signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else signal
        code, killed = number(value.get("return_code")), number(signal)
        return None if code is None else int(code), int(killed) if killed else None
    found = number(value)
    return (None, None) if found is None else (int(found) >> 8, int(found) & 127 or None)
