"""`peerway nic-check`: a card that keeps the laws passes, and each flaw is found by its law."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from launching import LIMIT, PROGRAMS, ROOT, Run, clean_environment, compile_card, peerway

AT_A_TIME = 3
# What the card does wrong -> the law, and what must be said of it.
FLAWS = {
    "broken": ("open, register, connect", "open() gave PW_NIC_BROKEN: the card does not answer"),
    "small": ("limits", "info.largest is 100; at least 4096"),
    "twins": ("numbers of endpoints", "both endpoints have number 1"),
    "twice": ("each operation ends once", "a done was called 2 times"),
    "done-in-put": ("each operation ends once", "a done was called from put() or get()"),
    "lost-done": ("each operation ends once", "was not called within 5 s"),
    "polls": ("no polling", "did not arrive within 5 s while neither end called progress()"),
    "unbounded": ("bounds", "a get of 8 bytes at offset"),
    "backwards": ("gets in order", "a get was done before an earlier one"),
    "puts-overtake": ("whole words, and puts in order", "PW_NIC_PUTS_IN_ORDER is promised, but"),
    "gets-overtake": ("gets behind puts", "PW_NIC_GETS_BEHIND_PUTS is promised, but"),
    "dense": ("put_strided", "the byte at offset 24 is wrong"),
    "word-first": ("put_with_word", "the word of put_with_word() came before its"),
    "late-fetch": ("fetch_add", "fetch_add() number 1 gave"),
    "mute": ("event and arm", "event() was not readable within 5 s"),
    "forgetful": (
        "memory that was deregistered",
        "a get from memory that its owner had deregistered went well",
    ),
}


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_card(PROGRAMS / "full_card.cpp", tmp_path_factory.mktemp("card"))


def lines(output: str, word: str) -> list[str]:
    return [line[len(word) :].strip() for line in output.splitlines() if line.startswith(word)]


def test_a_card_that_keeps_the_laws_passes(card: Path, run: Run) -> None:
    done = run(peerway("nic-check", str(card)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines(done.stdout, "wrong ") == []
    assert len(lines(done.stdout, "ok ")) == 22
    assert done.stdout.splitlines()[-1] == f"22 ok, 0 wrong, 1 absent: {card}"


def test_the_example_passes_and_is_short(run: Run, tmp_path: Path) -> None:
    source = ROOT / "examples" / "nic" / "example.cpp"
    card = compile_card(source, tmp_path)
    done = run(peerway("nic-check", str(card)))
    assert done.stdout.splitlines()[-1] == f"18 ok, 0 wrong, 5 absent: {card}", done.stdout + done.stderr
    lines_of_code = [
        line for line in source.read_text().splitlines() if line.strip() and not line.strip().startswith("//")
    ]
    assert len(lines_of_code) < 200


def test_the_guide_quotes_the_example() -> None:
    source = (ROOT / "examples" / "nic" / "example.cpp").read_text()
    blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs" / "nic-guide.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        assert block in source, block


@pytest.fixture(scope="module")
def checks(card: Path) -> Iterator[dict[str, Future[subprocess.CompletedProcess[str]]]]:
    """A check of each flaw, several at a time: most of their time goes by waiting for what does not come."""

    def check(flaw: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            peerway("nic-check", f"{card}?{flaw}"),
            env=clean_environment(), capture_output=True, text=True, check=False, timeout=LIMIT,
        )  # fmt: skip

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {flaw: pool.submit(check, flaw) for flaw in FLAWS}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_found_by_its_law(
    flaw: str, checks: dict[str, Future[subprocess.CompletedProcess[str]]]
) -> None:
    law, said = FLAWS[flaw]
    done = checks[flaw].result()
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = [line for line in lines(done.stdout, "wrong ") if line.startswith(law)]
    assert said in found


def test_a_library_that_is_no_plugin(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int something_else(void);\nint something_else(void) { return 0; }\n")
    done = run(peerway("nic-check", str(compile_card(source, tmp_path))))
    assert done.returncode == 1
    assert "is no card plugin: it has no function pw_nic_plugin()" in done.stderr
