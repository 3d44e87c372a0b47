"""Run the tests that need no GPU and end with one line that sums them up: N passed, N failed, N skipped.

    python scripts/test.py [--long | --sanitized]

These run side by side: the C++ unit tests, with the library as `make build` made it, which also feed the
fuzzed parsers the stored inputs; the Python tests with those between processes, whose ranks sleep while they
wait; and those on virtual clusters, which mostly wait. Last come the few that need the machine for
themselves. With --long, what takes long comes on top: the unit tests under ASan+UBSan, those with threads
under TSan, each fuzzer for a minute, and the Python tests that are marked `long`; ranks then poll, as is the
default. If a few Python tests fail, they run once more, alone, and the record names those that pass then.
Compilers of sanitized code get what tests leave idle, so that no rank misses its turn. With --sanitized, only
the unit tests run, under ASan+UBSan. Logs, results and times are in out/test; the record of the last long run
is results/tests/long.jsonl. What cannot run here is skipped with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import checks
from checks import OUT, Totals
from steps import BUILD, CORES, ROOT, TIMES, end_all, main, say

if TYPE_CHECKING:
    from collections.abc import Callable

# Without optimisation and in large units, because compiling sanitized code takes much longer than its tests.
# Without the extension module.
SLIM = ["-DPEERWAY_PYTHON=OFF", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0 -g1", "-DPEERWAY_UNITS=2"]
FUZZ_SECONDS = 60  # per fuzzer
RECORDS = ROOT / "results" / "tests"
RECORD = RECORDS / "long.jsonl"
LEFT_OUT = (
    "left out, for `make test-long`: sanitizers (`make test-sanitized` has the unit tests under ASan and "
    "UBSan), fuzzing by time, and tests marked `long`, which add little to the others"
)


def clang(runtime: str) -> list[str]:
    """The settings to build with clang, which compiles this faster; empty
    if clang or a sanitizer's runtime is missing.
    """
    result = shutil.which("clang++")
    if result and list(Path("/usr/lib").glob(f"llvm-*/lib/clang/*/lib/linux/libclang_rt.{runtime}-*.a")):
        return [f"-DCMAKE_CXX_COMPILER={result}", f"-DCMAKE_C_COMPILER={result.removesuffix('++')}"]
    return []


def address_sanitizer(totals: Totals) -> None:
    """Run the unit tests under ASan and UBSan."""
    folder = ROOT / "build" / "asan"
    settings = [*SLIM, "-DPEERWAY_SANITIZE=address,undefined", *clang("asan")]
    if not checks.build(totals, "unit-asan", folder, ["unit", "unit_pure"], settings):
        return
    options = {"ASAN_OPTIONS": "detect_leaks=1:handle_abort=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    for program in ("unit", "unit_pure"):
        checks.unit_tests(totals, f"{program}-asan", folder, program=program, shards=CORES, **options)


def fuzzers(totals: Totals) -> None:
    """Run the fuzzers. They have a build folder of their own,
    because instrumentation makes all code a quarter larger.
    """
    result = clang("fuzzer")
    if not result:
        totals.skip("fuzzers: skipped, clang is missing (apt-get install clang libclang-rt-dev)")
        return
    folder = ROOT / "build" / "fuzz"
    settings = [*SLIM, "-DPEERWAY_FUZZ=ON", "-DPEERWAY_SANITIZE=address,undefined,fuzzer-no-link", *result]
    if checks.build(totals, "fuzzers", folder, ["fuzzers"], settings):
        checks.fuzz(totals, folder, FUZZ_SECONDS)


def thread_sanitizer(totals: Totals) -> None:
    """Run the unit tests with threads under TSan.

    TSan needs fixed addresses, but newer kernels randomise them.
    """
    folder = ROOT / "build" / "tsan"
    settings = [*SLIM, "-DPEERWAY_SANITIZE=thread", *clang("tsan")]
    if checks.build(totals, "unit-tsan", folder, ["unit"], settings):
        options = {"TSAN_OPTIONS": "second_deadlock_stack=1:handle_abort=1"}
        checks.unit_tests(totals, "unit-tsan", folder, "setarch", "-R", shards=CORES, **options)


def unsanitized(totals: Totals) -> None:
    """Run the unit tests with the library as users get it. What malloc gives is filled, so that a read of
    bytes that were never written shows.
    """

    def run_program(part: Totals, program: str, shards: int = 1) -> None:
        checks.unit_tests(part, program, BUILD, program=program, shards=shards, MALLOC_PERTURB_="165")

    if checks.build(totals, "unit", BUILD, ["unit", "unit_pure", "unit_nvrtc"], []):
        run_program(totals, "unit", CORES)
        side_by_side(  # both take a core for about as long, and one test of NVRTC cannot be divided
            totals,
            lambda part: run_program(part, "unit_pure"),
            lambda part: run_program(part, "unit_nvrtc"),
        )


def side_by_side(totals: Totals, *bodies: Callable[[Totals], None]) -> None:
    """Run all functions at once, each with its own counts, which are added to the totals in the given
    order.
    """
    parts = [Totals() for _ in bodies]
    with ThreadPoolExecutor(max_workers=len(bodies)) as pool:
        running = [pool.submit(body, part) for body, part in zip(bodies, parts, strict=True)]
        try:
            for running_step in running:
                running_step.result()
        except KeyboardInterrupt:
            end_all()
            raise
    for part in parts:
        totals.include(part)


def marked(mark: str) -> list[object]:
    """The options to run the tests between processes with one mark; no other file is imported."""
    result = ROOT.glob("*/tests/system/test_*.py")
    return [*sorted(path for path in result if f"pytest.mark.{mark}" in path.read_text()), "-m", mark]


def pytest(totals: Totals, long: bool, name: str, workers: int, *options: object) -> None:
    """Run whole files in parallel, in the order of conftest.py: the long ones first."""
    whole = ["--long"] if long else []
    by_file = ["-n", workers, "--dist=loadfile", "--no-loadscope-reorder"]
    checks.pytest(totals, name, *options, *whole, *by_file)


def all_tests(totals: Totals, long: bool) -> None:
    """Run every test; the totals list them in this order."""

    def sanitized(part: Totals) -> None:
        if long:
            address_sanitizer(part)
            thread_sanitizer(part)

    # Two more workers than cores, because browsers and ranks sleep. With three more, a test of the clusters
    # beside them missed activity of 3 s.
    others = ("-m", "not alone and not cluster")
    side_by_side(
        totals,
        unsanitized,
        lambda part: pytest(part, long, "python", CORES + 2, *others),
        lambda part: pytest(part, long, "system-clusters", 2, *marked("cluster")),
        sanitized,
    )
    if long:
        fuzzers(totals)
    # Tests that judge CPU time get a core of their own.
    pytest(totals, long, "system-alone", min(2, CORES), *marked("alone"))


def commit() -> str:
    """The commit that is tested, with a `+` if files differ from it; empty if this is no clone of git."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def record(command: str, tested: str, totals: Totals, started: float) -> str:
    """JSON lines that say what was run, on which machine and how it ended, and then each step with its
    times.
    """
    head = {
        "command": command,
        "commit": tested,
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {CORES} cores",
        "summary": totals.line(),
        "wall_s": round(time.monotonic() - started, 1),
        "passed_alone": totals.passed_alone,
        "skipped_or_failed": sorted([*totals.skips, *(name for name, _ in totals.failures)]),
    }
    return "".join(json.dumps(line) + "\n" for line in (head, *TIMES))


def last_time(command: str) -> str:
    """The time that this took last time, on this machine or else in the records."""
    for place, files in (
        ("here", [OUT / "times.jsonl"]),
        ("in results/tests", [RECORDS / "make-test.jsonl", RECORD]),
    ):
        for file in files:
            lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
            heads = [line for line in lines if line.get("command") == command]
            if heads:
                last = heads[-1]
                return f"{last['wall_s'] / 60:.0f} minutes the last time {place}, on {last['machine']}"
    return "no record of how long it takes"


def test() -> int:
    """Run all tests, print skipped and failed ones, and then the summary line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--long", action="store_true", help="also what takes long, as before a release")
    kinds.add_argument("--sanitized", action="store_true", help="only the unit tests, under ASan and UBSan")
    options = parser.parse_args()
    long = options.long
    command = "make test" + ("-long" if long else "-sanitized" if options.sanitized else "")
    started, tested = time.monotonic(), commit()
    totals = Totals()
    # In the background, a shell makes all children ignore these signals, but tests of signals need them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for name in [name for name in os.environ if name.startswith("PEERWAY_")]:
        del os.environ[name]  # the tests start from the defaults
    if any(character.isspace() for character in tempfile.gettempdir()):
        # Slurm's and the file servers' own files cannot name such a folder, and the tests start both.
        say(f"test: the temporary folder {tempfile.gettempdir()!r} has a space in its name; /tmp is used")
        os.environ["TMPDIR"] = "/tmp"
    say(f"test: {last_time(command)}")
    if options.sanitized:
        address_sanitizer(totals)
    else:
        if not long:
            say(f"test: {LEFT_OUT}")
        all_tests(totals, long)
        if long:
            checks.run_again(totals)
    totals.show()
    for name in totals.passed_alone:
        say(f"  failed beside other tests, and passed when it ran alone: {name}")
    say(f"test: {time.monotonic() - started:.0f} s, logs in out/test")
    text = record(command, tested, totals, started)
    (OUT / "times.jsonl").write_text(text)
    if long:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(text)
    (OUT / "summary").write_text(totals.line() + "\n")
    say(totals.line())
    return 1 if totals.failed else 0


if __name__ == "__main__":
    main(test)
