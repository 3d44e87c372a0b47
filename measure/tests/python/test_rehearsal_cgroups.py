"""The cgroups of a virtual cluster are removed, also while another process removes the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from peerway_measure.rehearse.cluster import cgroups

NAME = "peerway-1234567890"  # of no process


@pytest.fixture
def leftover(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What a killed cluster left, in folders like those of cgroups."""
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    for controller in cgroups.CONTROLLERS:
        (tmp_path / controller / NAME / "cpu-1" / "slurm" / "job_1").mkdir(parents=True)
        (tmp_path / controller / NAME / "cpu-2").mkdir()
    return tmp_path


def test_what_a_killed_cluster_left_is_removed(leftover: Path) -> None:
    cgroups.remove_old()
    assert [list((leftover / controller).iterdir()) for controller in cgroups.CONTROLLERS] == [[], [], [], []]


def test_another_process_may_remove_the_same(leftover: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir
    removed: list[str] = []

    def gone_before_it_is_read(path: str) -> Iterator[os.DirEntry[str]]:
        if str(path).endswith("cpu-1") and not removed:
            removed.append(path)
            for name in ("slurm/job_1", "slurm", ""):
                (Path(path) / name).rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", gone_before_it_is_read)
    cgroups.remove_old()
    assert removed
    monkeypatch.undo()
    assert [list((leftover / controller).iterdir()) for controller in cgroups.CONTROLLERS] == [[], [], [], []]
