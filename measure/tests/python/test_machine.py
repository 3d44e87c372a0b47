"""What records say of the command that made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from peerway_measure.bench.machine import recorded_command


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--folder", "/a/disk", "--size", "1G"], "--folder FOLDER --size 1G"),
        (["--folder=/a/disk", "--size=1G"], "--folder=FOLDER --size=1G"),
        (["--folder", "/a/disk/"], "--folder FOLDER"),
        (["--blas", "/a/lib/blas.so", "--json"], "--blas blas.so --json"),
        (["--blas=/a/lib/blas.so"], "--blas=blas.so"),
        (["--folder", "/a/disk-2"], "--folder /a/disk-2"),
        (["a = b", "--where=x=/a/disk"], "'a = b' --where=x=/a/disk"),
    ],
)
def test_a_command_in_a_record_has_names_in_place_of_paths(words: list[str], kept: str) -> None:
    names = {Path("/a/disk"): "FOLDER", Path("/a/lib/blas.so"): "blas.so"}
    assert recorded_command(["python", "speed.py", *words], names) == f"python speed.py {kept}"


def test_the_folder_itself_is_not_an_option_without_a_value() -> None:
    names = {Path(): "FOLDER"}
    words = ["speed.py", "--json", "--folder", "."]
    assert recorded_command(words, names) == "speed.py --json --folder FOLDER"
