"""The server checks of `peerway jobs doctor --data`: database, rules, disk, Slurm and tokens."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from peerway_common.disk_space import Room
from peerway_common.units import about_text
from peerway_jobs.agent.checks import Diagnosis, scontrol, setting
from peerway_jobs.damage import damaged_rows
from peerway_jobs.lock_file import started
from peerway_jobs.rules.load import SHIPPED, BadRules, read_rules
from peerway_jobs.slurm_json import SlurmFailed, answer_of
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.database import ADDRESS, database_at, place_in
from peerway_jobs.store.disk import MAKE_ROOM, DiskFailed
from peerway_jobs.store.sample_damage import damaged_samples
from peerway_jobs.store.schema import RESTORE, VERSIONS, emptied, opened

_LEAST_FREE = 0.1  # share of the disk
_MOST_NAMED = 8
_AS_SERVER = (
    "run this as the server's user, who needs squeue, sinfo and scontrol of Slurm 22.05 or newer, SLURM_CONF "
    "and munge; without Slurm start the server with --no-slurm"
)


def all_checks(folder: Path) -> Iterator[Diagnosis]:
    """Every check of the server that uses this folder, which may be running. Nothing is written."""
    place = place_in(folder)
    if isinstance(place, str):
        yield from _with_postgres(folder, place)
        return
    if not (folder / "jobs.db").stat().st_size:
        cause = emptied(folder / "jobs.db")
        yield Diagnosis(
            "database",
            "broken",
            "jobs.db is empty (0 bytes)" + (f", but the folder has {cause}" if cause else ""),
            RESTORE if cause else "start the server, which makes the database",
        )
        return
    try:
        base = opened(folder / "jobs.db", readonly=True)
    except sqlite3.Error as error:
        yield _unreadable(error)
        return
    with closing(base):
        yield database(base)
        yield from _others(folder, base)


def _with_postgres(folder: Path, place: str) -> Iterator[Diagnosis]:
    try:
        postgres = database_at(place)
        if (have := postgres.version()) != len(VERSIONS):
            cause = f"{postgres.name} is of version {have}, this Peerway knows {len(VERSIONS)}"
            yield Diagnosis("database", "broken", cause, "peerway jobs upgrade, or install a newer Peerway")
            return
    except (sqlite3.Error, ValueError) as error:
        yield Diagnosis("database", "broken", str(error), f"the address is in {folder / ADDRESS}")
        return
    with closing(postgres):
        yield runs(postgres.reader)
        yield from _others(folder, postgres.reader)


def _others(folder: Path, base: Connection) -> Iterator[Diagnosis]:
    """The checks that are the same for every database."""
    yield rows(base)
    yield samples(folder / "samples")
    yield rules(folder / "rules.toml")
    yield disk(folder)
    if started(folder, "server").get("slurm") is False:
        cause = "not asked: the server was started with --no-slurm, and knows the jobs that agents report"
        yield Diagnosis("slurm", "absent", cause)
        return
    try:
        yield from slurm(base)
    except sqlite3.Error as error:
        yield _unreadable(error)
    yield private(*scontrol("show", "config"))


def _unreadable(error: sqlite3.Error) -> Diagnosis:
    if isinstance(error, DiskFailed):
        return Diagnosis("database", "broken", str(error))
    return Diagnosis("database", "broken", f"jobs.db: {error}", RESTORE)


def database(base: Connection) -> Diagnosis:
    """Whether the database is intact, and how many runs it has."""
    try:
        (complaint,) = base.execute("PRAGMA quick_check(1)").fetchone()
        if complaint != "ok":
            return Diagnosis("database", "broken", f"jobs.db: {complaint}", RESTORE)
    except sqlite3.Error as error:
        return _unreadable(error)
    return runs(base)


def runs(base: Connection) -> Diagnosis:
    """How many runs the database has."""
    try:
        count, waiting = base.execute(
            "SELECT count(*), count(*) FILTER (WHERE judged <= 0) FROM jobs WHERE NOT provisional"
        ).fetchone()
    except sqlite3.Error as error:
        return _unreadable(error)
    return Diagnosis("database", "ok", f"{count:,} runs, {waiting or 0:,} of them not judged yet")


def rows(base: Connection) -> Diagnosis:
    """Whether all rows can be read."""
    try:
        damage = damaged_rows(base)
    except sqlite3.Error as error:
        return _unreadable(error)
    if not damage:
        return Diagnosis("rows", "ok", "all can be read")
    some = "; ".join(map(str, damage[:_MOST_NAMED])) + ("; …" if len(damage) > _MOST_NAMED else "")
    return Diagnosis("rows", "warning", f"{len(damage)} cannot be read in full: {some}", RESTORE)


def samples(folder: Path) -> Diagnosis:
    """Whether the files of samples can be read, as far as their tables tell."""
    damage = list(damaged_samples(folder))
    if not damage:
        return Diagnosis("samples", "ok", f"{len(list(folder.glob('*.db')))} files can be read")
    some = "; ".join(map(str, damage[:_MOST_NAMED])) + ("; …" if len(damage) > _MOST_NAMED else "")
    advice = "what they had is missing on pages; restore the files from a backup, or move them elsewhere"
    return Diagnosis("samples", "warning", f"{len(damage)} places cannot be read: {some}", advice)


def rules(file: Path) -> Diagnosis:
    """Whether the rules can be used."""
    which = file if file.exists() else SHIPPED
    try:
        ruleset = read_rules(which)
    except (BadRules, OSError) as error:
        return Diagnosis("rules", "broken", str(error), "the server keeps the rules before; mend the file")
    if ruleset.notes:
        return Diagnosis("rules", "warning", "; ".join(ruleset.notes), f"use the new names in {which}")
    return Diagnosis("rules", "ok", f"{len(ruleset.rules)} of {which}, version {ruleset.hash}")


def disk(folder: Path) -> Diagnosis:
    """Whether the disk has space left."""
    room = Room(folder)
    ours = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    usage = f"{folder} has {about_text(ours)}; {room}"
    if room.is_full:
        return Diagnosis("disk", "broken", usage, MAKE_ROOM)
    if room.free < _LEAST_FREE * room.total:
        return Diagnosis("disk", "warning", usage, MAKE_ROOM)
    return Diagnosis("disk", "ok", usage)


def slurm(base: Connection) -> Iterator[Diagnosis]:
    """Whether Slurm gives this user jobs and nodes as JSON, and whether each node has an agent's token."""
    for command, words, kind in (
        ("squeue", ("--all", "--states=all"), "jobs"),
        ("sinfo", ("--all",), "nodes"),
    ):
        try:
            rows = answer_of(command, *words).get(kind, [])
        except SlurmFailed as error:
            yield Diagnosis(command, "broken", str(error), _AS_SERVER)
            continue
        yield Diagnosis(command, "ok", f"{len(rows)} {kind}")
        if kind == "nodes":
            names = {
                node["name"] for node in rows if isinstance(node, dict) and isinstance(node.get("name"), str)
            }
            yield tokens(base, names)


def tokens(base: Connection, nodes: set[str]) -> Diagnosis:
    """Which of Slurm's nodes have no agent's token."""
    rows = base.execute("SELECT DISTINCT node FROM tokens WHERE node != ''")
    missing = sorted(nodes - {node for (node,) in rows})
    if missing:
        some = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
        advice = "make them, on the server: peerway jobs token --node NAME; each is its agent's token_file"
        return Diagnosis(
            "tokens", "warning", f"{len(missing)} of {len(nodes)} nodes have none: {some}", advice
        )
    return Diagnosis("tokens", "ok", f"each of {len(nodes)} nodes has one")


def private(config: str, why_not: str) -> Diagnosis:
    """Whether Slurm's PrivateData may hide jobs from the server's user."""
    hidden = {word for word in setting(config, "PrivateData").split(",") if word in ("jobs", "nodes")}
    if why_not:
        state = "broken" if shutil.which("scontrol") else "absent"
        return Diagnosis("private", state, f"what Slurm hides is not known: {why_not}", _AS_SERVER)
    if hidden and os.geteuid():
        text = f"PrivateData={','.join(sorted(hidden))}: Slurm hides these from ordinary users"
        advice = "sacctmgr modify user NAME set AdminLevel=Operator for the server's user, if it is not one"
        return Diagnosis("private", "warning", text, advice)
    return Diagnosis("private", "ok", "Slurm hides neither jobs nor nodes")
