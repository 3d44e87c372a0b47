"""The page of a trace in a real browser: zoom, search, the fields of an event, and the link of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from browsing import until
from test_trace_analysis import receive, send, trace_of
from test_trace_report import bursts_of_puts

from peerway_measure.report.page import write
from peerway_trace.analysis import analyse
from peerway_trace.curve import Curve
from peerway_trace.page import render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from selenium.webdriver import Chrome

LATE = 7  # number of the message with a late sender


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np

    events = []
    for i in range(40):
        late = 800_000 if i == LATE else 0
        events.append(send(0, 1, 1_000_000 * i + late, 900, tag=i, name="MPI_Send", where="world"))
        events.append(receive(1, 0, 1_000_000 * i, 1000 + late, tag=i, name="MPI_Recv", where="world"))
    trace = trace_of(*events)
    curve = Curve("world", "send", np.array([1.0, 1e6]), np.array([900.0, 2000.0]), "openmpi")
    path = tmp_path_factory.mktemp("trace") / "page.html"
    write(path, render(trace, analyse(trace, [curve])))
    return path


@pytest.fixture
def timeline(browser: Chrome, page: Path) -> Callable[..., Any]:
    """Open the page; returns a function that reads the state of its canvas."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get("about:blank")
    browser.get(page.as_uri())
    until(browser, "return document.getElementById('timeline-canvas').dataset.drawn !== undefined")
    browser.get_log("browser")  # type: ignore[no-untyped-call]

    def says(name: str) -> float:
        return float(
            browser.execute_script(f"return document.getElementById('timeline-canvas').dataset.{name}")
        )

    return says


# The lowest row of the canvas with a pixel in an event's colour.
LOWEST = """
    const c = document.getElementById('timeline-canvas'), line = 4 * c.width;
    const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    for (let y = c.height - 1; y >= 0; y--)
      for (let at = y * line; at < (y + 1) * line; at += 4)
        if (Math.max(all[at], all[at + 1], all[at + 2]) - Math.min(all[at], all[at + 1], all[at + 2]) > 60)
          return [y, c.height];
"""


@pytest.mark.usefixtures("timeline")
def test_nothing_blank_is_below_the_rows(browser: Chrome) -> None:
    lowest, height = browser.execute_script(LOWEST)
    assert height - lowest < 16


def press(browser: Chrome, *keys: str) -> None:
    browser.find_element("id", "timeline-canvas").send_keys(*keys)


def test_keys_zoom_and_move_and_show_all_again(browser: Chrome, timeline: Callable[..., Any]) -> None:
    assert (timeline("drawn"), timeline("arrows")) == (80, 40)
    whole = timeline("end") - timeline("begin")
    press(browser, "++++")
    until(browser, "return document.getElementById('timeline-canvas').dataset.drawn < 20")
    assert timeline("end") - timeline("begin") == pytest.approx(whole * 0.6**4)
    begin = timeline("begin")
    press(browser, "d")
    until(browser, f"return document.getElementById('timeline-canvas').dataset.begin > {begin}")
    press(browser, "0")
    until(browser, "return document.getElementById('timeline-canvas').dataset.drawn == 80")


def test_a_finding_leads_to_its_place(browser: Chrome, timeline: Callable[..., Any]) -> None:
    (link,) = [
        one
        for one in browser.find_elements("css selector", "#findings li")
        if "a sender that came late" in one.text
    ]
    link.find_element("css selector", "a").click()
    until(browser, "return document.getElementById('timeline-canvas').dataset.begin > 0")
    at = LATE * 1_000_000
    assert timeline("begin") < at < at + 801_000 < timeline("end") < at + 2_000_000
    assert 2 <= timeline("drawn") <= 6


def test_search_counts_goes_to_each_and_shows_its_fields(
    browser: Chrome, timeline: Callable[..., Any]
) -> None:
    search = browser.find_element("id", "timeline-search")
    search.send_keys("recv rank:1 takes>100us")
    until(browser, "return document.getElementById('timeline-count').textContent === '1 event'")
    search.send_keys("\n")
    until(browser, "return document.getElementById('timeline-fields').textContent.includes('MPI_Recv')")
    text = browser.find_element("id", "timeline-fields").text
    for part in ("801", f"{LATE}", "world", "comes from", "MPI_Send of rank 0"):
        assert part in text
    assert timeline("begin") <= LATE * 1_000_000 <= timeline("end")


def test_a_press_selects_and_a_drag_moves(browser: Chrome, timeline: Callable[..., Any]) -> None:
    from selenium.webdriver import ActionChains

    browser.execute_script(f"location.hash = '#t={LATE * 1_000_000},{LATE * 1_000_000 + 801_000}&rank=1'")
    until(browser, "return document.getElementById('timeline-canvas').dataset.drawn <= 6")
    canvas = browser.find_element("id", "timeline-canvas")
    wide, high = canvas.size["width"], canvas.size["height"]
    # The second track: below the time labels and the first track.
    x, y = 132 + (wide - 132) // 2 - wide // 2, 26 + 20 + 6 + 8 - high // 2
    ActionChains(browser).move_to_element_with_offset(canvas, x, y).click().perform()
    until(browser, "return document.getElementById('timeline-fields').textContent.includes('MPI_Recv')")
    begin = timeline("begin")
    ActionChains(browser).move_to_element_with_offset(canvas, x, y).click_and_hold().move_by_offset(
        -200, 0
    ).release().perform()
    until(browser, f"return document.getElementById('timeline-canvas').dataset.begin > {begin}")


def test_plots_are_drawn_and_nothing_is_refused(browser: Chrome, timeline: Callable[..., Any]) -> None:
    plot = browser.find_element("css selector", ".plot")
    browser.execute_script("arguments[0].scrollIntoView()", plot)
    until(browser, "return document.querySelectorAll('#rates .scatterlayer .trace').length === 2")
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    assert timeline("drawn") == 80
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 1200


def test_words_in_tables_are_not_broken_into_letters_on_a_telephone(browser: Chrome, page: Path) -> None:
    narrow = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    browser.get(page.as_uri())
    until(browser, "return document.getElementById('timeline-canvas').dataset.drawn !== undefined")
    widths = browser.execute_script(
        "return [...document.querySelectorAll('td:first-child')].map((cell) => cell.clientWidth)"
    )
    assert widths
    assert min(widths) >= 100
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_distributions_of_bursts_are_drawn(browser: Chrome, tmp_path: Path) -> None:
    trace = bursts_of_puts()
    write(tmp_path / "page.html", render(trace, analyse(trace, [])))
    browser.get((tmp_path / "page.html").as_uri())
    browser.execute_script("document.getElementById('bursts').scrollIntoView()")
    until(browser, "return document.querySelectorAll('#bursts .scatterlayer .trace').length === 3")
    until(browser, "return document.querySelectorAll('#bursts .barlayer .bars').length === 1")
    ticks = browser.execute_script(
        "return [...document.querySelectorAll('.plot')].map((plot) => plot.querySelectorAll('.xtick').length)"
    )
    assert min(ticks) > 0  # even if all values lie within one decade
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_the_matrix_shows_another_measure(browser: Chrome, timeline: Callable[..., Any]) -> None:
    cell = "return document.querySelectorAll('#matrix tbody td')[1]"
    assert browser.execute_script(f"{cell}.textContent") == "320 B"
    choice = browser.find_element("css selector", "#matrix-measure option[value='1']")
    choice.click()
    assert browser.execute_script(f"{cell}.textContent") == "40"
    assert browser.execute_script(f"{cell}.className") == "deep"
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
