"""Opens the page of a day-long job in a browser (a step of jobs_load.py).

Measures the server's time for its answers, and when the graphs are drawn.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from browsing import chromium, until
from jobs_node import cpu_of
from jobs_old import DAY, big_job
from jobs_server import PASSWORD, serving

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People

ROUNDS = 25
# Runs in the page itself, so that the browser is not asked anything while it draws.
WATCH = """
const look = () => {
  const place = document.getElementById("graphs"), plots = [...document.querySelectorAll(".plot")];
  const drawn = place && place.getAttribute("aria-busy") === "false" && plots.length
    && plots.every((each) => each.querySelector(".main-svg"));
  if (drawn) requestAnimationFrame(() => { window.drawn = {at: performance.now(), plots: plots.length}; });
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
TIMES = """
const page = performance.getEntriesByType("navigation")[0];
const series = performance.getEntriesByType("resource").find((each) => each.name.includes("/series"));
return {drawn: drawn.at, plots: drawn.plots, page: page.responseEnd - page.requestStart,
        asked: series.requestStart, series: series.responseEnd - series.requestStart};
"""


def drawn(folder: Path) -> dict[str, Any]:
    """The page of a job of 24 h on 2 nodes with 8 GPUs and 64 cores each, sampled every 10 s.

    In the first round the browser has none of the files. Of the other rounds, the least and the median count.
    """
    monitor = Monitor(folder / "data", clock=lambda: DAY + 86_500.0)
    run = big_job(monitor, DAY)
    monitor.judge_due()
    people = People(monitor.jobs)
    people.put("admin", "admin")
    people.set_password("admin", PASSWORD)
    with serving(monitor) as server:
        browser = chromium(folder / "profile")
        try:
            browser.get(f"{server.url}/login")
            browser.find_element("name", "name").send_keys("admin")
            browser.find_element("name", "password").send_keys(PASSWORD + "\n")
            until(browser, "return location.pathname === '/jobs'")
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
            rounds = [one_round(browser, f"{server.url}/jobs/{run.job}") for _ in range(ROUNDS)]
        finally:
            browser.quit()
    first, *others = rounds
    others.sort(key=lambda each: each["drawn_s"])
    return {
        "test": "job page in a browser",
        "hours": 24,
        "gpus": 16,
        "cores": 128,
        "first": first,
        "least": others[0],
        "median": others[len(others) // 2],
    }


def one_round(browser: Any, address: str) -> dict[str, float]:
    """The time from the request for the page to the frame after the last graph, including the server's part.

    CPU time is that of the server, and that of all processes of the browser.
    """
    before, cpu = cpu_below(browser.service.process.pid), time.process_time()
    browser.get(address)
    until(browser, "return window.drawn")
    found = browser.execute_script(TIMES)
    return {
        "drawn_s": found["drawn"] / 1000,
        "plots": found["plots"],
        "page_answer_s": found["page"] / 1000,
        "graphs_asked_s": found["asked"] / 1000,
        "graphs_answer_s": found["series"] / 1000,
        "after_answer_s": (found["drawn"] - found["asked"] - found["series"]) / 1000,
        "server_cpu_s": time.process_time() - cpu,
        "browser_cpu_s": cpu_below(browser.service.process.pid) - before,
    }


def cpu_below(pid: int) -> float:
    """CPU seconds of a process and of its running descendants."""
    spent = cpu_of(pid)
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            spent += cpu_below(int(child))
    return spent
