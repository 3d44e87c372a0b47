"""The checks that `make test` is made of: each runs one kind of test and adds what came out to the totals."""

from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from steps import CORES, ROOT, VENV, environment, run, show_end

OUT = ROOT / "out" / "test"
PYTHON = VENV / "bin" / "python"
# Many times what they take: only what hangs meets them. In seconds.
UNIT_LIMIT, PYTEST_LIMIT, LONG_LIMIT = 600, 1800, 6 * 3600
FUZZ_LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]
# What only ranks of the same job say, or a user's own files: half of the time.
TRUSTED = {"fuzz_note", "fuzz_offer", "fuzz_rules"}


@dataclass
class Totals:
    """Counts over all checks, and why something was skipped or failed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    remarks: list[str] = field(default_factory=list)

    def add(self, passed: int = 0, failed: int = 0, skipped: int = 0, remark: str = "") -> None:
        """Add counts, with a remark for the end when there is something to say."""
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if remark:
            self.remarks.append(remark)

    def line(self) -> str:
        """Give the summary line."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def build(totals: Totals, name: str, folder: Path, targets: list[str], settings: list[str]) -> bool:
    """Configure a build folder with CMake and build the targets in it. Returns whether that worked."""
    if not Path("/usr/include/gtest/gtest.h").exists():
        totals.add(skipped=1, remark=f"{name}: skipped, GoogleTest is missing (apt-get install libgtest-dev)")
        return False
    log = OUT / f"{name}-build.log"
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython_EXECUTABLE={PYTHON}"]
    for title, command in (
        (f"configure {name}", [*configure, "-DPEERWAY_TESTS=ON", *settings]),
        (f"build {name}", ["cmake", "--build", folder, "--target", *targets]),
    ):
        if run(title, command, log) != 0:
            show_end(log)
            totals.add(failed=1, remark=f"{name}: the build failed, see out/test/{log.name}")
            return False
    return True


def unit_tests(
    totals: Totals, name: str, folder: Path, *prefix: str, program: str = "unit", **env: str
) -> None:
    """Run a program of C++ unit tests that was built in the folder, and count."""
    result, log = OUT / f"{name}.json", OUT / f"{name}.log"
    result.unlink(missing_ok=True)
    command = [
        *prefix,
        folder / "tests" / "unit" / program,
        f"--gtest_output=json:{result}",
    ]
    status = run(f"run {name}", command, log, environment(**env), limit_s=UNIT_LIMIT)
    if status != 0:
        show_end(log)
    count_gtest(totals, name, result, status)


def count_gtest(totals: Totals, name: str, result: Path, status: int) -> None:
    """Add the counts of a GoogleTest report; a crash leaves none and counts as one failure."""
    if not result.exists():
        totals.add(
            failed=1, remark=f"{name}: ended with status {status} before its report, see out/test/{name}.log"
        )
        return
    report = json.loads(result.read_text())
    tests = [test for suite in report["testsuites"] for test in suite["testsuite"]]
    failed = sum("failures" in test for test in tests)
    skipped = sum(test["result"] == "SKIPPED" or test["status"] == "NOTRUN" for test in tests)
    if status != 0 and failed == 0:
        failed, remark = 1, f"{name}: all tests passed, but the program ended with status {status}"
    else:
        remark = f"{name}: {failed} failed, see out/test/{name}.log" if failed else ""
    totals.add(len(tests) - failed - skipped, failed, skipped, remark)


def fuzz(totals: Totals, folder: Path, runs: int, seconds: int) -> None:
    """Run the fuzzers that were built in the folder: each over its seeds and so many changes of them; or so
    long, where `seconds` are given, as many at a time as there are cores.
    """
    fuzzers = sorted(
        path for path in (folder / "tests" / "fuzz").iterdir() if path.is_file() and os.access(path, os.X_OK)
    )
    with ThreadPoolExecutor(max_workers=min(CORES, 4) if seconds else 1) as pool:
        statuses = list(pool.map(lambda fuzzer: fuzz_one(fuzzer, runs, seconds), fuzzers))
    for fuzzer, status in zip(fuzzers, statuses, strict=True):
        if status == 0:
            totals.add(passed=1)
        else:
            show_end(OUT / "fuzz" / f"{fuzzer.name}.log")
            totals.add(
                failed=1, remark=f"{fuzzer.name}: found something, see out/test/fuzz/{fuzzer.name}.log"
            )


def fuzz_one(fuzzer: Path, runs: int, seconds: int) -> int:
    """Run one fuzzer; what it finds is under out/test/fuzz. By time it goes on where it was the last time; a
    number of runs is the same each time, and ends early on a slow machine.
    """
    found = OUT / "fuzz" / fuzzer.name
    if seconds:
        length = [f"-max_total_time={seconds // 2 if fuzzer.name in TRUSTED else seconds}"]
    else:
        length = [f"-runs={runs}", "-seed=1", "-max_total_time=15"]
        shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True, exist_ok=True)
    command = [fuzzer, *length, *FUZZ_LIMITS, f"-artifact_prefix={found}-", found]
    seeds = ROOT / "tests" / "fuzz" / "corpus" / fuzzer.name
    log = OUT / "fuzz" / f"{fuzzer.name}.log"
    return run(f"fuzz {fuzzer.name}", [*command, *([seeds] if seeds.is_dir() else [])], log)


def pytest(totals: Totals, folder: str, *options: str, **env: str) -> None:
    """Run one folder of Python tests and count from its JUnit report."""
    result, log = OUT / f"{folder}.xml", OUT / f"{folder}.log"
    result.unlink(missing_ok=True)
    # Files of pure Python run side by side; what measures, polls or is killed has the machine to itself.
    lanes = ["-n", CORES, "--dist=loadfile"] if folder == "python" else []
    tests = [f"tests/{folder}", *lanes, "--durations=60", f"--junitxml={result}", *options]
    limit = LONG_LIMIT if "--long" in options else PYTEST_LIMIT
    status = run(f"pytest tests/{folder}", [PYTHON, "-m", "pytest", *tests], log, environment(**env), limit)
    if status != 0:
        show_end(log)
    if not result.exists():
        totals.add(
            failed=1, remark=f"tests/{folder}: pytest ended with status {status}, see {log.relative_to(ROOT)}"
        )
        return
    suite = ElementTree.parse(result).getroot()[0]
    tests_run, errors, failures, skipped = (
        int(suite.get(key, "0")) for key in ("tests", "errors", "failures", "skipped")
    )
    totals.add(tests_run - errors - failures - skipped, errors + failures, skipped)
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith(("SKIPPED", "FAILED", "ERROR ")):
            totals.add(remark=line)


def documentation(totals: Totals) -> None:
    """Build the documentation; a broken link or an undocumented page fails."""
    log = OUT / "docs.log"
    build_site = [PYTHON, "-m", "mkdocs", "build", "--strict"]
    if run("build the documentation", build_site, log, environment(NO_MKDOCS_2_WARNING="1")) == 0:
        totals.add(passed=1)
    else:
        show_end(log)
        totals.add(failed=1, remark="docs: the build failed, see out/test/docs.log")
