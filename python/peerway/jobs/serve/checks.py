"""What `peerway jobs doctor --data` looks at on the server: rights at Slurm, rules, the disk, tokens."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from peerway.jobs.agent.checks import Finding, scontrol, setting
from peerway.jobs.rules.load import SHIPPED, BadRules, read_rules
from peerway.jobs.slurm_json import SlurmFailed, asked
from peerway.jobs.store.schema import RESTORE, emptied, opened

_LEAST_FREE = 0.1  # of the disk


def all_checks(folder: Path) -> Iterator[Finding]:
    """Every check of the server that has this folder, beside it. Nothing is written."""
    if not (folder / "jobs.db").stat().st_size:
        found = emptied(folder / "jobs.db")
        yield Finding(
            "database",
            "broken",
            "jobs.db is empty (0 bytes)" + (f", but the folder has {found}" if found else ""),
            RESTORE if found else "start the server, which makes the database",
        )
        return
    try:
        base = opened(folder / "jobs.db", readonly=True)
    except sqlite3.Error as error:
        yield Finding("database", "broken", f"jobs.db: {error}", RESTORE)
        return
    with closing(base):
        yield database(base)
        yield rules(folder / "rules.toml")
        yield disk(folder)
        yield from slurm(base)
    yield private(scontrol("show", "config"))


def database(base: sqlite3.Connection) -> Finding:
    """Whether the database of jobs is whole, and what is in it."""
    (said,) = base.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        return Finding("database", "broken", f"jobs.db: {said}", RESTORE)
    count, waiting = base.execute("SELECT count(*), sum(judged <= 0) FROM jobs").fetchone()
    return Finding("database", "ok", f"{count:,} runs, {waiting or 0:,} of them not judged yet")


def rules(file: Path) -> Finding:
    """Whether the rules can be used."""
    which = file if file.exists() else SHIPPED
    try:
        found = read_rules(which)
    except (BadRules, OSError) as error:
        return Finding("rules", "broken", str(error), "the server keeps the rules before; mend the file")
    return Finding("rules", "ok", f"{len(found.rules)} of {which}, version {found.hash}")


def disk(folder: Path) -> Finding:
    """Whether there is room for more."""
    usage = shutil.disk_usage(folder)
    ours = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    found = (
        f"{folder}: {ours / 1e9:.1f} GB here, {usage.free / 1e9:.1f} of {usage.total / 1e9:.1f} GB are free"
    )
    if usage.free < _LEAST_FREE * usage.total:
        advice = "make room, or keep samples less long: serve --raw-days, --thin-days"
        return Finding("disk", "warning", found, advice)
    return Finding("disk", "ok", found)


def slurm(base: sqlite3.Connection) -> Iterator[Finding]:
    """Whether Slurm tells this user of jobs and nodes as JSON, and each node's agent has a token."""
    advice = (
        "run this as the server's user, who needs squeue, sinfo, SLURM_CONF and munge; Slurm 22.05 or newer"
    )
    for command, words, kind in (
        ("squeue", ("--all", "--states=all"), "jobs"),
        ("sinfo", ("--all",), "nodes"),
    ):
        try:
            found = asked(command, *words).get(kind, [])
        except SlurmFailed as error:
            yield Finding(command, "broken", str(error), advice)
            continue
        yield Finding(command, "ok", f"{len(found)} {kind}")
        if kind == "nodes":
            names = {
                node["name"] for node in found if isinstance(node, dict) and isinstance(node.get("name"), str)
            }
            yield tokens(base, names)


def tokens(base: sqlite3.Connection, nodes: set[str]) -> Finding:
    """Which of Slurm's nodes have no agent's token."""
    rows = base.execute("SELECT DISTINCT node FROM tokens WHERE node != ''")
    missing = sorted(nodes - {node for (node,) in rows})
    if missing:
        some = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
        advice = "make them, on the server: peerway jobs token --node NAME; each is its agent's token_file"
        return Finding("tokens", "warning", f"{len(missing)} of {len(nodes)} nodes have none: {some}", advice)
    return Finding("tokens", "ok", f"each of {len(nodes)} nodes has one")


def private(config: str) -> Finding:
    """Whether Slurm may hide jobs from the server's user."""
    hidden = {word for word in setting(config, "PrivateData").split(",") if word in ("jobs", "nodes")}
    if not config:
        return Finding("private", "absent", "scontrol gives no answer")
    if hidden and os.geteuid():
        found = f"PrivateData={','.join(sorted(hidden))}: Slurm hides these from ordinary users"
        advice = "sacctmgr modify user NAME set AdminLevel=Operator for the server's user, if it is not one"
        return Finding("private", "warning", found, advice)
    return Finding("private", "ok", "Slurm hides neither jobs nor nodes")
