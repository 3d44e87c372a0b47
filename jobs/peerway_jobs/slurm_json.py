"""Runs Slurm's commands and reads the fields of their JSON output.

Fields change their type between versions of Slurm: a number may be 7 or {"set": true, "number": 7}, a state
one word or a list of words. Fields are read by name, and no value is trusted.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import suppress
from typing import Any

from peerway_common.printable import one_line, shortened

TIMEOUT_S = 60.0
_NO_NUMBER = frozenset(  # NO_VAL and INFINITE, in 32 and 64 bits
    (1 << bits) - less for bits in (32, 64) for less in (1, 2)
)
_MOST = 1 << 63  # the database stores no larger integers
_LAST_S = 253_402_300_799  # the end of the year 9999
_NOTHING_FOUND = 9003  # ESLURM_REST_EMPTY_RESULT


class SlurmFailed(Exception):
    """A command of Slurm could not be run, or gave no usable answer."""


def answer_of(*command: str) -> dict[str, Any]:
    """The JSON object that a Slurm command prints with --json. Raises SlurmFailed."""
    done = ran(*command, "--json")
    if done.returncode:
        raise SlurmFailed(why_failed(done))
    try:
        # A user may give a job a name of arbitrary bytes, which squeue prints unchanged.
        answer = json.loads(done.stdout.decode(errors="replace"))
    except ValueError as error:
        raise SlurmFailed(f"{command[0]} --json gave no JSON: {error}") from None
    if not isinstance(answer, dict):
        raise SlurmFailed(f"{command[0]} --json gave no object: {shortened(str(answer))}")
    if why := _error_of(answer):
        raise SlurmFailed(f"{command[0]}: {why}")
    return answer


def why_failed(done: subprocess.CompletedProcess[bytes]) -> str:
    """The message for a command that exited with an error: all its output to stderr, on one line."""
    why = one_line(done.args[0], done.stderr.decode(errors="replace"))
    return f"{done.args[0]} ended with {done.returncode}: {why or 'it does not say why'}"


def ran(*command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a Slurm command. Raises SlurmFailed if it cannot be started, or does not end in time.

    A command that takes too long is killed with all its children: a child of a site's wrapper script would
    keep the pipe open for ever.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "SLURM_BITSTR_LEN": "0"},  # otherwise long lists of array tasks are cut off
        )
    except OSError as error:
        raise SlurmFailed(f"{command[0]}: {error.strerror or error}") from None
    with process:
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise SlurmFailed(f"{command[0]} gave no answer in {TIMEOUT_S:g} s") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _error_of(answer: dict[str, Any]) -> str:
    """Why an answer is not usable; empty if it is.

    While no controller answers, squeue lists no jobs, reports that as an error, and exits with 0. "Nothing
    found" is a usable answer.
    """
    errors = answer.get("errors")
    for each in errors if isinstance(errors, list) else []:
        if not isinstance(each, dict) or each.get("error_number") == _NOTHING_FOUND:
            continue
        texts = [text_of(each.get(name)) for name in ("source", "description", "error")]
        return shortened(": ".join(filter(None, texts)), 2000) or "an error without a text"
    return ""


def number(value: Any) -> float | None:
    """A number as any version of Slurm writes it; None if it is no number, not set, infinite or negative.

    Until 22.05, Slurm writes its own NO_VAL and INFINITE as plain integers.
    """
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value in _NO_NUMBER:
        return None
    return value if 0 <= value < _MOST else None  # NaN and infinity fail this test


def time_of(value: Any) -> float | None:
    """Seconds since 1970; None for 0, which means "no time", and for anything that is no date."""
    seconds = number(value)
    return float(seconds) if seconds and seconds < _LAST_S else None


def text_of(value: Any) -> str:
    """A text that can be stored, that is, without lone UTF-16 surrogates; empty for anything else."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def words(value: Any) -> list[str]:
    """The words of a list, or of "A,B+C"."""
    if isinstance(value, str):
        return [part for part in re.split(r"[,+]", value.upper() if value.islower() else value) if part]
    return [str(each) for each in value] if isinstance(value, list) else []


def word(value: Any) -> str:
    """The first of the words; empty if there is none."""
    several = words(value)
    return several[0] if several else ""


def exit_of(value: Any) -> tuple[int | None, int | None]:
    """The exit code and the signal of a job, each None if there is none."""
    if isinstance(value, dict):
        signal = value.get("signal")
        signal = signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else signal
        code, killed = number(value.get("return_code")), number(signal)
        return None if code is None else int(code), int(killed) if killed else None
    status = number(value)
    return (None, None) if status is None else (int(status) >> 8, int(status) & 127 or None)
