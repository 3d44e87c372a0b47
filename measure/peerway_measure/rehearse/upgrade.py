"""Upgrades a copy: makes a snapshot, runs the steps with their checks, and rolls back if one fails.

The files of users are read before and after, byte by byte. Both an upgrade that succeeds and one that was
rolled back must leave them unchanged.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peerway_common.printable import shell_word
from peerway_measure import records
from peerway_measure.rehearse import user_files
from peerway_measure.rehearse.copy import Copy
from peerway_measure.rehearse.scenario import Scenario, Step, Study
from peerway_measure.rehearse.user_files import Files

Say = Callable[[str], None]
_SUMS_S = 1800.0
_KEEP = 2000  # characters of a command's output


class Failed(Exception):
    """A step failed; the message says which, where and why."""


def upgrade(copy: Copy, scenario: Scenario, say: Say, place: Path) -> bool:
    """Carry out the upgrade. Returns whether it succeeded. `place` gets upgrade.jsonl, with a line for each
    step, and the study.
    """
    _check(copy, scenario)
    place.mkdir(parents=True)
    say(f"its steps, times and results are in {place}")
    log = _Log(place / "upgrade.jsonl")
    if scenario.study is not None:
        _measure(copy, scenario.study, "before", place, say)
    files = files_of_users(copy)
    many = user_files.count(files)
    snapshot = f"before-{scenario.name}-{int(time.time())}"
    copy.snapshot(snapshot, for_upgrade=True)
    say(f"took snapshot {snapshot}, and checksums of the users' files: {many}")
    try:
        for number, step in enumerate(scenario.steps, start=1):
            _carry_out(copy, number, step, log, say)
        _check_unchanged(files, files_of_users(copy))
    except Failed as failure:
        log.note({"event": "failed", "why": str(failure)})
        say(f"{failure}")
        began = time.monotonic()
        copy.roll_back(snapshot)
        _check_unchanged(files, files_of_users(copy))
        took = round(time.monotonic() - began, 1)
        log.note({"event": "rolled back", "snapshot": snapshot, "seconds": took, "files": many})
        say(f"rolled back to {snapshot} in {took} s; the users' files ({many}) are unchanged")
        return False
    copy.disk.finish()
    log.note({"event": "done", "files": many})
    say(
        f"the users' files ({many}) are unchanged; "
        f"`peerway rehearse rollback {shell_word(copy.folder)} {snapshot}` undoes the upgrade"
    )
    if scenario.study is not None:
        _measure(copy, scenario.study, "after", place, say)
        _compare(scenario.study, place, say)
    return True


def _check(copy: Copy, scenario: Scenario) -> None:
    """Refuse an unknown host or user before anything is changed. Raises ValueError."""
    users = copy.description.users
    wanted = [each.user for each in scenario.steps if each.user]
    if scenario.study is not None:
        wanted.append(scenario.study.user)
        if not scenario.study.file.is_file():
            raise ValueError(f"there is no file {scenario.study.file}, which [campaign] names")
    for step in scenario.steps:
        copy.hosts(step.on)
    for user in wanted:
        if user not in users:
            raise ValueError(f"the copy has no user {user!r}; there are {', '.join(users)}")


class _Log:
    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, event: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({**event, "time": records.now()}) + "\n")


def _carry_out(copy: Copy, number: int, step: Step, log: _Log, say: Say) -> None:
    began = time.monotonic()
    why = ""
    for command in (step.run, step.check):
        for host in copy.hosts(step.on) if command and not why else ():
            status, output = copy.run(host, command, step.user, step.limit_s)
            if status:
                kind = "the check" if command == step.check else "it"
                why = (
                    f"{kind} ended with status {status} on {host}: {output[-_KEEP:] or 'it printed nothing'}"
                )
                break
    took = round(time.monotonic() - began, 2)
    log.note({"event": "step", "number": number, "name": step.name, "seconds": took, "failed": why})
    say(f"step {number} of {step.on}: {step.name}: {took} s{', failed' if why else ''}")
    if why:
        raise Failed(f"step {number} ({step.name}): {why}")


def files_of_users(copy: Copy) -> Files:
    """All files of users, as the head sees them. Raises Failed."""
    assert copy.cluster is not None
    folders = [f"/{each.name}" for each in copy.description.file_systems]
    folders.append(str(copy.cluster.folder / "home"))
    command = shlex.join([sys.executable, "-m", "peerway_measure.rehearse.user_files", *folders])
    status, output = copy.run("head", command, None, _SUMS_S)
    if status:
        raise Failed(f"cannot read the files of users: {output[-_KEEP:]}")
    return user_files.read(output.splitlines()[-1])


def _check_unchanged(before: Files, after: Files) -> None:
    if odd := user_files.differences(before, after):
        raise Failed(f"files of users have changed: {odd}")


def _measure(copy: Copy, study: Study, side: str, place: Path, say: Say) -> None:
    """Run the campaign in the copy as its user, and copy its folder out. Raises Failed."""
    folder = Path(study.folder, f"study-{side}")
    inside = (
        f"mkdir -p {folder} && cat > {folder}/campaign.toml <<'END_OF_CAMPAIGN'\n{study.file.read_text()}\n"
    )
    inside += f"END_OF_CAMPAIGN\nexport PATH={Path(sys.executable).parent}:$PATH\n"
    inside += f"exec {sys.executable} -m peerway campaign run {folder}"
    say(f"campaign {side}: as {study.user} in {folder}")
    status, output = copy.run("head", inside, study.user, study.limit_s)
    if status:
        raise Failed(f"the campaign {side} the upgrade ended with status {status}: {output[-_KEEP:]}")
    status, output = copy.run("head", f"cd {folder} && grep '' journal.jsonl results/*.jsonl", study.user, 60)
    if status:
        raise Failed(f"the campaign {side} the upgrade has no results: {output[-_KEEP:]}")
    (place / side / "results").mkdir(parents=True)
    for line in output.splitlines():
        name, _, text = line.partition(":")
        with (place / side / name).open("a") as file:
            file.write(text + "\n")
    (place / side / "campaign.toml").write_text(study.file.read_text())
    copy.run("head", f"rm -rf {folder}", study.user, 60)


def _compare(study: Study, place: Path, say: Say) -> None:
    from peerway_measure.campaign.journal import Journal
    from peerway_measure.compare.node_type_text import lines
    from peerway_measure.compare.node_types import rows

    before, after = (Journal(place / side).records() for side in ("before", "after"))
    for line in lines(rows(before, after, ("campaign", *study.factors))):
        say(line)
