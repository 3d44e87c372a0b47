"""The programs of the system that make and mount the disk of a copy."""

from __future__ import annotations

import shutil

import pytest

from peerway_measure.rehearse.cluster.needs import PATH
from peerway_measure.rehearse.disk import DiskError, run


def test_programs_of_administrators_run_for_users_whose_path_lacks_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if shutil.which("mkfs.ext4", path=PATH) is None:
        pytest.skip("mkfs.ext4 not installed (apt-get install e2fsprogs)")
    monkeypatch.setenv("PATH", "/nowhere")
    run("mkfs.ext4", "-V")


def test_a_program_that_fails_or_is_missing_is_named() -> None:
    with pytest.raises(DiskError, match=r"mount /no/device /no/folder: .*folder"):
        run("mount", "/no/device", "/no/folder")
    with pytest.raises(DiskError, match=r"mkfs\.none is not installed"):
        run("mkfs.none")
