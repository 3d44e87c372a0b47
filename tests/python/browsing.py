"""Waiting for a page in the browser of conftest.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def until(browser: Chrome, script: str, *arguments: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(script, *arguments))
