"""Run every test that needs no GPU and end with one line that sums them up: N passed, N failed, N skipped.

The C++ unit tests run plain, under ASan+UBSan and under TSan; each fuzzer, of the same build as ASan's, runs
for FUZZ_SECONDS (60) or half of that; then the Python and system tests, and the documentation build. Logs
and results are in out/test. What cannot run here is skipped with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from steps import BUILD, CORES, ROOT, VENV, environment, main, run, say, show_end

OUT = ROOT / "out" / "test"
PYTHON = VENV / "bin" / "python"
# The least optimisation that keeps the sanitizers quick, the sources of a layer compiled together
# (cmake/Together.cmake), and no extension module.
SLIM = [
    "-DPEERWAY_PYTHON=OFF", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1 -g1",
]  # fmt: skip
# NVRTC takes a minute under a sanitizer, for code that is not ours.
NO_COMPILER = {"GTEST_FILTER": "-NvrtcCompile.*"}
FUZZERS = "-DPEERWAY_FUZZ=ON"
FUZZ_SECONDS = int(os.environ.get("FUZZ_SECONDS", "60"))
# What only ranks of the same job say, or a user's own files: half of the time.
TRUSTED = {"fuzz_note", "fuzz_offer", "fuzz_rules"}


@dataclass
class Totals:
    """Counts over all runners, and why something was skipped or failed."""

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


def configure_and_build(folder: Path, targets: list[str], settings: list[str], name: str) -> bool:
    """Configure a build folder with CMake and build the targets in it. Returns whether that worked."""
    configure: list[object] = [
        "cmake",
        "-S",
        ROOT,
        "-B",
        folder,
        "-G",
        "Ninja",
        f"-DPython_EXECUTABLE={PYTHON}",
    ]
    log = OUT / f"{name}-build.log"
    for title, command in (
        (f"configure {name}", [*configure, *settings]),
        (f"build {name}", ["cmake", "--build", folder, "--target", *targets]),
    ):
        if run(title, command, log) != 0:
            show_end(log)
            return False
    return True


def unit_tests(
    totals: Totals, name: str, folder: Path, settings: list[str], prefix: list[str], **env: str
) -> bool:
    """Build the binary of all C++ unit tests in one variant, with the fuzzers where it has them, run it and
    count. Returns whether it was built.
    """
    if not Path("/usr/include/gtest/gtest.h").exists():
        totals.add(skipped=1, remark=f"{name}: skipped, GoogleTest is missing (apt-get install libgtest-dev)")
        return False
    targets = ["unit", "fuzzers"] if FUZZERS in settings else ["unit"]
    if not configure_and_build(folder, targets, ["-DPEERWAY_TESTS=ON", *settings], name):
        totals.add(failed=1, remark=f"{name}: the build failed, see out/test/{name}-build.log")
        return False
    result, log = OUT / f"{name}.json", OUT / f"{name}.log"
    result.unlink(missing_ok=True)
    command = [
        *prefix,
        folder / "tests" / "unit" / "unit",
        f"--gtest_output=json:{result}",
        "--gtest_brief=1",
    ]
    status = run(f"run {name}", command, log, environment(**env))
    if status != 0:
        show_end(log)
    count_gtest(totals, name, result, status)
    return True


def address_sanitizer(totals: Totals) -> None:
    """Run the unit tests under ASan and UBSan, and the fuzzers, which are of the same build.

    Only clang has the fuzzers' library; without it the unit tests are built by the default compiler.
    """
    clang = shutil.which("clang++")
    runtime = list(Path("/usr/lib").glob("llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a"))
    if clang and runtime:
        settings = [FUZZERS, "-DPEERWAY_SANITIZE=address,undefined,fuzzer-no-link"]
        settings += [f"-DCMAKE_CXX_COMPILER={clang}", f"-DCMAKE_C_COMPILER={clang.removesuffix('++')}"]
    else:
        settings = ["-DPEERWAY_SANITIZE=address,undefined"]
        totals.add(
            skipped=1, remark="fuzzers: skipped, clang is missing (apt-get install clang libclang-rt-dev)"
        )
    folder = ROOT / "build" / "asan"
    options = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1", **NO_COMPILER}
    if unit_tests(totals, "unit-asan", folder, [*SLIM, *settings], [], **options) and FUZZERS in settings:
        fuzz(totals, folder)


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


def fuzz(totals: Totals, folder: Path) -> None:
    """Run the fuzzers that were built in the folder, as many at a time as there are cores."""
    fuzzers = sorted(
        path for path in (folder / "tests" / "fuzz").iterdir() if path.is_file() and os.access(path, os.X_OK)
    )
    with ThreadPoolExecutor(max_workers=min(CORES, 4)) as pool:
        statuses = list(pool.map(fuzz_one, fuzzers))
    for fuzzer, status in zip(fuzzers, statuses, strict=True):
        if status == 0:
            totals.add(passed=1)
        else:
            show_end(OUT / "fuzz" / f"{fuzzer.name}.log")
            totals.add(
                failed=1, remark=f"{fuzzer.name}: found something, see out/test/fuzz/{fuzzer.name}.log"
            )


def fuzz_one(fuzzer: Path) -> int:
    """Run one fuzzer from its seeds; what it finds is kept under out/test/fuzz."""
    corpus = OUT / "fuzz" / fuzzer.name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = [path for path in (ROOT / "tests" / "fuzz" / "corpus" / fuzzer.name,) if path.is_dir()]
    seconds = FUZZ_SECONDS // 2 if fuzzer.name in TRUSTED else FUZZ_SECONDS
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]
    where = [f"-artifact_prefix={corpus}-"]
    return run(
        f"fuzz {fuzzer.name}", [fuzzer, *limits, *where, corpus, *seeds], OUT / "fuzz" / f"{fuzzer.name}.log"
    )


def pytest(totals: Totals, folder: str) -> None:
    """Run one folder of Python tests and count from its JUnit report."""
    if not any((ROOT / "tests" / folder).glob("test_*.py")):
        return
    result, log = OUT / f"{folder}.xml", OUT / f"{folder}.log"
    result.unlink(missing_ok=True)
    status = run(
        f"pytest tests/{folder}",
        [PYTHON, "-m", "pytest", f"tests/{folder}", "--durations=40", f"--junitxml={result}"],
        log,
    )
    if status != 0:
        show_end(log)
    if not result.exists():
        totals.add(
            failed=1, remark=f"tests/{folder}: pytest ended with status {status}, see {log.relative_to(ROOT)}"
        )
        return
    suite = ElementTree.parse(result).getroot()[0]
    tests, errors, failures, skipped = (
        int(suite.get(key, "0")) for key in ("tests", "errors", "failures", "skipped")
    )
    totals.add(tests - errors - failures - skipped, errors + failures, skipped)
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith(("SKIPPED", "FAILED", "ERROR ")):
            totals.remarks.append(line)


def documentation(totals: Totals) -> None:
    """Build the documentation; a broken link or an undocumented page fails."""
    log = OUT / "docs.log"
    if (
        run(
            "build the documentation",
            [PYTHON, "-m", "mkdocs", "build", "--strict"],
            log,
            environment(NO_MKDOCS_2_WARNING="1"),
        )
        == 0
    ):
        totals.add(passed=1)
    else:
        show_end(log)
        totals.add(failed=1, remark="docs: the build failed, see out/test/docs.log")


def test() -> int:
    """Run all, print what is worth knowing, and the summary line."""
    started = time.monotonic()
    totals = Totals()
    # Started in the background, a shell makes all children ignore these; tests of signals need them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for name in [name for name in os.environ if name.startswith("PEERWAY_")]:
        del os.environ[name]  # the tests start from the defaults
    say("test: C++")
    unit_tests(totals, "unit", BUILD, [], [])
    address_sanitizer(totals)
    # ThreadSanitizer needs its addresses in place, which the randomisation of newer kernels denies it.
    unit_tests(
        totals,
        "unit-tsan",
        ROOT / "build" / "tsan",
        [*SLIM, "-DPEERWAY_SANITIZE=thread"],
        ["setarch", "-R"],
        TSAN_OPTIONS="second_deadlock_stack=1",
        **NO_COMPILER,
    )
    say("test: Python and whole programs")
    pytest(totals, "python")
    pytest(totals, "system")
    documentation(totals)
    for remark in totals.remarks:
        say(f"  {remark}")
    say(f"test: {time.monotonic() - started:.0f} s, logs in out/test")
    (OUT / "summary").write_text(totals.line() + "\n")
    say(totals.line())
    return 1 if totals.failed else 0


if __name__ == "__main__":
    main(test)
