"""Lustre's layouts as a factor of `peerway storage`, with a double of Lustre's tool (fake_lfs.py): files are
made after the choice of their layout, and their records tell the one that they got.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from peerway_measure import records

FAKE = Path(__file__).with_name("fake_lfs.py")
SMALL = ("--size", "1M", "--block", "256K", "--small-files", "5", "--streams", "1")


def storage(place: Path, *words: object, path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "peerway", "storage", str(place), *SMALL, *map(str, words)]
    environment = {**os.environ, "PATH": path, "FAKE_LFS": str(place.parent / "kept")}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("place", "kept", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "lfs").symlink_to(FAKE)
    return tmp_path / "place"


def with_lfs(place: Path) -> str:
    return f"{place.parent / 'bin'}:{os.environ['PATH']}"


def test_records_tell_the_layout_that_their_files_have(place: Path) -> None:
    out = place.parent / "r.jsonl"
    arguments = ("write", "read", "metadata", "--stripes", "default,2:4M,-1,9", "--out", out)
    done = storage(place, *arguments, path=with_lfs(place))
    assert done.returncode == 0, done.stderr
    written = [r for r in records.read(out) if r.test == "file_write_bw"]
    layouts = {r.shape: (r.extra.get("stripe_count"), r.extra.get("stripe_size")) for r in written}
    assert layouts == {
        "sequential 256 KiB": ("1", str(1 << 20)),
        "sequential 256 KiB stripes 2 of 4 MiB": ("2", str(4 << 20)),
        "sequential 256 KiB stripes all": ("4", str(1 << 20)),
        "sequential 256 KiB stripes 9": ("4", str(1 << 20)),
    }
    assert "stripes 9 were asked for, and its files have 4 of 1 MiB" in done.stderr
    small = [r for r in records.read(out) if r.test == "file_create_mr"]
    assert small
    assert not any("stripe_count" in r.extra for r in small)
    last = max((place.parent / "kept").iterdir(), key=lambda f: int(f.name))
    assert '"count": 1' in last.read_text()  # small files got the layout of the file system again
    assert list(place.iterdir()) == []


def test_where_stripes_cannot_be_chosen_it_says_why_and_what_to_do(place: Path) -> None:
    done = storage(place, "write", "--stripes", "4", path=os.environ["PATH"])
    assert done.returncode == 1
    assert "stripes cannot be chosen: this file system is " in done.stderr
    assert "only Lustre has stripes; leave out --stripes" in done.stderr
    assert list(place.iterdir()) == []


def test_what_lfs_says_is_passed_on(place: Path) -> None:
    lfs = place.parent / "bin" / "lfs"
    lfs.unlink()
    lfs.write_text("#!/bin/sh\necho 'error on ioctl: Inappropriate ioctl for device' >&2\nexit 25\n")
    lfs.chmod(0o755)
    done = storage(place, "write", "--stripes", "4", path=with_lfs(place))
    assert done.returncode == 1
    assert "ended with status 25: error on ioctl: Inappropriate ioctl for device" in done.stderr


def test_a_layout_that_is_none_is_refused_at_once(place: Path) -> None:
    done = storage(place, "write", "--stripes", "4:1000", path=with_lfs(place))
    assert done.returncode == 2
    assert "'4:1000' is not a stripe layout; write a count such as 4" in done.stderr
