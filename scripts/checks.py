"""The checks of `make test`: each runs one kind of test and adds its results to the totals."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from steps import CORES, ROOT, VENV, environment, run, say, show_lines

OUT = ROOT / "out" / "test"
PYTHON = VENV / "bin" / "python"
# Seconds; many times what the tests take, so that only hanging tests reach them.
UNIT_LIMIT, PYTEST_LIMIT, LONG_LIMIT = 600, 3600, 6 * 3600
# Runs a compiler only on CPU time that the tests leave idle: by scheduling class, and by its session's
# autogroup.
IDLE = ["sh", "-c", '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec chrt --idle 0 "$@"', "idle"]
FUZZ_LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]
# More failed tests than this have a reason of their own, and are not run again.
MOST_AGAIN = 5
# Fuzzers of input that comes only from ranks of the same job or from the user's own files get half the time.
TRUSTED = {"fuzz_collective", "fuzz_note", "fuzz_offer", "fuzz_rules"}


@dataclass
class Totals:
    """Counts over all checks, the reasons of skipped tests, and the failed tests with their output."""

    passed: int = 0
    skipped: int = 0
    skips: list[str] = field(default_factory=list)
    failures: list[tuple[str, list[str]]] = field(default_factory=list)
    passed_alone: list[str] = field(default_factory=list)  # when they were run again, after a failure

    def add(self, passed: int = 0, skipped: int = 0) -> None:
        """Add counts of tests that did not fail."""
        self.passed += passed
        self.skipped += skipped

    @property
    def failed(self) -> int:
        """The number of failed tests."""
        return len(self.failures)

    def skip(self, why: str) -> None:
        """Count one skipped test."""
        self.skipped += 1
        self.skips.append(why)

    def fail(self, name: str, output: str | Path) -> None:
        """Count one failed test, with its output or its log."""
        text = output.read_text(errors="replace") if isinstance(output, Path) else output
        self.failures.append((f"FAILED {name}", text.splitlines()))

    def include(self, other: Totals) -> None:
        """Add the totals of another check."""
        self.add(other.passed, other.skipped)
        self.skips += other.skips
        self.failures += other.failures

    def show(self) -> None:
        """Print what was skipped, then what failed, because people read the end of a long output."""
        for skip in self.skips:
            say(f"  {skip}")
        for name, output in self.failures:
            show_lines(name, output)

    def line(self) -> str:
        """The summary line."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def build(totals: Totals, name: str, folder: Path, targets: list[str], settings: list[str]) -> bool:
    """Configure a build folder with CMake and build the targets in it. Returns whether that worked."""
    if not Path("/usr/include/gtest/gtest.h").exists():
        totals.skip(f"{name}: skipped, GoogleTest is missing (apt-get install libgtest-dev)")
        return False
    log = OUT / f"{name}-build.log"
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython_EXECUTABLE={PYTHON}"]
    for title, command in (
        (f"configure {name}", [*configure, "-DPEERWAY_TESTS=ON", *settings]),
        (f"build {name}", [*IDLE, "cmake", "--build", folder, "--target", *targets]),
    ):
        if run(title, command, log) != 0:
            totals.fail(f"{name}: the build, see out/test/{log.name}", log)
            return False
    return True


def unit_tests(
    totals: Totals, name: str, folder: Path, *prefix: str, program: str = "unit", shards: int = 1, **env: str
) -> None:
    """Run a program of C++ unit tests from the folder, in `shards` parallel parts, and count the results."""
    parts = [name] if shards == 1 else [f"{name}-{part}" for part in range(shards)]
    binary = folder / "tests" / "unit" / program

    def run_part(index: int) -> int:
        result = OUT / f"{parts[index]}.json"
        result.unlink(missing_ok=True)
        command = [*prefix, binary, f"--gtest_output=json:{result}"]
        part = {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(index)}
        log = OUT / f"{parts[index]}.log"
        return run(f"run {parts[index]}", command, log, environment(**env, **part), limit_s=UNIT_LIMIT)

    with ThreadPoolExecutor(max_workers=shards) as pool:
        statuses = list(pool.map(run_part, range(shards)))
    for part, status in zip(parts, statuses, strict=True):
        count_gtest(totals, part, status)


def count_gtest(totals: Totals, name: str, status: int) -> None:
    """Add the counts of a GoogleTest report, with the name and the end of the output of each failed test.

    A crash leaves no report and counts as one failure, of the test that was running.
    """
    result, log = OUT / f"{name}.json", OUT / f"{name}.log"
    text, where = log.read_text(errors="replace"), f"see out/test/{name}.log"
    if not result.exists():
        begun = re.findall(r"^\[ RUN      \] (\S+)$", text, re.MULTILINE)
        at = f"in {begun[-1]}" if begun else "before its first test"
        totals.fail(f"{name}: ended with status {status} {at}, {where}", text)
        return
    report = json.loads(result.read_text())
    tests = [(suite["name"], test) for suite in report["testsuites"] for test in suite["testsuite"]]
    failed = [f"{suite}.{test['name']}" for suite, test in tests if "failures" in test]
    skipped = sum(test["result"] == "SKIPPED" or test["status"] == "NOTRUN" for _, test in tests)
    totals.add(len(tests) - len(failed) - skipped, skipped)
    for test in failed:
        totals.fail(f"{name}: {test}, {where}", output_of(test, text))
    if status != 0 and not failed:
        totals.fail(f"{name}: all tests passed, but it ended with status {status}, {where}", text)


def output_of(test: str, log: str) -> str:
    """The lines of a GoogleTest log between the start and the end of a test."""
    _, _, after = log.partition(f"[ RUN      ] {test}\n")
    body, _, _ = after.partition(f"[  FAILED  ] {test}")
    return body


def fuzz(totals: Totals, folder: Path, seconds: int) -> None:
    """Run the fuzzers of the folder for `seconds` each, as many at a time as there are cores."""
    fuzzers = sorted(
        path for path in (folder / "tests" / "fuzz").iterdir() if path.is_file() and os.access(path, os.X_OK)
    )
    with ThreadPoolExecutor(max_workers=min(CORES, 4)) as pool:
        statuses = list(pool.map(lambda fuzzer: fuzz_one(fuzzer, seconds), fuzzers))
    for fuzzer, status in zip(fuzzers, statuses, strict=True):
        if status == 0:
            totals.add(passed=1)
        else:
            log = OUT / "fuzz" / f"{fuzzer.name}.log"
            totals.fail(f"{fuzzer.name}: found something, see out/test/fuzz/{log.name}", log)


def fuzz_one(fuzzer: Path, seconds: int) -> int:
    """Run one fuzzer from the stored inputs and those of its last run; its findings are in out/test/fuzz."""
    result = OUT / "fuzz" / fuzzer.name
    result.mkdir(parents=True, exist_ok=True)
    length = f"-max_total_time={seconds // 2 if fuzzer.name in TRUSTED else seconds}"
    (seeds,) = ROOT.glob(f"*/tests/fuzz/corpus/{fuzzer.name}")
    command = [fuzzer, length, *FUZZ_LIMITS, f"-artifact_prefix={result}-", result, seeds]
    return run(f"fuzz {fuzzer.name}", command, OUT / "fuzz" / f"{fuzzer.name}.log")


def pytest(totals: Totals, name: str, *options: object, **env: str) -> None:
    """Run Python tests and count from the JUnit report, with the end of the output of each failed test."""
    result, log = OUT / f"{name}.xml", OUT / f"{name}.log"
    result.unlink(missing_ok=True)
    # This family of reports contains the file of each test, by which pytest can run it again.
    report = ["-o", "junit_family=xunit1", f"--junitxml={result}"]
    command = [PYTHON, "-m", "pytest", "--durations=60", *report, *options]
    limit = LONG_LIMIT if "--long" in options else PYTEST_LIMIT
    status = run(f"pytest {name}", command, log, environment(**env), limit)
    ended = f"{name}: pytest ended with status {status}, see out/test/{log.name}"
    if not result.exists():
        totals.fail(ended, log)
        return
    suite = ElementTree.parse(result).getroot()[0]
    tests_run, errors, failures, skipped = (
        int(suite.get(key, "0")) for key in ("tests", "errors", "failures", "skipped")
    )
    totals.add(tests_run - errors - failures - skipped, skipped)
    if status != 0 and errors + failures == 0:
        totals.fail(ended, log)
    for case in suite.iter("testcase"):
        for matches in [*case.findall("failure"), *case.findall("error")]:
            totals.fail(f"{case.get('file')}::{case.get('name')}", matches.text or "")
    lines = log.read_text(errors="replace").splitlines()
    totals.skips += [line for line in lines if line.startswith("SKIPPED")]


def run_again(totals: Totals) -> None:
    """Run the Python tests that failed once more, now with the machine to themselves. Those that pass then
    count as passed and are named: other tests had taken the time, memory or cache that they needed.
    """
    tests = [name.removeprefix("FAILED ") for name, _ in totals.failures]
    if (
        not tests
        or len(tests) > MOST_AGAIN
        or not all((ROOT / test.split("::")[0]).exists() for test in tests)
    ):
        return
    again = Totals()
    pytest(again, "again", *tests, "--long")
    failed = {name.removeprefix("FAILED ") for name, _ in again.failures}
    if not failed <= set(tests):  # pytest itself failed
        return
    totals.passed_alone = [test for test in tests if test not in failed]
    totals.passed += len(totals.passed_alone)
    totals.failures = [failure for failure in totals.failures if failure[0].removeprefix("FAILED ") in failed]
