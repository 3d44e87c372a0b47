"""How the library finds the Python packages that contain NVRTC and UCX."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from peerway import packages


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with both packages, which must not be imported."""
    for name in ("nvidia/cu13", "libucx"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "libucx" / "__init__.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def test_folders_of_the_packages_are_found_once_and_not_imported(site: Path) -> None:
    assert packages.folders() == [str(site)]
    assert "libucx" not in sys.modules


def test_nothing_is_named_where_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    named: dict[str, str] = {}
    packages.announce(named)
    assert named == {}


def test_folders_of_the_parent_come_after_the_own(site: Path) -> None:
    named = {"PEERWAY_PACKAGES": f"/of/the/parent{os.pathsep}{site}"}
    packages.announce(named)
    assert named == {"PEERWAY_PACKAGES": f"{site}{os.pathsep}/of/the/parent"}


def test_children_inherit_them_and_the_library_takes_them_for_no_mistake(site: Path) -> None:
    program = (
        "import os, subprocess, sys; import peerway; from peerway import _core; _core.settings();"
        "peerway.Team.from_launcher();"
        "subprocess.run([sys.executable, '-c', 'import os; print(os.environ[\"PEERWAY_PACKAGES\"])'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    assert str(site) in done.stdout.strip().split(os.pathsep)
    assert "PEERWAY_PACKAGES" not in done.stderr


def test_regions_of_traces_need_no_import_of_their_own() -> None:
    program = "import peerway\nwith peerway.trace.region('solve'):\n    print('solved')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "solved\n", done.stderr
