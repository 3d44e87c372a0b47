"""Fixtures for all tests of jobs in one process."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator

import pytest


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
