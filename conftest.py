"""What all Python tests share: the command `peerway` is on the PATH, settings of the user do not leak in, and
every program that a test starts is ended with it."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import ctypes

    from selenium.webdriver import Chrome

# In tests/shared: of the tests between processes, and of those on GPUs.
pytest_plugins = ("process_fixtures", "gpu_fixtures")
# The longest files of each run of make test, longest first (out/test/*.xml has the times). They start
# first, so that none runs on when the rest has ended; the order changes nothing else.
LONGEST = (
    "test_jobs_served.py", "test_campaign_slurm.py", "test_jobs_agents.py", "test_rehearse.py",
    "test_wheel.py", "test_compare_node_types.py",
    "test_xacc_programs.py", "test_bench.py", "test_hpl.py", "test_jobs_browser.py", "test_campaign.py",
    "test_trace.py", "test_fc_programs.py", "test_hpl_device_code.py", "test_xacc_acc.py", "test_jobs_api.py",
    "test_jobs_store.py", "test_transfers.py", "test_run.py", "test_trace_mpi.py", "test_cc_kernels.py",
    "test_storage.py", "test_plan_proxy.py", "test_bench_ends.py", "test_added.py", "test_report_browser.py",
    "test_stencil2d.py", "test_faults.py", "test_tutorials.py", "test_lqcd.py",
)  # fmt: skip
CPU = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also what is marked long: make test-long")


class FailuresAtOnce:
    """Names a failed test at once in the output, which else only shows an F until all tests have ended."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            reporter.write(f"\nFAILED {report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FailuresAtOnce(config))
    gc.disable()  # what is collected lives to the end: looking through it again and again took a third


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    last = len(LONGEST)
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else last)
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long") is not None:
                item.add_marker(pytest.mark.skip(reason="long: make test-long"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[CPU] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Put the CPU seconds of a test, its fixtures and the processes that it waited for into the JUnit report.
    Its wall-clock time says less, as five tests share two cores.
    """
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_s", round(cpu_seconds() - item.stash[CPU], 2)))


def cpu_seconds() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give each test its own configuration and cache, and none of the user's PEERWAY_ variables."""
    for name in list(os.environ):
        if name.startswith("PEERWAY_") and name not in ("PEERWAY_BUILD_WHEELS", "PEERWAY_PACKAGES"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it cuts lines of several ranks into pieces
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # threads that no rank uses are a fifth of its start
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def run_program() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run a program to its end and give its output; what is still running when the test ends is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        # A group of its own, so that the ranks a launcher started can be ended with it.
        program = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )
        started.append(program)
        out, err = program.communicate()
        return subprocess.CompletedProcess(words, program.returncode, out, err)

    yield run
    for program in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def missing_for_browsers() -> str:
    absent = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if importlib.util.find_spec("selenium") is None:
        absent.append("the Python package selenium")
    return f"not found: {', '.join(absent)}" if absent else ""


@pytest.fixture(scope="module")
def browser(browser_of_session: Chrome) -> Iterator[Chrome]:
    """The browser. It shows nothing once the tests of a file have ended: a page takes 2 % of a core."""
    yield browser_of_session
    browser_of_session.get("about:blank")


@pytest.fixture(scope="session")
def browser_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One browser, without a network, for all tests that look at pages. It needs chromium and chromedriver
    (Debian: chromium, chromium-driver) and selenium. Without them the tests are skipped, except under CI.
    """
    if why := missing_for_browsers():
        if os.environ.get("CI"):
            pytest.fail(f"the browser tests must run under CI, but {why}")
        pytest.skip(f"{why}; on Debian: apt-get install chromium chromium-driver, pip install selenium")
    from browsing import chromium

    driver = chromium(tmp_path_factory.mktemp("profile"))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def nvrtc() -> ctypes.CDLL:
    """NVIDIA's compiler of device code, which needs no GPU."""
    from device_compilers import load_nvrtc

    return load_nvrtc()


@pytest.fixture(scope="session")
def cuda_include() -> Path:
    """The folder of NVIDIA's headers."""
    from device_compilers import file_of_wheel

    return file_of_wheel("nvidia-cuda-runtime", "cuda.h").parent
