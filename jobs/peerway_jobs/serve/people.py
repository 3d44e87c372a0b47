"""People, their sessions and their tokens.

Passwords are stored as Argon2 hashes, other secrets as SHA-256 hashes. Nothing is signed, so there is no key
that could be empty or guessed: a session or token is 32 random bytes that the database knows or does not
know.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from functools import cached_property

from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import Run
from peerway_jobs.store.stored import LAST_S, PEOPLE, TOKENS, is_damaged, readable
from peerway_jobs.store.transaction import transaction

ROLES = ("user", "admin")
SCOPES = ("jobs:read", "cluster:read", "admin", "agent")
SESSION_SECONDS = 12 * 3600.0
LEAST_PASSWORD = 8
MOST_DAYS = 3650  # a token's longest validity


@dataclass(frozen=True)
class Viewer:
    """The sender of a request, and what the sender may see."""

    name: str
    role: str = "user"
    accounts: frozenset[str] = frozenset()  # accounts that they manage
    scopes: frozenset[str] = frozenset(("jobs:read", "cluster:read", "admin"))
    by_cookie: bool = False
    node: str = ""  # the node of an agent's token

    @property
    def is_admin(self) -> bool:
        """Whether they may see and change everything."""
        return self.role == "admin" and "admin" in self.scopes

    def may_see(self, run: Run) -> bool:
        """People see their own jobs and those of accounts that they manage; administrators see all."""
        return self.is_admin or run.user == self.name or run.account in self.accounts

    def may_read_script(self, run: Run) -> bool:
        """Only the owner and administrators, as in Slurm: a script may contain what a manager need not
        know.
        """
        return self.is_admin or run.user == self.name

    def clause(self) -> tuple[str, list[str]]:
        """`may_see` as an SQL condition, with its values."""
        if self.is_admin:
            return "TRUE", []
        accounts = sorted(self.accounts)
        places = ",".join("?" * len(accounts))
        return (f"(user = ? OR account IN ({places}))" if accounts else "user = ?"), [self.name, *accounts]


@dataclass(frozen=True)
class Person:
    """A row of the table of people."""

    role: str = "user"
    accounts: tuple[str, ...] = ()
    has_password: bool = False


@dataclass(frozen=True, slots=True)
class AgentToken:
    """Whose it is, and when it ends (s since 1970), None for never."""

    node: str
    ends: float | None


def check_password(password: str) -> None:
    """Raise ValueError if the password may not be set."""
    if len(password) < LEAST_PASSWORD:
        raise ValueError(f"a password has at least {LEAST_PASSWORD} characters")


class People:
    """The tables people, sessions and tokens."""

    def __init__(self, store: JobStore) -> None:
        from argon2 import PasswordHasher

        self._store = store
        self._hasher = PasswordHasher()

    @cached_property
    def _nobody(self) -> str:
        """A hash for unknown names, so that checking their passwords takes as long as for known ones."""
        return self._hasher.hash(secrets.token_urlsafe())

    def person(self, name: str) -> Person | None:
        """A person's row; None if the person was not added."""
        row = self._store.reader.execute("SELECT * FROM people WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        kept, _ = readable(PEOPLE, row)
        return Person(kept["role"], tuple(kept["accounts"]), kept["password"] != "")

    def put(self, name: str, role: str | None = None, accounts: list[str] | None = None) -> None:
        """Add or change a person; None leaves a value unchanged, and the password stays. Raises
        ValueError.
        """
        if role is not None and role not in ROLES:
            raise ValueError(f"a role is one of {', '.join(ROLES)}, not {role!r}")
        if not name or len(name) > 64 or not name.isprintable():
            raise ValueError("a name has 1 to 64 printable characters")
        self._store.write(
            "INSERT INTO people (name, role, accounts) "
            "VALUES (:name, coalesce(:role, 'user'), coalesce(:accounts, '[]')) "
            "ON CONFLICT (name) DO UPDATE SET "
            "role = coalesce(:role, people.role), accounts = coalesce(:accounts, people.accounts)",
            {"name": name, "role": role, "accounts": None if accounts is None else json.dumps(accounts)},
        )

    def delete(self, name: str) -> bool:
        """Delete a person: password, role, sessions, tokens and sent mails. Their jobs are Slurm's and stay.

        Returns False if nothing was stored about the person.
        """
        with self._store.lock, transaction(self._store.writer) as base:
            tables = ("people", "sessions", "tokens", "notices")
            return sum(base.execute(f"DELETE FROM {t} WHERE name = ?", (name,)).rowcount for t in tables) > 0

    def set_password(self, name: str, password: str) -> None:
        """Set a person's password and end their sessions. Raises ValueError."""
        check_password(password)
        if not self._store.write(
            "UPDATE people SET password = ? WHERE name = ?", (self._hasher.hash(password), name)
        ):
            raise ValueError(f"there is nobody called {name!r}")
        self._store.write("DELETE FROM sessions WHERE name = ?", (name,))

    def check(self, name: str, password: str) -> bool:
        """Whether the password is right. It takes as long for unknown names."""
        from argon2.exceptions import Argon2Error, InvalidHashError

        row = self._store.reader.execute("SELECT password FROM people WHERE name = ?", (name,)).fetchone()
        kept: str = readable(PEOPLE, row)[0]["password"]
        nobody = self._nobody
        try:
            return self._hasher.verify(kept or nobody, password) and kept != ""
        except (Argon2Error, InvalidHashError, UnicodeError):  # a damaged hash matches nothing
            return False

    def viewer(self, name: str, *, by_cookie: bool = False) -> Viewer:
        """The viewer for a proven name; a name without a row is a user who manages no accounts."""
        row = self._store.reader.execute("SELECT * FROM people WHERE name = ?", (name,)).fetchone()
        if row is None:
            return Viewer(name, by_cookie=by_cookie)
        kept, _ = readable(PEOPLE, row)
        return Viewer(name, kept["role"], frozenset(kept["accounts"]), by_cookie=by_cookie)

    def wants_mail(self, name: str) -> bool:
        """Whether the person gets mails; yes, unless they declined."""
        row = self._store.reader.execute("SELECT mail FROM people WHERE name = ?", (name,)).fetchone()
        kept, unreadable = readable(PEOPLE, row)
        return row is None or bool(kept["mail"]) or bool(unreadable)

    def set_mail(self, name: str, wanted: bool) -> None:
        """Store whether a person gets mails."""
        self._store.write(
            "INSERT INTO people (name, mail) VALUES (?,?) "
            "ON CONFLICT (name) DO UPDATE SET mail = excluded.mail",
            (name, wanted),
        )

    # -- sessions

    def begin(self, name: str, now: float) -> str:
        """Begin a session; returns its secret, for the cookie."""
        secret = secrets.token_urlsafe(32)
        self._store.write("DELETE FROM sessions WHERE ends < ?", (now,))
        self._store.write(
            "INSERT INTO sessions VALUES (?,?,?)", (digest(secret), name, now + SESSION_SECONDS)
        )
        return secret

    def of_session(self, secret: str, now: float) -> Viewer | None:
        """The person of a session; None if it is unknown or has ended."""
        row = self._store.reader.execute(
            f"SELECT name FROM sessions WHERE hash = ? AND ends > ? AND ends < {LAST_S}",
            (digest(secret), now),
        ).fetchone()
        return self.viewer(row["name"], by_cookie=True) if row and isinstance(row["name"], str) else None

    def end(self, secret: str) -> None:
        """End a session."""
        self._store.write("DELETE FROM sessions WHERE hash = ?", (digest(secret),))

    # -- tokens

    def make_token(
        self, name: str, scopes: list[str], now: float, node: str = "", days: float | None = None
    ) -> str:
        """Make a token and return it; only its hash is stored. An agent's token names its node.
        Raises ValueError.
        """
        if not scopes or not set(scopes) <= set(SCOPES):
            raise ValueError(f"scopes are of {', '.join(SCOPES)}")
        if ("agent" in scopes) != bool(node) or ("agent" in scopes and len(scopes) > 1):
            raise ValueError("an agent's token has the scope agent alone, and names its node")
        if days is not None and not 0 < days <= MOST_DAYS:
            raise ValueError(f"a token is valid for more than 0 and at most {MOST_DAYS} days, not {days:g}")
        token = secrets.token_urlsafe(32)
        self._store.write(
            "INSERT INTO tokens VALUES (?,?,?,?,?,?)",
            (
                digest(token),
                name,
                " ".join(sorted(set(scopes))),
                node,
                now,
                now + days * 86400 if days else None,
            ),
        )
        return token

    def of_token(self, token: str, now: float) -> Viewer | None:
        """The holder of a token, with the token's scopes only; None if it is unknown or has expired."""
        if len(token) != 43:
            return None
        row = self._store.reader.execute(
            "SELECT name, scopes, node, ends FROM tokens WHERE hash = ?", (digest(token),)
        ).fetchone()
        kept, unreadable = readable(TOKENS, row)
        if row is None or unreadable or (kept["ends"] is not None and kept["ends"] <= now):
            return None
        scopes = frozenset(kept["scopes"].split())
        if kept["node"]:
            return Viewer("", "agent", scopes=scopes, node=kept["node"])
        person = self.viewer(kept["name"])
        return Viewer(person.name, person.role, person.accounts, scopes)

    def agent_tokens(self) -> dict[str, AgentToken]:
        """All tokens of agents that can be read, by their hash."""
        rows = self._store.reader.execute(
            f"SELECT hash, node, ends FROM tokens WHERE node != '' AND NOT {is_damaged(TOKENS)}"
        )
        return {row[0]: AgentToken(row[1], row[2]) for row in rows}

    def tokens(self, name: str) -> list[dict[str, object]]:
        """The tokens of a person, without their secrets."""
        rows = self._store.reader.execute(
            "SELECT hash, scopes, made, ends FROM tokens WHERE name = ? AND node = '' ORDER BY made DESC",
            (name,),
        )
        tokens = []
        for row in rows:
            kept, unreadable = readable(TOKENS, row)
            tokens.append({**kept, "id": kept["hash"][:8], "unreadable": unreadable})
        return tokens

    def revoke_all(self, name: str, node: str = "") -> int:
        """Revoke all tokens of a person, or of a node's agent; returns their number."""
        return self._store.write("DELETE FROM tokens WHERE name = ? AND node = ?", (name, node))

    def revoke(self, name: str, ident: str) -> bool:
        """Revoke one token, given the first 8 digits of its hash; returns whether it existed."""
        return bool(
            self._store.write("DELETE FROM tokens WHERE name = ? AND substr(hash, 1, 8) = ?", (name, ident))
        )


def digest(secret: str) -> str:
    """The hash by which the database knows a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
