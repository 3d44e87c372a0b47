"""The documentation site as a reader has it who opens its files from a disk, on a screen and on a phone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).resolve().parents[2]
WIDE = ("nic/mpi-compared.html", "library/nics.html", "reference/configuration.html", "measure/measured.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_is_built_and_every_link_in_it_leads_somewhere(site: Path) -> None:
    """The one build of the documents in `make test`: strict, so that the fixture fails of a broken link."""
    assert (site / "index.html").is_file()


def opened(browser: Chrome, page: Path, width: int, height: int) -> Chrome:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    return browser


def test_pages_that_were_opened_from_a_disk_can_be_searched(browser: Chrome, site: Path) -> None:
    opened(browser, site / "index.html", 1280, 800)
    browser.execute_script(
        "const field = document.querySelector('.md-search__input');"
        "field.focus(); field.value = 'guard page';"
        "field.dispatchEvent(new Event('input', {bubbles: true}));"
        "field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))"
    )
    until(browser, "return document.querySelectorAll('.md-search-result__item a').length > 0")
    target = browser.execute_script("return document.querySelector('.md-search-result__item a').href")
    assert target.startswith(site.as_uri())


@pytest.mark.parametrize("name", WIDE)
def test_a_wide_table_scrolls_and_the_page_does_not(browser: Chrome, site: Path, name: str) -> None:
    opened(browser, site / name, 390, 844)
    until(browser, "return document.querySelector('table') !== null")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    hidden = browser.execute_script("""
        return [...document.querySelectorAll('article table')].filter((table) => {
          let box = table;
          const fits = () => box.scrollWidth <= box.clientWidth + 1;
          while (fits() && box.parentElement.tagName !== 'ARTICLE') box = box.parentElement;
          const wide = table.getBoundingClientRect().right > innerWidth;
          return wide && !['auto', 'scroll'].includes(getComputedStyle(box).overflowX);
        }).length""")
    assert hidden == 0
