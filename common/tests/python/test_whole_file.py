"""Files that are written as wholes take the place of what was there, unless that is no file."""

from __future__ import annotations

import errno
import os
import re
import threading
from pathlib import Path

import pytest

from peerway_common import atomic_file


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for text in ("first", "second"):
        atomic_file.replace(file, text)
        assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_the_old_file_stays_if_the_new_one_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    writing = atomic_file.draft(file)
    writing.__enter__().write_text("half of it")
    assert not writing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(file)
    atomic_file.replace(link, "text")
    assert (link.is_symlink(), file.read_text()) == (True, "text")
    assert list((tmp_path / "folder").iterdir()) == [file]


def test_a_pipe_is_written_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    atomic_file.replace(pipe, "text")
    reader.join()
    assert (got, pipe.is_fifo()) == (["text"], True)


@pytest.mark.parametrize(("name", "number"), [("", errno.EISDIR), ("none/file", errno.ENOENT)])
def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path, name: str, number: int) -> None:
    with pytest.raises(
        OSError, match=re.escape(f"[Errno {number}] {os.strerror(number)}: '{tmp_path / name}'")
    ):
        atomic_file.replace(tmp_path / name, "text")
