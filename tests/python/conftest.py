"""One browser, without a network, for all tests that look at pages.

Needs chromium and chromedriver (Debian: chromium, chromium-driver) and selenium. Without them the tests are
skipped, except under CI, where that is a failure.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from browsing import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """What a password costs whoever guesses it, a tenth of a second and 64 MiB, no test needs to pay."""
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("argon2"):
            import argon2

            quick = functools.partial(argon2.PasswordHasher, time_cost=1, memory_cost=64, parallelism=1)
            patch.setattr(argon2, "PasswordHasher", quick)
        yield


def missing() -> str:
    absent = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if importlib.util.find_spec("selenium") is None:
        absent.append("the Python package selenium")
    return f"not found: {', '.join(absent)}" if absent else ""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    if why := missing():
        if os.environ.get("CI"):
            pytest.fail(f"the browser tests must run under CI, but {why}")
        pytest.skip(f"{why}; on Debian: apt-get install chromium chromium-driver, pip install selenium")
    driver = chromium(tmp_path_factory.mktemp("profile"))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield driver
    driver.quit()
