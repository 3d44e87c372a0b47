"""`peerway jobs user` and `token`: what is stored about a person, and for whom a token is made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from peerway_common.cli import command as peerway
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.agent_tokens import KEPT_S, AgentTokens
from peerway_jobs.serve.people import People, Viewer
from peerway_jobs.store.audit import entries


def verb(*words: object, text: str | None = None) -> Result:
    result = CliRunner().invoke(peerway, ["jobs", *map(str, words)], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def user(data: Path, *words: object, text: str | None = None) -> str:
    result = verb("user", *words, "--data", data, text=text)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    return result.stderr


def token(data: Path, *words: object) -> tuple[str, str]:
    result = verb("token", *words, "--data", data)
    assert result.exit_code == 0, result.output
    return result.stdout.strip(), result.stderr


def refused(*words: object, text: str | None = None) -> str:
    result = verb(*words, text=text)
    assert result.exit_code in (1, 2), result.output
    assert result.stdout == ""
    return result.stderr


def known(data: Path, name: str, password: str = "") -> tuple[Viewer, bool]:
    """A person as the server sees them, and whether the password is right."""
    monitor = Monitor(data)
    try:
        people = People(monitor.jobs)
        return people.viewer(name), people.check(name, password)
    finally:
        monitor.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A server's folder with an administrator, who manages an account and has a password."""
    folder = tmp_path / "data"
    words = ("alice", "--admin", "--manages", "phys", "--password-stdin")
    told = user(folder, *words, text="correct horse\n")
    assert f"made a new database in {folder}" in told
    assert "alice: administrator, manages phys (added, with a password)" in told
    return folder


def test_what_is_not_named_of_a_person_stays(data: Path) -> None:
    assert user(data, "alice", "--no-password") == "alice: administrator, manages phys (nothing changed)\n"
    told = user(data, "alice", "--manages", "bio", "--manages", "chem")
    assert told == "alice: administrator, manages bio, chem (managed phys before)\n"
    told = user(data, "alice", "--password-stdin", text="another horse\n")
    assert told == "alice: administrator, manages bio, chem (new password)\n"
    alice, is_password = known(data, "alice", "another horse")
    assert (alice.role, alice.accounts, is_password) == ("admin", {"bio", "chem"}, True)


def test_a_role_and_accounts_go_only_where_that_is_said(data: Path) -> None:
    assert user(data, "alice", "--no-admin") == "alice: user, manages phys (was an administrator before)\n"
    assert known(data, "alice", "correct horse") == (Viewer("alice", "user", frozenset({"phys"})), True)
    assert user(data, "alice", "--admin") == "alice: administrator, manages phys (was a user before)\n"
    assert user(data, "alice", "--no-manages") == "alice: administrator (managed phys before)\n"
    assert known(data, "alice")[0].accounts == frozenset()
    assert "--no-manages means none" in refused(
        "user", "alice", "--manages", "a", "--no-manages", "--data", data
    )


def test_a_person_who_is_added_is_an_ordinary_user(data: Path) -> None:
    assert user(data, "bob", "--no-password") == "bob: user (added, without a password)\n"
    assert known(data, "bob") == (Viewer("bob"), False)


def test_the_password_of_one_who_has_it_is_asked_for_where_nothing_else_is_changed(data: Path) -> None:
    assert "there is no terminal to ask for the password at" in refused("user", "alice", "--data", data)
    assert "there is no terminal" in refused("user", "carol", "--admin", "--data", data)  # she is new


def test_with_a_password_that_is_refused_nothing_is_changed(data: Path, tmp_path: Path) -> None:
    words = ("--no-admin", "--password-stdin", "--data")
    assert "at least 8 characters" in refused("user", "alice", *words, data, text="short\n")
    assert known(data, "alice", "correct horse")[0].role == "admin"
    assert "at least 8 characters" in refused("user", "bob", *words, tmp_path / "new", text="short\n")
    assert not (tmp_path / "new").exists()


def test_no_token_is_made_where_there_is_no_server(tmp_path: Path) -> None:
    for folder in (tmp_path / "mistyped", tmp_path):
        for whose in ("--node", "--user"):
            told = refused("token", whose, "n1", "--data", folder)
            assert f"there is no database of jobs in {folder}: name the server's folder with --data" in told
            assert "`peerway jobs serve` makes one" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("days", ["nan", "inf", "-inf", "1e308", "3651", "0", "-1", "soon"])
def test_a_token_is_valid_for_a_time_that_can_be_said(data: Path, days: str) -> None:
    told = refused("token", "--node", "n1", "--days", days, "--data", data)
    assert "--days" in told
    assert days in told.replace("e+", "e")
    if days != "soon":
        assert "3650" in told
    with closing(sqlite3.connect(data / "jobs.db")) as base:
        assert base.execute("SELECT count(*) FROM tokens").fetchone() == (0,)


def test_a_token_is_valid_for_at_most_ten_years(data: Path) -> None:
    assert len(token(data, "--node", "n1", "--days", "3650")[0]) == 43
    assert len(token(data, "--node", "n1", "--days", "0.5")[0]) == 43


def test_a_token_for_somebody_who_was_not_added_is_told(data: Path) -> None:
    """They may come through a portal or OpenID Connect, without being added."""
    made, told = token(data, "--user", "nobody7")
    assert len(made) == 43
    assert "'nobody7' was not added here" in told
    assert "`peerway jobs user nobody7`" in told
    assert token(data, "--user", "alice")[1] == ""
    assert token(data, "--node", "n1")[1] == ""


def test_a_person_who_is_deleted_is_gone_with_what_they_could_do(data: Path) -> None:
    user(data, "bob", "--password-stdin", text="correct horse\n")
    secret = token(data, "--user", "bob")[0]
    assert user(data, "bob", "--delete") == "bob: deleted, with sessions and tokens\n"
    assert known(data, "bob", "correct horse")[1] is False
    monitor = Monitor(data)
    try:
        people = People(monitor.jobs)
        assert people.person("bob") is None
        assert people.of_token(secret, 0) is None
        found = [(each["action"], each["detail"]) for each in entries(monitor.jobs)]
        assert found[:3] == [
            ("person deleted", "bob"), ("token made", "bob: jobs:read cluster:read"), ("person added", "bob"),
        ]  # fmt: skip
    finally:
        monitor.close()
    assert "nobody called" in refused("user", "bob", "--delete", "--data", data)
    assert "no other option" in refused("user", "alice", "--delete", "--no-admin", "--data", data)


def test_agents_tokens_in_memory_follow_the_database(data: Path) -> None:
    now, monitor = [100.0], Monitor(data)
    people = People(monitor.jobs)
    tokens = AgentTokens(people, clock=lambda: now[0])
    kept = people.make_token("", ["agent"], 0, "n1")
    ending = people.make_token("", ["agent"], 0, "n2", days=1)
    person = people.make_token("alice", ["jobs:read"], 0)
    assert tokens.node(kept, 0) == ""  # nothing was read yet
    tokens.read_again()
    assert tokens.node(kept, 0) == "n1"
    assert (tokens.node(ending, 86_399), tokens.node(ending, 86_400)) == ("n2", "")
    assert tokens.node(person, 0) == tokens.node("x" * 43, 0) == ""

    people.revoke_all("", "n1")
    later = people.make_token("", ["agent"], 0, "n3")
    tokens.read_again()  # too early, so that it reads nothing
    assert (tokens.node(kept, 0), tokens.node(later, 0)) == ("n1", "")
    now[0] += KEPT_S
    assert tokens.node(kept, 0) == ""  # what is known is too old
    tokens.read_again()
    assert (tokens.node(kept, 0), tokens.node(later, 0)) == ("", "n3")
    monitor.close()
