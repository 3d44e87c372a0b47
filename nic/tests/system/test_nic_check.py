"""`peerway nic-check`: a NIC that does what nic.h asks passes, and each flaw is found by its test."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from launching import ROOT, Run, clean_environment, compile_nic, peerway, source_of

pytestmark = pytest.mark.alone  # a busy machine may make a test's result "unclear"
AT_A_TIME = 2
HANGS = 600.0  # seconds
SECONDS = 6  # the longest load; a test ends with its finding, which some flaws cause only by chance
# Flaw of the NIC -> the test, and what it must say. "silent": the NIC states no ordering guarantee.
FLAWS = {
    "broken": ("open, register, connect", 'open() gave PW_NIC_BROKEN: "the NIC does not answer"'),
    "needs-descriptor": ("open, register, connect", "without a descriptor, which must be taken"),
    "small": ("limits", "info.largest is 100; at least 4096"),
    "twins": ("numbers of endpoints", "two open endpoints have number 1"),
    "one-a-process": ("numbers of endpoints", "also those of one process"),
    "not-itself": ("an endpoint and itself", "connect() gave PW_NIC_REFUSED"),
    "signals": ("threads and signals", "a thread of the plugin takes SIG"),
    "unbounded": ("bounds", "a get of 8 bytes at offset"),
    "offsets-32": ("offsets above 4 GiB", "it went to that offset modulo 4 GiB"),
    "torn-puts": ("whole words in puts", "a word of 8 bytes was seen in parts"),
    "torn-gets": ("whole words in gets", "brought half of a word"),
    "edges": ("bytes beside a transfer", "beside a put of some bytes"),
    "backwards": ("gets in order", "from a peer was done when number"),
    "rarely-backwards": ("gets in order", "from a peer was done when number"),
    "puts-overtake": ("puts in order", "PW_NIC_PUTS_IN_ORDER is stated, but"),
    "gets-overtake": ("gets behind puts", "PW_NIC_GETS_BEHIND_PUTS is stated, but"),
    "twice": ("each operation ends once", "a completion callback was called twice"),
    "done-in-put": ("each operation ends once", "from another place than progress()"),
    "done-from-thread": ("each operation ends once", "from another place than progress()"),
    "lost-done": ("each operation ends once", "every operation that was accepted ends"),
    "slow-put": ("each operation ends once", "put() took"),
    "early-done": ("the source after done", "what was stored in `data` after the done of its put arrived"),
    "early-done,silent": (
        "the source after done",
        "what was stored in `data` after the done of its put arrived",
    ),
    "not-copied": ("the source after done", "what was stored in `data` after the done of its put arrived"),
    "polls": ("no polling", "while neither end called progress()"),
    "leaks-room": ("room after failures", "was PW_NIC_BUSY for"),
    "forgets-released": ("a key released early", "operations whose key was released have not ended"),
    "forgets-disconnected": (
        "a peer disconnected early",
        "operations whose peer was disconnected have not ended",
    ),
    "silent-close": ("closed early", "close() returned, and the done of"),
    "late-store": ("memory deregistered at the target", "after deregister_memory() had returned"),
    "forgetful": ("memory deregistered at the target", "after deregister_memory() had returned"),
    "no-generation": ("keys of earlier registrations", "give each registration a generation"),
    "dense": ("put_strided", "the byte at offset"),
    "word-first": ("put_with_word", "the word of put_with_word() came before its"),
    "late-fetch": ("fetch_add", "fetch_add() number 1 gave"),
    "mute": ("event and arm", "event() was not readable within"),
    "lost-puts": ("random traffic", "a put has not arrived"),
    "lost-puts,silent": ("random traffic", "a put has not arrived"),
    "most-puts-lost,silent": ("random traffic", "a put has not arrived"),
    "most-puts-lost": ("puts in order", "PW_NIC_PUTS_IN_ORDER is stated, but"),
    "leaks-descriptors": ("nothing is left behind", "file descriptors are lost"),
    "leaks-threads": ("nothing is left behind", "threads are lost"),
    "leaks-memory": ("nothing is left behind", " are lost, "),
    "dead-puts-ok": ("a peer that dies", "puts towards it are PW_NIC_OK, not PW_NIC_UNREACHABLE"),
    "crashes": ("each operation ends once", "was killed by signal 11"),
    "exits": ("each operation ends once", "its process exited"),
}
# The first flaw of each test always runs, the others in long runs.
FIRST = {FLAWS[flaw][0]: flaw for flaw in reversed(FLAWS)}.values()
# Variants of the same NIC that are not flaws.
CORRECT = ["", "only-puts", "only-gets", "silent"]
# Runs all tests at their usual length, with each flaw, and several times without: see CONTRIBUTING.md.
MINUTES = float(os.environ.get("PEERWAY_TEST_NIC_CHECK_MINUTES", "0"))

Verdicts = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def nic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_nic(source_of("full_nic.cpp"), tmp_path_factory.mktemp("nic"))


def check(nic: Path, runs: list[tuple[str, list[str], float]]) -> list[Verdicts]:
    """The verdicts of several configurations, by test."""
    done = subprocess.run(
        [sys.executable, str(source_of("nic_flaws.py")), str(nic)],
        input=json.dumps(runs), env=clean_environment(), capture_output=True, text=True, check=True,
        timeout=HANGS,
    )  # fmt: skip
    return [
        {test: (outcome, found) for test, outcome, found in json.loads(line)}
        for line in done.stdout.splitlines()
    ]


@pytest.fixture(scope="module")
def checks(nic: Path, pytestconfig: pytest.Config) -> Iterator[dict[str, tuple[Future[list[Verdicts]], int]]]:
    """Run the tests of the flaws, two at a time, because they partly wait for events that never come."""
    flaws = [flaw for flaw in FLAWS if flaw in FIRST or pytestconfig.getoption("--long")]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        parts = [flaws[i::AT_A_TIME] for i in range(AT_A_TIME)]
        asked = [[(flaw, [FLAWS[flaw][0]], SECONDS) for flaw in part] for part in parts]
        futures = [pool.submit(check, nic, each) for each in asked]
        yield {flaw: (futures[i % AT_A_TIME], i // AT_A_TIME) for i, flaw in enumerate(flaws)}


@pytest.mark.parametrize(
    "flaw", [pytest.param(flaw, marks=[] if flaw in FIRST else [pytest.mark.long]) for flaw in FLAWS]
)
def test_a_flaw_is_found_by_its_test(
    flaw: str, checks: dict[str, tuple[Future[list[Verdicts]], int]]
) -> None:
    test, said = FLAWS[flaw]
    future, index = checks[flaw]
    outcome, text = future.result()[index][test]
    assert outcome == "BROKEN", text
    assert said in text


def lines(output: str, word: str) -> list[str]:
    return [line[len(word) :].strip() for line in output.splitlines() if line.startswith(word)]


@pytest.mark.parametrize(
    "stated",
    [pytest.param(stated, marks=[pytest.mark.long] if stated else []) for stated in CORRECT],
)
def test_a_correct_nic_passes_whatever_it_states(stated: str, nic: Path) -> None:
    (found,) = check(nic, [(stated, [], 0.1)])
    # A busy machine may make a result unclear, but never raise a false alarm.
    assert {test: each for test, each in found.items() if each[0] == "BROKEN"} == {}
    absent = {test for test, (outcome, _) in found.items() if outcome == "ABSENT"}
    unstated = {"only-puts": {"gets behind puts"}, "only-gets": {"puts in order"}}
    both = {"puts in order", "gets behind puts"}
    assert absent == {"topology"} | unstated.get(stated, both if stated == "silent" else set())


EXAMPLE = ROOT / "examples" / "nic" / "example.cpp"


def test_the_example_is_short() -> None:
    lines_of_code = [
        line
        for line in EXAMPLE.read_text().splitlines()
        if line.strip() and not line.strip().startswith("//")
    ]
    assert len(lines_of_code) < 200


@pytest.mark.long
def test_the_example_passes(run: Run, tmp_path: Path) -> None:
    nic = compile_nic(EXAMPLE, tmp_path)
    done = run(peerway("nic-check", str(nic), "--minutes", "0.05", "--seed", "7"), timeout=HANGS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines(done.stdout, "broken ") == []
    assert done.stdout.splitlines()[-2:] == [f"31 ok, 0 broken, 0 unclear, 6 absent: {nic}", "seed 7"]


def test_a_flaw_ends_the_command_with_1_and_says_how_to_repeat_it(nic: Path, run: Run) -> None:
    plugin = f"{nic}?not-itself"
    done = run(
        peerway("nic-check", plugin, "--test", "limits", "--test", "an endpoint and itself", "--seed", "5")
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(lines(done.stdout, "broken ")) == 1
    again = f"again: peerway nic-check '{plugin}' --seed 5 --test limits --test 'an endpoint and itself'"
    assert done.stdout.splitlines()[-1] == again


def test_a_test_that_there_is_not(nic: Path, run: Run) -> None:
    done = run(peerway("nic-check", str(nic), "--test", "speed"))
    assert done.returncode == 2
    assert "there is no test 'speed'. There are: open, register, connect; limits;" in done.stderr


# Loss makes a torus slow, so only its own tests run there.
BY_DATAGRAM = ["gets", "the source after done", "memory deregistered at the target", "a peer that dies"]
TORI: dict[str, dict[str, object]] = {
    "memory": {},
    "datagrams": {"faults": {"seed": 7, "drop": 0.02, "duplicate": 0.02, "corrupt": 0.02}},
    "held back": {"guarantees": [], "faults": {"seed": 7, "reorder": {"probability": 0.2, "us": 200}}},
}


# A delayed torus is also tested under MPI and between processes. Over shared memory it refuses at once what
# fails later over datagrams.
@pytest.mark.parametrize(
    ("torus", "tests"),
    [
        pytest.param("datagrams", BY_DATAGRAM, id="datagrams"),
        pytest.param("memory", ["memory deregistered at the target"], id="refusals"),
        *(pytest.param(one, [], id=one, marks=pytest.mark.long) for one in ("memory", "held back")),
    ],
)
def test_the_torus_passes(torus: str, tests: list[str], run: Run, tmp_path: Path) -> None:
    file = tmp_path / "torus.json"
    file.write_text(json.dumps(TORI[torus]))
    chosen = [word for test in tests for word in ("--test", test)]
    done = run(peerway("nic-check", f"torus?{file}", "--minutes", "0.02", *chosen), timeout=HANGS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    MINUTES == 0, reason="PEERWAY_TEST_NIC_CHECK_MINUTES is not set: each flaw in a whole run takes long"
)
@pytest.mark.parametrize("flaw", FLAWS)
def test_a_whole_run_finds_each_flaw(flaw: str, nic: Path, run: Run) -> None:
    done = run(
        peerway("nic-check", f"{nic}?{flaw}", "--minutes", str(MINUTES)), timeout=HANGS * (1 + MINUTES)
    )
    assert done.returncode == 1, done.stdout + done.stderr


@pytest.mark.skipif(MINUTES == 0, reason="PEERWAY_TEST_NIC_CHECK_MINUTES is not set")
@pytest.mark.parametrize("stated", CORRECT)
def test_a_whole_run_finds_nothing_in_a_correct_nic(stated: str, nic: Path, run: Run) -> None:
    done = run(
        peerway("nic-check", f"{nic}?{stated}", "--minutes", str(MINUTES)), timeout=HANGS * (1 + MINUTES)
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_guide_quotes_the_example() -> None:
    source = EXAMPLE.read_text()
    blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs" / "nic" / "guide.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        assert block in source, block


def test_the_first_commands_of_the_guide_run_as_written(run: Run, tmp_path: Path) -> None:
    """As in a fresh clone: the files that they name exist, those that they make do not."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "library").symlink_to(ROOT / "library")
    page = (ROOT / "docs" / "nic" / "guide.md").read_text()
    block = re.search(r"```console\n(.*?)```", page, re.DOTALL)
    assert block is not None
    copy, compile_it, check, *_ = (line.removeprefix("$ ") for line in block[1].splitlines())
    check = check.replace("peerway nic-check", f"{shlex.join(peerway('nic-check'))} --test puts")
    script = "\n".join(["set -e", copy, compile_it, check])
    done = run(["sh", "-c", script], timeout=HANGS, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok +puts ", done.stdout, re.MULTILINE)


def test_a_library_that_is_no_plugin(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int something_else(void);\nint something_else(void) { return 0; }\n")
    done = run(peerway("nic-check", str(compile_nic(source, tmp_path))))
    assert done.returncode == 2
    assert done.stderr.count("is not a NIC plugin: it has no function pw_nic_plugin()") == 1
