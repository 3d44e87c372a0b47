"""One browser, without a network, for all tests that look at pages.

Needs chromium and chromedriver (Debian: chromium, chromium-driver) and selenium. Without them the tests are
skipped, except under CI, where that is a failure.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from browsing import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome


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
