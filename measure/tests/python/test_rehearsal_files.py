"""What users of a copy have, and that each kind of change to it is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from peerway_measure.rehearse import user_files
from peerway_measure.rehearse.cluster import user_data
from peerway_measure.rehearse.cluster.files import open_interpreter
from peerway_measure.rehearse.user_files import Files, differences


def files(folder: Path) -> Files:
    program = [sys.executable, "-m", "peerway_measure.rehearse.user_files", str(folder)]
    return user_files.read(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    homes = {"ann": tmp_path / "home" / "ann"}
    homes["ann"].mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    user_data.write({"ann": os.getuid()}, homes, [tmp_path / "scratch"])
    return tmp_path / "scratch"


def test_users_of_a_new_copy_have_files_of_many_kinds(scratch: Path) -> None:
    entries = files(scratch.parent)
    assert user_files.count(entries) == 12
    assert len({entry.mode for entry in entries.values()}) >= 6
    assert len({entry.time for entry in entries.values()}) >= 10
    assert entries[f"{scratch}/ann/project/latest"].content == "to results/run-3.dat"
    assert (scratch / "ann/project/latest").read_bytes()
    assert differences(entries, files(scratch.parent)) == ""


def test_each_kind_of_change_is_named_with_its_files(scratch: Path) -> None:
    project = scratch / "ann" / "project"
    before = files(scratch)
    with (project / "results" / "run-1.dat").open("r+b") as file:  # one bit, at the same size and time
        times = os.fstat(file.fileno())
        byte = file.read(1)[0]
        file.seek(0)
        file.write(bytes([byte ^ 1]))
    os.utime(project / "results" / "run-1.dat", ns=(times.st_atime_ns, times.st_mtime_ns))
    (project / "model").chmod(0o700)
    os.utime(project / "done", (1, 1))
    (project / "input.nml").unlink()
    (project / "probe\x1b").write_text("")
    after = dict(files(scratch))
    owned = f"{project}/checkpoint"
    after[owned] = after[owned]._replace(owner="0:99999")
    assert differences(before, after).split("; ") == [
        f"1 missing: {project}/input.nml",
        f"1 new: {project}/probe\\x1b",
        f"1 changed: {project}/results/run-1.dat",
        f"1 with another owner: {owned}",
        f"1 with other permissions: {project}/model",
        f"1 with another time: {project}/done",
    ]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "peerway_measure.rehearse.user_files", str(tmp_path / "gone")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{tmp_path}/gone: No such file or directory\n"


def test_users_may_pass_to_an_environment_and_to_the_python_that_it_names(tmp_path: Path) -> None:
    root = tmp_path / "copy"
    environment, installed = tmp_path / "home" / ".venv" / "bin", tmp_path / "opt" / "bin"
    for folder in (environment, installed):
        folder.mkdir(parents=True)
        inside = root / folder.relative_to("/")
        inside.mkdir(parents=True)
        for parent in (inside, *inside.parents[: len(folder.relative_to(tmp_path).parts) - 1]):
            parent.chmod(0o700)
    (installed / "python3").touch()
    (environment / "python").symlink_to(installed / "python3")
    open_interpreter(root, environment / "python")
    for folder in ("home", "home/.venv", "home/.venv/bin", "opt", "opt/bin"):
        assert (root / tmp_path.relative_to("/") / folder).stat().st_mode & 0o777 == 0o711, folder
        assert (tmp_path / folder).stat().st_mode & 0o700 == 0o700
