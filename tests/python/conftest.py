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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--disable-component-update", "--no-first-run",
)  # fmt: skip


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
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield driver
    driver.quit()
