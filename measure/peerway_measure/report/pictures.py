"""Draw plots as pictures for documents, with plotly in a browser without a window."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    import plotly.graph_objects as go

_DRAW = (
    "const done = arguments[arguments.length - 1];"
    "Plotly.toImage(document.querySelector('.js-plotly-plot'), {format: 'svg'}).then(done);"
)


class CannotDraw(Exception):
    """A program is missing; the message says which."""


def as_svg(figures: Iterable[go.Figure]) -> list[str]:
    """Draw each figure. Raises CannotDraw."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if None in programs.values():
        raise CannotDraw("pictures need chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs["chromium"])
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(str(programs["chromedriver"])))
    try:
        drawn = []
        for figure in figures:
            with tempfile.NamedTemporaryFile(suffix=".html") as page:
                figure.write_html(page.name, include_plotlyjs=True)
                browser.get(f"file://{page.name}")
                drawn.append(_decoded(browser.execute_async_script(_DRAW)))
        return drawn
    finally:
        browser.quit()


def _decoded(url: str) -> str:
    head, _, body = url.partition(",")
    return base64.b64decode(body).decode() if head.endswith("base64") else unquote(body)
