"""Fixtures for all tests of jobs in one process."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer, postgres, why_not

IN_POSTGRES = os.environ.get("PEERWAY_TEST_POSTGRESQL") == "1"  # each test begins without such variables


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Make password hashes cheap: normally each costs a tenth of a second and 64 MiB, to slow down
    guessing.
    """
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("argon2"):
            import argon2

            quick = functools.partial(argon2.PasswordHasher, time_cost=1, memory_cost=64, parallelism=1)
            patch.setattr(argon2, "PasswordHasher", quick)
        yield


@pytest.fixture(scope="session", autouse=True)
def trusted_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trust one certificate authority: httpx reads them all for each client, which takes 24 ms of CPU."""
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("certifi"):
            import certifi

            end = "-----END CERTIFICATE-----\n"
            first = "".join(certifi.contents().partition(end)[:2])
            file = tmp_path_factory.mktemp("authorities") / "one.pem"
            file.write_text(first)
            patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A private PostgreSQL for all tests of this process."""
    if why := why_not():
        pytest.skip(why)
    with postgres() as server:
        yield server


@pytest.fixture(autouse=True)
def jobs_in_postgres(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With PEERWAY_TEST_POSTGRESQL=1, each file of jobs that a test opens is a schema of PostgreSQL."""
    if not IN_POSTGRES:
        yield
        return
    if request.node.get_closest_marker("sqlite"):
        pytest.skip("this is about files of SQLite")
    from peerway_jobs.store import jobs
    from peerway_jobs.store.database import database_at

    server: PostgresServer = request.getfixturevalue("postgres_server")
    places: dict[object, str] = {}
    databases = []

    def in_postgres(place: Path | str) -> object:
        if isinstance(place, Path) and place not in places:
            places[place] = server.new()
            place.parent.mkdir(parents=True, exist_ok=True)
            (place.parent / "database").write_text(places[place])
        databases.append(database_at(places.get(place, str(place))))
        return databases[-1]

    monkeypatch.setattr(jobs, "database_at", in_postgres)
    yield
    for database in databases:  # a test that leaves its store open would fail a later one with a warning
        database.close()
