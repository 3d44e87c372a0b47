"""The pages of jobs in a real browser: as user and administrator, wide and on a phone, in two languages."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import until
from jobs_cluster import batch_of, large_cluster, record_month, record_queue
from jobs_server import EVIL, NOW, PASSWORD, Server, filed, node_batch, served
from ondemand import HEADER, OnDemand, ondemand

from peerway_common.printable import printable
from peerway_jobs.measured import Measured
from peerway_jobs.serve import series_data, tiles
from peerway_jobs.serve.access import Portal
from peerway_jobs.serve.live import Live
from peerway_jobs.store.months import month_of, sum_months
from peerway_jobs.store.promql import PromStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from selenium.webdriver import Chrome

PICTURES = Path(__file__).resolve().parents[3] / "out" / "jobs"
ONLINE = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    portal = Portal(HEADER, (ipaddress.ip_network("127.0.0.1"),))  # only OnDemand's double sends the header
    with served(tmp_path_factory.mktemp("jobs"), portal=portal) as server:
        yield server


@pytest.fixture(scope="module")
def shown(browser: Chrome, server: Server) -> Iterator[Callable[..., Chrome]]:
    """Yield a function that opens a page of the server as a given person."""
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **ONLINE})
    at: dict[str, Any] = {"who": None}

    def open_page(who: str, path: str, width: int = 1280, scheme: str = "light", lang: str = "en") -> Chrome:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        if at["who"] != who:
            browser.get(server.url + "/login")
            browser.delete_all_cookies()
            browser.get(server.url + "/login")
            browser.find_element("name", "name").send_keys(who)
            browser.find_element("name", "password").send_keys(PASSWORD + "\n")
            until(browser, "return location.pathname === '/jobs'")
            at["who"] = who
        browser.add_cookie({"name": "peerway_language", "value": lang})
        browser.get(server.url + path)
        return browser

    yield open_page
    browser.get("about:blank")
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**ONLINE, "offline": True})


def picture(browser: Chrome, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    high = min(browser.execute_script("return document.documentElement.scrollHeight"), 6000)
    wide = browser.execute_script("return innerWidth")
    size = {"width": wide, "height": max(high, 700), "deviceScaleFactor": 1, "mobile": wide < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.save_screenshot(str(PICTURES / f"{name}.png"))


def complaints(browser: Chrome) -> list[str]:
    entries: list[dict[str, Any]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [
        e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING") and "favicon" not in e["message"]
    ]


def text_of(browser: Chrome) -> str:
    return str(browser.execute_script("return document.querySelector('main').innerText")).replace(
        "\u00a0", " "
    )


def graphs_drawn(browser: Chrome) -> None:
    until(browser, "return document.getElementById('graphs').getAttribute('aria-busy') === 'false'")
    until(
        browser, "return [...document.querySelectorAll('.plot')].every((p) => p.querySelector('.main-svg'))"
    )


def test_a_user_sees_own_jobs_with_their_findings(shown: Callable[..., Chrome]) -> None:
    browser = shown("alice", "/jobs")
    text = text_of(browser)
    for job, verdict in (
        ("101", "efficient"),
        ("102", "inefficient"),
        ("105", "no data"),
        ("107", "too short to judge"),
    ):
        badge = browser.execute_script(
            "return [...document.querySelectorAll('tbody tr')]"
            ".find((r) => r.querySelector('.id').textContent === "
            "arguments[0]).querySelector('.verdict').textContent",
            job,
        )
        assert badge == verdict
    dark = browser.execute_script(
        "return [...document.querySelectorAll('tbody tr')]"
        ".find((r) => r.querySelector('.id').textContent === '105').innerText"
    )
    assert dark.count("no data") == 1
    assert "%" not in dark  # no figure of the little that was measured beside it
    assert "Started, UTC" in text
    assert "103" not in text
    assert browser.find_elements("css selector", "main img") == []
    assert printable(EVIL) in text
    picture(browser, "my-jobs")
    assert complaints(browser) == []


def test_a_jobs_page_draws_every_gpu_and_core_and_says_what_to_change(shown: Callable[..., Chrome]) -> None:
    browser = shown("alice", "/jobs/102")
    graphs_drawn(browser)
    text = text_of(browser)
    assert "3 of 4 GPUs never computed" in text
    assert "#SBATCH --gpus=1" in text
    served = (
        "const r = new XMLHttpRequest(); r.open('GET', location.href, false); r.send();return r.responseText"
    )
    assert "The graphs are being loaded." in browser.execute_script(served)
    assert "being loaded" not in text
    # What it used comes first, then what changes; what stays the same is a sentence that can be unfolded.
    captions = (
        "return [...document.querySelectorAll('figcaption')].map((each) => each.firstChild.textContent)"
    )
    assert browser.execute_script(captions)[:2] == ["Used, of what was allocated", "GPU utilization"]
    lines = "return [...document.querySelectorAll('.plot')].map((p) => p.querySelectorAll('.trace').length)"
    assert browser.execute_script(lines)[:2] == [3, 4]
    keys = [
        [each.text for each in figure.find_elements("css selector", ".key span")]
        for figure in browser.find_elements("css selector", "#graphs > figure")
    ]
    assert keys[:2] == [["GPU", "CPU", "Memory"], [f"n102-0 GPU-102-0-{n}" for n in range(4)]]
    (sentence,) = browser.find_elements("css selector", "#graphs > .quiet")
    assert sentence.text == (
        "These stayed the same all the time: GPU memory 40 GiB, GPU power 400 W, Cores computing 1, "
        "Memory 3 GiB."
    )
    picture(browser, "job-folded")
    browser.find_element("css selector", "#graphs > details summary").click()
    until(browser, "return document.querySelectorAll('#graphs details .plot .main-svg').length >= 4")
    graphs_drawn(browser)
    axes = {
        title: browser.execute_script(
            "const figure = [...document.querySelectorAll('figure')]"
            ".find((each) => each.firstChild.textContent === arguments[0]);"
            "return [...figure.querySelectorAll('.ytick text')].map((t) => t.textContent)",
            title,
        )
        for title in ("GPU utilization", "GPU memory", "GPU power", "Memory")
    }
    assert "100 %" in axes["GPU utilization"]
    assert all(re.fullmatch(r"\d+ GiB", each) for each in axes["GPU memory"])
    assert all(re.fullmatch(r"\d+ W", each) for each in axes["GPU power"])
    assert "3 GiB" in axes["Memory"]
    assert browser.execute_script("return document.querySelector('.strips canvas').height / 3 >= 32")
    assert browser.find_elements("css selector", ".steps rect")
    browser.execute_script("document.querySelector('details').open = true")
    assert "used_share" in browser.execute_script("return document.body.textContent")
    picture(browser, "job")
    assert complaints(browser) == []


def test_graphs_tell_the_time_as_the_page_does_wherever_the_browser_is(shown: Callable[..., Chrome]) -> None:
    shown("alice", "/jobs").execute_cdp_cmd(
        "Emulation.setTimezoneOverride", {"timezoneId": "Asia/Vladivostok"}
    )
    browser = shown("alice", "/jobs/102")
    graphs_drawn(browser)
    drawn = browser.execute_script(
        "return [document.querySelector('.plot')._fullLayout.xaxis.range[0], "
        "document.querySelector('.steps rect title').textContent]"
    )
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    (began,) = re.findall(r"Started, UTC\s+(\S+ \d+):", text_of(browser))
    assert drawn[0].startswith(began)
    assert "UTC" in drawn[1]


def test_graphs_that_cannot_be_had_are_said_so(
    shown: Callable[..., Chrome], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.monitor, "samples", PromStore("http://127.0.0.1:1"))
    browser = shown("alice", "/jobs/102")
    until(browser, "return document.getElementById('graphs').getAttribute('aria-busy') === 'false'")
    assert "does not answer" in browser.find_element("id", "graphs").text
    complaints(browser)  # the browser notes the 503


def test_another_users_job_is_not_there(shown: Callable[..., Chrome]) -> None:
    browser = shown("alice", "/jobs/103")
    assert "no such job here, or it is not yours" in text_of(browser)
    complaints(browser)  # the browser notes the 404


def test_the_cluster_page_counts_and_has_a_tile_for_each_node(
    shown: Callable[..., Chrome], server: Server
) -> None:
    server.app.state.peerway.live.saw(filed(node_batch()))
    browser = shown("alice", "/cluster")
    assert len(browser.find_elements("css selector", ".tile")) == 10
    text = text_of(browser)
    for words in (
        "GPUs blocked", "Jobs waiting", "640 cores, 9 GPUs", "People computing", "node01",
        "Nothing is recorded of this time.",
    ):  # fmt: skip
        assert words in text
    picture(browser, "cluster")
    assert complaints(browser) == []


def test_the_cluster_page_updates_itself(shown: Callable[..., Chrome], server: Server) -> None:
    browser = shown("alice", "/cluster?every=500")
    browser.execute_script("window.same = true; document.querySelectorAll('.tile')[3].focus()")
    named = "return document.activeElement.querySelector('b').textContent"
    focused = browser.execute_script(named)
    server.app.state.peerway.live.saw(filed(node_batch(2, "fresh-node")))
    until(browser, "return document.querySelector('.tiles').innerText.includes('fresh-node')")
    assert browser.execute_script("return window.same")
    assert browser.execute_script(named) == focused  # a reader who uses the keyboard stays where they are


def test_an_administrator_sees_what_was_wasted_and_tries_rules(shown: Callable[..., Chrome]) -> None:
    browser = shown("admin", "/admin/jobs?days=30")
    ids = [each.text for each in browser.find_elements("css selector", ".id")]
    assert ids[0] == "102"
    assert "103" in ids
    picture(browser, "wasted")
    browser = shown("admin", "/admin/rules")
    browser.execute_script("document.getElementById('text').value = arguments[0]", ONE_RULE)
    browser.find_element("id", "replay").click()
    until(browser, "return document.querySelector('#replayed table') !== null")
    assert "everything" in browser.find_element("id", "replayed").text
    picture(browser, "rules")
    assert complaints(browser) == []
    browser.execute_script("document.getElementById('text').value = '[[rule]]\\nname = 7'")
    browser.find_element("css selector", ".rules .filter button:not([type])").click()
    until(browser, "return document.querySelector('#wrong') !== null")
    assert "line 1" in browser.find_element("id", "wrong").text
    text = "const t = document.getElementById('text'); return t.value.slice(t.selectionStart, t.selectionEnd)"
    assert browser.execute_script(text) == browser.execute_script(
        "return document.getElementById('text').value.split('\\n')[0]"
    )
    high = "return document.querySelector('.editor .mark').getBoundingClientRect().height"
    assert browser.execute_script(high) > 10
    picture(browser, "rules-wrong")
    complaints(browser)


def test_the_rules_editor_marks_what_is_wrong_while_one_types(shown: Callable[..., Chrome]) -> None:
    browser = shown("admin", "/admin/rules")
    typed = (
        "const text = document.getElementById('text'); text.value = arguments[0]; text.focus();"
        "text.setSelectionRange(2, 2); text.dispatchEvent(new Event('input'))"
    )
    checked = "const p = document.getElementById('checked'); return (p.hidden ? '' : p.textContent)"
    browser.execute_script(typed, "[defaults]\nidle = 0.01\n[[rule]]\nname = 7")
    until(browser, checked + ".includes('line 3')")
    top = "return document.querySelector('.editor .mark').getBoundingClientRect().top"
    assert browser.execute_script(top) > browser.execute_script(
        "return document.querySelector('.editor').getBoundingClientRect().top + 30"
    )
    assert browser.execute_script("return document.getElementById('text').selectionStart") == 2
    browser.execute_script(typed, ONE_RULE)
    until(browser, checked + ".includes('can be used')")
    assert browser.execute_script("return document.querySelector('.editor .mark').hidden")
    assert complaints(browser) == []


def test_statistics_and_tokens(shown: Callable[..., Chrome]) -> None:
    browser = shown("admin", "/statistics?by=account")
    assert "chem" in text_of(browser)
    picture(browser, "statistics")
    browser = shown("admin", "/tokens")
    browser.find_element("css selector", "main .filter button").click()
    until(browser, "return document.querySelector('main pre') !== null")
    assert len(browser.find_element("css selector", "main pre").text) == 43
    assert complaints(browser) == []


@pytest.mark.parametrize("path", ["/jobs", "/jobs/102", "/cluster", "/statistics"])
def test_on_a_phone_in_russian_and_in_the_dark_it_fits(shown: Callable[..., Chrome], path: str) -> None:
    browser = shown("alice", path, 390, "dark", "ru")
    if path == "/jobs/102":
        graphs_drawn(browser)
        ticks = browser.execute_script(
            "return [...document.querySelectorAll('.xtick text')].map((tick) => tick.textContent).join(' ')"
        )
        assert re.search(r"\d\d:\d\d\d\d\.\d\d ", ticks)  # the date below the time, without an English month
        drawn = "return [...document.querySelectorAll('.plot')].map((p) => p._fullLayout.separators)"
        assert set(browser.execute_script(drawn)) == {",\u00a0"}
    assert browser.execute_script("return document.documentElement.lang") == "ru"
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    picture(browser, f"phone{path.replace('/', '-')}")
    assert wide <= 390
    assert complaints(browser) == []


@pytest.mark.parametrize("path", ["/statistics?days=90", "/admin/jobs?days=30"])
def test_on_a_phone_tables_of_figures_are_not_cut_off(shown: Callable[..., Chrome], path: str) -> None:
    browser = shown("admin", path, 390, "dark", "ru")
    rows = browser.execute_script(
        "return [...document.querySelectorAll('.sums td, .causes td')].map((cell) => "
        "[cell.getBoundingClientRect().right, cell.scrollWidth - cell.clientWidth])"
    )
    assert rows
    assert max(right for right, _ in rows) <= 378
    assert max(hidden for _, hidden in rows) <= 0


@pytest.mark.parametrize("lang", ["en", "ru"])
@pytest.mark.parametrize("path", ["/jobs?everyone=true", "/admin/jobs?days=30", "/admin/audit", "/tokens"])
def test_no_column_is_hidden_in_a_window_of_usual_width(
    shown: Callable[..., Chrome], path: str, lang: str
) -> None:
    """Also where the reader's own time stands beside each time."""
    browser = shown("admin", path, 1280, lang=lang)
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    try:
        browser.refresh()
        hidden = "return [...document.querySelectorAll('.wide')].map((b) => b.scrollWidth - b.clientWidth)"
        assert set(browser.execute_script(hidden)) <= {0}
    finally:
        browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})


def test_graphs_span_the_time_of_the_job_and_show_what_was_not_measured(shown: Callable[..., Chrome]) -> None:
    browser = shown("alice", "/jobs/105")
    graphs_drawn(browser)
    ranges = browser.execute_script(
        "return [...document.querySelectorAll('.plot')].map((p) => p._fullLayout.xaxis.range)"
    )
    assert ranges == [["2026-09-21 14:13:20.000", "2026-09-21 16:13:20.000"]] * 2
    text = text_of(browser)
    assert "measurements are complete for 10 % of its time" in text
    assert "GPU" not in text.partition("Findings")[2].partition("Rules that")[0]  # it had none
    assert "`" not in text


def test_graphs_name_the_files_of_which_something_is_missing(
    shown: Callable[..., Chrome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measured, "unreadable", property(lambda _: ["samples/day-2026-09-21.db"]))
    browser = shown("alice", "/jobs/101", lang="ru")
    graphs_drawn(browser)
    (told,) = browser.find_elements("css selector", "#graphs > .alert")
    assert told.text == "не читается: samples/day-2026-09-21.db"


def test_on_a_phone_each_figure_of_a_job_says_what_it_is(shown: Callable[..., Chrome]) -> None:
    browser = shown("admin", "/admin/jobs?days=30", 390)
    labels = browser.execute_script(
        "return [...document.querySelector('.jobs tbody tr').querySelectorAll('td[data-label]')]"
        ".map((cell) => getComputedStyle(cell, '::before').content)"
    )
    assert labels == [f'"{name}: "' for name in ("Nodes, cores, GPUs", "Idle GPU-hours", "Idle core-hours")]
    picture(browser, "phone-wasted")
    tabs = "return [...document.querySelectorAll('nav a')].map((tab) => tab.getBoundingClientRect().right)"
    assert max(browser.execute_script(tabs)) <= 390  # all are visible
    assert complaints(browser) == []


def test_a_token_can_be_read_and_revoked_on_a_phone(shown: Callable[..., Chrome], server: Server) -> None:
    server.token("admin", "jobs:read", "cluster:read", "admin")
    browser = shown("admin", "/tokens", 390)
    button = browser.find_element("css selector", "td button")
    assert button.text == "Revoke"
    assert button.size["height"] < 40  # on one line
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert "for ever" in text_of(browser)
    picture(browser, "phone-tokens")


def test_graphs_of_many_devices_say_how_many_are_not_drawn(
    shown: Callable[..., Chrome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_data, "MOST_LINES", 3)
    browser = shown("alice", "/jobs/102")
    graphs_drawn(browser)
    captions = [each.text for each in browser.find_elements("css selector", "figcaption")]
    assert "GPU utilization (the first 3 of 4)" in captions


def test_it_can_be_used_by_keyboard(shown: Callable[..., Chrome]) -> None:
    from selenium.webdriver import ActionChains, Keys

    browser = shown("alice", "/jobs")
    seen = []
    for _ in range(40):  # each part of a date is a tab stop
        ActionChains(browser).send_keys(Keys.TAB).perform()
        seen.append(browser.execute_script("return document.activeElement.textContent.trim()"))
        if seen[-1] == "102":
            break
    assert seen[0] == "To the content"
    assert seen[-1] == "102"
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    until(browser, "return location.pathname === '/jobs/102'")
    complaints(browser)


def press(browser: Chrome, key: str, until_text: str) -> None:
    """Tab to the element with this name and press the key on it."""
    from selenium.webdriver import ActionChains, Keys

    for _ in range(60):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("return document.activeElement.textContent.trim()").startswith(until_text):
            ActionChains(browser).send_keys(key).perform()
            return
    raise AssertionError(f"{until_text} is not reached by Tab")


def test_evidence_tiles_and_rules_are_reached_by_keyboard(shown: Callable[..., Chrome]) -> None:
    from selenium.webdriver import ActionChains, Keys

    browser = shown("alice", "/jobs/102")
    press(browser, Keys.ENTER, "Evidence")
    assert browser.execute_script("return document.querySelector('.finding details').open")
    browser = shown("alice", "/cluster")
    press(browser, "", "node05")  # each tile can be reached with Tab and read aloud
    browser = shown("admin", "/admin/rules")
    browser.find_element("id", "text").send_keys(Keys.HOME)
    ActionChains(browser).send_keys(Keys.TAB).perform()  # leaves the editor
    assert browser.execute_script("return document.activeElement.id") == "days"
    press(browser, Keys.SPACE, "Try on past jobs")
    until(browser, "return document.querySelector('#replayed table') !== null")
    complaints(browser)


def test_the_language_is_changed_by_keyboard(shown: Callable[..., Chrome]) -> None:
    from selenium.webdriver import Keys

    browser = shown("alice", "/jobs")
    press(browser, Keys.ENTER, "Русский")
    until(browser, "return document.documentElement.lang === 'ru'")
    press(browser, Keys.ENTER, "English")
    until(browser, "return document.documentElement.lang === 'en'")
    complaints(browser)


ONE_RULE = """
[[rule]]
name = "everything"
tag = { en = "all", ru = "всё" }
applies = "True"
condition = "job.elapsed > 0"
conclusion = { en = "x", ru = "х" }
advice = { en = "x", ru = "х" }
"""


def test_a_time_has_the_readers_own_beside_it(shown: Callable[..., Chrome]) -> None:
    browser = shown("alice", "/jobs")
    local = "return [...document.querySelectorAll('time')].map((each) => each.dataset.local ?? '')"
    assert set(browser.execute_script(local)) == {""}  # the reader is in UTC
    try:
        for zone, beside in (
            ("Asia/Kolkata", "(19:43 UTC+5:30)"),
            ("America/New_York", "(10:13 UTC−4)"),
            ("Pacific/Auckland", "(2026-09-22 02:13 UTC+12)"),
        ):
            browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
            browser.refresh()
            assert set(browser.execute_script(local)) == {beside}
        picture(browser, "jobs-auckland")
    finally:
        browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})


# -- a cluster of 1,000 nodes


@pytest.fixture(scope="module")
def live(server: Server) -> Live:
    live = Live(server.monitor.jobs.facts)
    for number in range(1000):
        if number % 50 != 7:  # some agents are away
            live.saw(filed(batch_of(number)))
    return live


@pytest.fixture
def large(server: Server, live: Live, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server with 1,000 nodes in racks, their use over a month, and a queue."""
    kept = server.monitor.jobs.reader.execute("SELECT body FROM cluster").fetchone()["body"]
    monkeypatch.setattr(server.app.state.peerway, "live", live)
    server.monitor.jobs.write("UPDATE cluster SET body = ?", (json.dumps(large_cluster()),))
    record_month(server.monitor)
    record_queue(server.monitor)
    yield server
    server.monitor.jobs.write("UPDATE cluster SET body = ?", (kept,))
    for table in ("utilization", "queue", "queue_history"):
        server.monitor.jobs.write(f"DELETE FROM {table}")


DRAWN = "return [...document.querySelectorAll('.charts path.used')].map((path) => path.getAttribute('d'))"
SQUARES = "return document.querySelectorAll('.board a.square').length"


@pytest.mark.parametrize(
    ("width", "scheme", "lang", "length"),
    [(1600, "light", "en", "day"), pytest.param(1600, "dark", "ru", "month", marks=pytest.mark.long),
     pytest.param(390, "light", "en", "hour", marks=pytest.mark.long), (390, "dark", "ru", "day")],
)  # fmt: skip
def test_a_thousand_nodes_fit_any_screen(
    shown: Callable[..., Chrome], large: Server, width: int, scheme: str, lang: str, length: str
) -> None:
    browser = shown("alice", f"/cluster?range={length}", width, scheme, lang)
    assert browser.execute_script(SQUARES) == 1000
    groups = [each.text for each in browser.find_elements("css selector", ".group h3 a")]
    assert groups[:2] == ["r01", "r02"]
    assert len(groups) == 50
    assert len(browser.find_elements("css selector", ".kind")) == 4  # the whole cluster and three types
    drawn = browser.execute_script(DRAWN)
    assert len(drawn) == 5 + 2 + 4 + 4  # the whole has the queue, too; nodes without GPUs no graph of GPUs
    assert all(drawn)
    picture(browser, f"cluster-1000-{width}-{scheme}-{length}")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return document.documentElement.scrollHeight") < 6 * 1600
    assert complaints(browser) == []


def test_a_rack_or_a_search_shows_tiles(shown: Callable[..., Chrome], large: Server) -> None:
    browser = shown("alice", "/cluster?range=hour", 1280)
    browser.find_element("link text", "r03").click()
    until(browser, "return document.querySelectorAll('.tile').length === 20")
    assert "20 of 1,000 nodes are shown. Rack: r03." in text_of(browser)
    assert "range=hour" in browser.current_url
    picture(browser, "cluster-rack")
    search = browser.find_element("name", "text")
    search.send_keys("r03n0\n")
    until(browser, "return document.querySelectorAll('.tile').length === 9")
    browser.find_element("link text", "All nodes").click()
    until(browser, SQUARES + " === 1000")
    browser.find_element("css selector", ".legend .n-blocked a").click()
    until(browser, "return document.querySelectorAll('.tile').length === 11")
    assert text_of(browser).count("disk failed") == 11
    browser.find_element("name", "text").send_keys("no such node\n")
    until(browser, "return document.querySelector('.nodes .empty') !== null")
    assert complaints(browser) == []


def test_a_square_leads_to_its_node(shown: Callable[..., Chrome], large: Server) -> None:
    browser = shown("alice", "/cluster", 1280)
    square = browser.find_element("css selector", ".board a.square[title^='r05n07:']")
    assert square.get_attribute("title") == "r05n07: busy, cores 128/128, GPU 8/8, in use 56\u00a0%"
    square.click()
    until(browser, "return document.querySelectorAll('.tile').length === 1")
    assert "r05n07" in text_of(browser)


def test_more_nodes_than_a_page_shows_are_said(
    shown: Callable[..., Chrome], large: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "MOST_SQUARES", 50)
    browser = shown("alice", "/cluster", 1280)
    assert browser.execute_script(SQUARES) == 50
    assert "These are the first 50 of 1,000 nodes." in text_of(browser)
    browser = shown("alice", "/cluster?size=tiles", 1280)
    assert len(browser.find_elements("css selector", ".tile")) == 96
    assert "These are the first 96 of 1,000 nodes." in text_of(browser)


def test_a_graph_says_its_figures_where_the_pointer_is(shown: Callable[..., Chrome], large: Server) -> None:
    from selenium.webdriver import ActionChains

    browser = shown("alice", "/cluster", 1280)
    for number, figure in ((1, r"\d+(\.\d)? % / \d+(\.\d)? %"), (3, r"[\d,]+ W")):
        chart = browser.find_elements("css selector", ".charts svg")[number]
        ActionChains(browser).move_to_element(chart).perform()
        until(
            browser, f"return document.querySelectorAll('.charts figure')[{number}].querySelector('output')"
        )
        output = browser.find_elements("css selector", ".charts figure")[number].find_element(
            "tag name", "output"
        )
        assert re.fullmatch(r"2026-09-21 0\d:\d\d UTC: " + figure, output.text), output.text
        assert output.rect["x"] + output.rect["width"] <= 1280
    picture(browser, "cluster-pointer")
    assert complaints(browser) == []


@pytest.mark.parametrize(
    ("who", "lines"), [("alice", ["9002", "9004"]), ("admin", ["9001", "9002", "9003_[0-499]", "9004"])]
)
def test_the_queue_says_why_jobs_wait_and_whose(
    shown: Callable[..., Chrome], large: Server, who: str, lines: list[str]
) -> None:
    browser = shown(who, "/cluster/waiting", 1280)
    text = text_of(browser)
    assert "other jobs have a higher priority" in text
    assert "will never start as it is" in text
    ids = browser.find_elements("css selector", ".queue .id")
    assert [each.text for each in ids] == lines
    assert all(each.size["height"] < 30 for each in ids)  # no number is broken
    hidden = "return [...document.querySelectorAll('.wide')].map((b) => b.scrollWidth - b.clientWidth)"
    assert set(browser.execute_script(hidden)) <= {0}
    picture(browser, f"waiting-{who}")
    browser = shown(who, "/cluster/waiting", 390, "dark", "ru")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    picture(browser, f"phone-waiting-{who}")
    assert complaints(browser) == []


@pytest.mark.parametrize(("width", "lang"), [(1920, "en"), pytest.param(390, "ru", marks=pytest.mark.long)])
def test_a_screen_on_a_wall_needs_only_a_token(
    shown: Callable[..., Chrome], large: Server, width: int, lang: str
) -> None:
    token = large.token("screen", "cluster:read")
    browser = shown("alice", "/jobs", width, lang=lang)
    browser.get("about:blank")
    browser.get(f"{large.url}/wall#token={token}")
    until(browser, "return document.querySelectorAll('.map a.square').length === 1000")
    text = browser.execute_script("return document.body.innerText")
    for name in ("alice", "carol", "9002"):
        assert name not in text
    assert all(browser.execute_script(DRAWN))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    if width > 1000:  # nobody scrolls it
        size = {"width": width, "height": 1080, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert browser.execute_script("return document.documentElement.scrollHeight") <= 1080
    picture(browser, f"wall-{width}")
    assert complaints(browser) == []


def test_a_screen_that_may_not_read_the_cluster_says_what_to_do(
    shown: Callable[..., Chrome], server: Server
) -> None:
    browser = shown("alice", "/jobs")
    browser.get("about:blank")
    browser.get(f"{server.url}/wall#token=wrong")
    until(browser, "return document.getElementById('wall').innerText.includes('cluster:read')")
    complaints(browser)  # the browser notes the 401


@pytest.mark.parametrize(
    ("width", "scheme", "lang"),
    [pytest.param(1280, "light", "en", marks=pytest.mark.long), (390, "dark", "ru")],
)
def test_statistics_show_users_by_use_and_each_month(
    shown: Callable[..., Chrome], server: Server, width: int, scheme: str, lang: str
) -> None:
    sum_months(server.monitor.jobs, NOW)
    others = [
        (month_of(NOW - 31 * 86_400 * each), f"user{user}")
        for each in range(1, 11)
        for user in range(each, 30)
    ]
    for month, user in others:
        server.monitor.jobs.write(
            "INSERT INTO months SELECT ?, ?, 'x', '', '', '', 5, 1, 0.5, 0.1, 0.2, 0, 0.1, 0", (month, user)
        )
    browser = shown("admin", "/statistics?years=1&order=used", width, scheme, lang)
    rows = [
        row.text.split()[0] for row in browser.find_elements("css selector", ".sums:not(.months) tbody tr")
    ]
    server.monitor.jobs.write("DELETE FROM months WHERE account = 'x'")
    assert rows[0] == "alice"
    assert len(rows) == 31
    months = browser.find_elements("css selector", ".months tbody tr")
    assert [month.text.split()[0] for month in months][:2] == ["2026-09", "2026-08"]
    bars = [each.text.split() for each in browser.find_elements("css selector", ".bars span")]
    assert bars[-2:] == [["29", "2026-08"], ["2", "2026-09"]]
    assert len(bars) == 11
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    picture(browser, f"statistics-{width}")
    browser = shown("alice", "/statistics?by=project", width, scheme, lang)
    assert not browser.find_elements("css selector", ".bars")  # how many others there are is not hers to see
    assert complaints(browser) == []


# -- the widget of Open OnDemand


@pytest.fixture
def portal(server: Server) -> Iterator[OnDemand]:
    with ondemand(server.url) as portal:
        yield portal


def widget_of(shown: Callable[..., Chrome], portal: OnDemand, user: str) -> Chrome:
    browser = shown("alice", "/jobs")  # sets up the browser, which another test may have left narrow or dark
    portal.user = user
    browser.get(portal.url)
    until(browser, "return document.getElementById('peerway-jobs').getAttribute('aria-busy') === 'false'")
    return browser


def test_ondemand_shows_a_user_s_own_jobs_and_links_to_their_pages(
    shown: Callable[..., Chrome], portal: OnDemand, server: Server
) -> None:
    browser = widget_of(shown, portal, "alice")
    rows = {
        row[0]: row
        for row in browser.execute_script(
            "return [...document.querySelectorAll('tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
    }
    assert rows["101"][3:] == ["85 %", "94 %", "efficient"]
    assert rows["102"][5] == "inefficient gpu one used"
    assert rows["105"][3:] == ["", "", "no data"]
    assert rows["102"][1] == re.sub("[\x1b\u202e]", "\ufffd", EVIL)
    assert rows["107"][5] == "too short to judge"
    assert "103" not in rows  # bob's
    assert re.search(rf"\b1 of your last {len(rows)} jobs wasted resources\.", text_of(browser))
    link = browser.find_element("link text", "102")
    assert link.get_attribute("href") == f"{server.url}/jobs/102"  # type: ignore[no-untyped-call]
    assert browser.find_elements("css selector", "main img") == []
    picture(browser, "ondemand")
    assert complaints(browser) == []  # nothing that the dashboard's Content-Security-Policy forbids


def test_ondemand_shows_an_administrator_only_their_own_jobs(
    shown: Callable[..., Chrome], portal: OnDemand
) -> None:
    browser = widget_of(shown, portal, "admin")
    assert "You have no jobs that the monitor knows." in text_of(browser)
    assert not browser.find_element("css selector", ".table-responsive").is_displayed()


@pytest.mark.parametrize(
    ("user", "answer", "why"),
    [
        ("", None, "does not know you"),
        ("alice", (502, b"Proxy Error"), "answered 502"),
        ("alice", (200, b"<html>Log in</html>"), "what answers is no monitor of jobs"),
        ("alice", (200, b'{"detail": "x"}'), "what answers is no monitor of jobs"),
        ("<b>'\"&x</b>", None, "You have no jobs"),
    ],
    ids=[
        "nobody is logged in",
        "the server is away",
        "a login page",
        "another server",
        "a name that is HTML",
    ],
)
def test_ondemand_says_why_there_are_no_jobs(
    shown: Callable[..., Chrome], portal: OnDemand, user: str, answer: tuple[int, bytes] | None, why: str
) -> None:
    portal.answer = answer
    browser = widget_of(shown, portal, user)
    assert why in text_of(browser)
    assert browser.find_elements("css selector", "main b") == []
    complaints(browser)  # the browser notes the failed request
