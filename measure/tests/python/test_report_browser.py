"""The report page in a real browser: it draws, answers the pointer, fits the window, and fetches nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from browsing import until
from synthetic_records import cube, curves, record

from peerway_common.printable import printable
from peerway_measure.report.page import render, together, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

# A plot is drawn, and as wide as its place: plotly follows a resize a moment later.
SETTLED = """const plot = arguments[0], svg = plot.querySelector(".main-svg");
    return svg !== null && Math.abs(svg.getBoundingClientRect().width - plot.clientWidth) < 2"""
OVERLAPS = """
    const before = (a, b) => a.right <= b.left + 1 || a.bottom <= b.top + 1;
    const apart = (a, b) => before(a, b) || before(b, a);
    const bad = [];
    for (const plot of document.querySelectorAll('.plot')) {
      for (const axis of ['.xtick text', '.ytick text']) {
        const boxes = [...plot.querySelectorAll(axis)].map(t => t.getBoundingClientRect());
        boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => apart(a, b) || bad.push(plot.id + axis)));
      }
    }
    const figures = [...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect());
    figures.forEach((a, i) => figures.slice(i + 1).forEach(b => apart(a, b) || bad.push('figures')));"""
EVIL = "<img src=x onerror=alert(1)>"
OBEYED = "\x1b[31m\u202e\ud800</script><script>document.title=1</script>[red]"  # shown as escapes


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pairs = [("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")]
    some = [
        *curves(), record(via="flag"), *cube(),
        *[r for pair in pairs for r in curves(("put_bw",), ("peer/copy", "staged"), pair)],
        *[record(test="signal_latency", via=via) for via in ("peer/store", "openmpi", EVIL, OBEYED)],
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("report") / "page.html"
    write(path, render(some))
    return path


@pytest.fixture
def show(browser: Chrome, page: Path) -> Iterator[Callable[..., Chrome]]:
    """Load the page once; then only resize it and switch between light and dark."""

    def opened(width: int = 1200, scheme: str = "light") -> Chrome:
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        if browser.current_url != page.as_uri():
            browser.get(page.as_uri())
        for plot in browser.find_elements("css selector", ".plot"):  # each is drawn when it comes near
            browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
            until(browser, SETTLED, plot)
        return browser

    yield opened
    assert [entry for entry in log(browser, "browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def log(browser: Chrome, name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = browser.get_log(name)  # type: ignore[no-untyped-call]
    return entries


def requests(browser: Chrome, page: str) -> list[str]:
    """The URLs that the page requested, including its own; the browser's own pages request many before it."""
    messages = [json.loads(entry["message"])["message"] for entry in log(browser, "performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [event["request"]["url"] for event in sent if event["documentURL"] == page]


def test_every_plot_is_drawn_and_nothing_else_is_fetched(show: Callable[..., Chrome], page: Path) -> None:
    browser = show()
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('.plot')].map(e => e.querySelectorAll('.trace').length)"
    )
    assert len(drawn) == 4 + 3 + 2 * 2 + 1
    assert min(drawn) >= 3
    assert len(browser.find_elements("css selector", "#map td")) == 9
    fetched = [url for url in requests(browser, page.as_uri()) if not url.startswith(("data:", "blob:"))]
    assert fetched == [page.as_uri()]


def test_text_of_records_stays_text(show: Callable[..., Chrome]) -> None:
    browser = show()
    assert browser.find_elements("css selector", "img") == []
    chips = [chip.text for chip in browser.find_elements("css selector", ".chip")]
    assert {EVIL, printable(OBEYED)} <= {*chips}


def test_hovering_shows_values(show: Callable[..., Chrome]) -> None:
    from selenium.webdriver import ActionChains

    browser = show()
    area = browser.find_element("css selector", "#section-0-time .nsewdrag")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", area)
    ActionChains(browser).move_to_element(area).perform()
    until(browser, "return document.querySelector('#section-0-time .hoverlayer .legend') !== null")
    text = browser.execute_script("return document.querySelector('#section-0-time .hoverlayer').textContent")
    assert "bytes" in text
    for part in ("peer/store", "openmpi", "route", "p99", "µs", "MB/s"):
        assert part in text or (part == "MB/s" and "GB/s" in text)


def test_a_press_on_the_legend_hides_a_path_everywhere(show: Callable[..., Chrome]) -> None:
    browser = show()
    count = "return document.getElementById('section-0-time').querySelectorAll('.scatterlayer .trace').length"
    before = browser.execute_script(count)
    chip = browser.find_element("css selector", ".chip[data-name='staged']")
    chip.click()
    until(browser, f"{count} === {before - 1}")
    assert chip.get_attribute("aria-pressed") == "false"
    chip.click()
    until(browser, f"{count} === {before}")


def test_the_map_of_pairs_follows_its_size_and_measure(show: Callable[..., Chrome]) -> None:
    browser = show()
    texts = "return document.querySelector('#map').textContent"
    assert "GB/s" in browser.execute_script(texts)
    browser.execute_script(
        "const m = document.getElementById('map-measure');"
        "m.value = 'time'; m.dispatchEvent(new Event('change'))"
    )
    until(browser, f"{texts}.includes('ms')")
    assert "B/s" not in browser.execute_script(texts)


def test_whiskers_are_drawn_and_limits_look_like_nothing_else(show: Callable[..., Chrome]) -> None:
    browser = show()
    assert browser.find_elements("css selector", "#section-0-time .yerror")
    looks = browser.execute_script(
        "return [...document.querySelectorAll('.chip .swatch')].map((e) => e.innerHTML)"
    )
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_plot_is_on_the_first_screen(show: Callable[..., Chrome], width: int, height: int) -> None:
    browser = show(width)
    bottom = "return document.querySelector('.plot').getBoundingClientRect().bottom + scrollY"
    assert browser.execute_script(bottom) <= height


def test_the_names_of_many_files_fold_away_and_can_be_pressed(browser: Chrome, tmp_path: Path) -> None:
    """They once filled half of the first screen, before the names of the paths."""
    points = [record(via=via, bytes=size) for via in ("peer/store", "staged") for size in (8, 64)]
    page = tmp_path / "page.html"
    write(page, render(together({tmp_path / f"node{n:02}-before-the-upgrade": points for n in range(16)})))
    for width, height in ((390, 844), (1280, 800)):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(page.as_uri())
        until(browser, SETTLED, browser.find_element("css selector", ".plot"))
        bottom = "return document.querySelector('.plot').getBoundingClientRect().bottom + scrollY"
        assert browser.execute_script(bottom) <= height
        file = browser.find_element("css selector", ".chip[data-kind='file']")
        assert browser.find_element("css selector", ".chip[data-kind='via']").is_displayed()
        assert not file.is_displayed()
        browser.find_element("css selector", "#legend summary").click()
        file.click()
        assert file.get_attribute("aria-pressed") == "false"
        traces = "return document.querySelector('.plot').querySelectorAll('.scatterlayer .trace').length"
        until(browser, f"{traces} === {15 * 2}")


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "light"),
        pytest.param(800, "dark", marks=pytest.mark.long),
        pytest.param(1000, "light", marks=pytest.mark.long),
        (1280, "light"),
    ],
)
def test_it_fits_the_window_without_overlap(show: Callable[..., Chrome], width: int, scheme: str) -> None:
    browser = show(width, scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    until(browser, f"{OVERLAPS} return bad.length === 0")  # some ticks go a moment after a resize


def test_light_and_dark_have_their_own_colours(show: Callable[..., Chrome]) -> None:
    colours = (
        "return [getComputedStyle(document.body).backgroundColor, "
        "document.querySelector('#section-0-time .js-line').style.stroke]"
    )
    light, dark = (show(1200, scheme).execute_script(colours) for scheme in ("light", "dark"))
    assert light[0] != dark[0]
    assert light[1] != dark[1]
