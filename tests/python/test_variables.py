"""The variables that Peerway's own programs read. The library refuses a PEERWAY_ variable that it does not
know, so it has to know them all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The folders of all products' packages.
PACKAGES = ("common", "library/python", "nic", "measure", "trace", "xacc", "jobs")
PLACEHOLDERS = {"PEERWAY_NAME"}  # of help texts
PROGRAM = """
import os, sys, json, peerway
refused = []
for name in sys.argv[1:]:
    os.environ[name] = "x"
    try:
        peerway.Context().close()
    except peerway.Error as error:
        if "is not a setting" in str(error):
            refused.append(name)
    del os.environ[name]
print(json.dumps(refused))
"""


def test_the_library_knows_every_variable_that_the_package_reads() -> None:
    files = [path for end in ("py", "sh") for name in PACKAGES for path in (ROOT / name).rglob(f"*.{end}")]
    files = [path for path in files if "tests" not in path.parts]
    named = {name for path in files for name in re.findall(r"\bPEERWAY_[A-Z_]+\b", path.read_text())}
    assert len(named) > 20
    names = [*sorted(named - PLACEHOLDERS), "PEERWAY_BANANA"]
    output = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, check=True)
    assert json.loads(output.stdout) == ["PEERWAY_BANANA"]


def test_config_refuses_a_variable_that_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERWAY_WIAT", "blocking")
    done = subprocess.run(
        [sys.executable, "-m", "peerway", "config"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "PEERWAY_WIAT in the environment is not a setting; did you mean PEERWAY_WAIT?" in done.stderr


def test_a_variable_that_is_not_utf_8_is_told_as_it_is(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/K\xf6ln"
    for variable, value, status in ((b"PEERWAY_WAIT", b"bl\xf6ck", 1), (b"PEERWAY_CACHE", folder, 0)):
        done = subprocess.run(
            [sys.executable, "-m", "peerway", "config", "--format", "json"],
            capture_output=True, check=False, env={**os.environb, variable: value},
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        by_name = {setting["name"]: setting for setting in json.loads(done.stdout)}
        setting = by_name[variable.removeprefix(b"PEERWAY_").decode().lower()]
        if status:
            assert os.fsencode(setting["problem"]).startswith(
                b"peerway: PEERWAY_WAIT is 'bl\xf6ck'; it must be"
            )
            assert rb"PEERWAY_WAIT is 'bl\udcf6ck'; it must be" in done.stderr.replace(b"\n", b" ")
        else:
            assert os.fsencode(setting["value"]) == folder
