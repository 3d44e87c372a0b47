"""`peerway storage --engine gds` on the GPU that is none, with doubles of CuPy and KvikIO."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import kvikio_doubles
import pytest
from launching import ROOT
from test_storage import is_disk

from peerway_measure import records

STUDY = ROOT / "apps" / "storage" / "gds.py"


@pytest.fixture
def host(tmp_path: Path, doubles: dict[str, str]) -> dict[str, str]:
    """The environment of a host with a GPU."""
    return {**os.environ, **doubles, "PYTHONPATH": str(kvikio_doubles.make(tmp_path / "doubles"))}


@pytest.mark.parametrize("gds", [pytest.param(False, marks=pytest.mark.long), True])
def test_each_setting_has_records_and_says_what_was_active(
    tmp_path: Path, host: dict[str, str], gds: bool
) -> None:
    place, out = tmp_path / "place", tmp_path / "r.jsonl"
    place.mkdir()
    words = ["write", "read", "--engine", "gds", "--size", "4M", "--streams", "1", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "peerway", "storage", str(place), *words],
        env={**host, **({"GDS": "1"} if gds else {})}, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    measured = records.read(out)
    assert {r.via for r in measured} == {"gds/compat", "gds/bounce", *(["gds/direct"] if gds else [])}
    assert ("by gds/direct (1 stream of 4 MiB" in done.stderr) != gds
    if not gds:
        assert (
            "RuntimeError: cuFile: GPUDirect Storage is not supported on this file; `peerway doctor` says"
            in (done.stderr.replace("\n", " "))
        )
    for r in measured:
        assert r.validated
        assert {r.source, r.target} == {"cuda:0", "file"}
        # No counter of nvidia-fs is here, which alone would prove it.
        assert r.extra["gds_active"] == ("unknown" if r.via == "gds/direct" else False)
    reads = {(r.via, r.extra.get("state_wanted", r.extra["state"])): r for r in measured if r.op == "read"}
    for setting in ("compat", "bounce") if is_disk(place) else ():
        for state in ("cold", "warm_here"):
            read = reads[f"gds/{setting}", state].extra
            # Other tests read from this disk at the same time, and its counter counts for all.
            fetched = "contradicts warm_here: nothing should have been fetched"
            assert read["state_proved"] or fetched in read["state_proof"], read
    assert list(place.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"place", "doubles", "r.jsonl"}


def test_what_the_engine_does_not_do_is_told_and_an_fsync_is_done(
    tmp_path: Path, host: dict[str, str]
) -> None:
    place, out = tmp_path / "place", tmp_path / "r.jsonl"
    place.mkdir()
    words = ["write", "random", "--engine", "gds/compat", "--size", "4M", "--streams", "1", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "peerway", "storage", str(place), *words, "--mode", "fsync,direct"],
        env=host, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "random was not measured by gds/compat, which moves whole files only" in done.stderr
    assert "direct was not measured by gds/compat, which opens files in its own way" in done.stderr
    assert [r.shape for r in records.read(out)] == ["sequential 1 MiB fsync"]


def test_a_run_that_is_ended_leaves_nothing_of_the_process_that_moves_bytes(
    tmp_path: Path, host: dict[str, str]
) -> None:
    place, temporary = tmp_path / "place", tmp_path / "temporary"
    place.mkdir()
    temporary.mkdir()
    words = ["write", "--engine", "gds/compat", "--size", "64M", "--streams", "1", "--repeat", "100"]
    with subprocess.Popen(
        [sys.executable, "-m", "peerway", "storage", str(place), *words],
        env={**host, "TMPDIR": str(temporary)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as running:  # fmt: skip
        while not list(temporary.glob("peerway-gds-*/cufile.log")):
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
    assert running.returncode == 128 + signal.SIGTERM
    assert list(place.iterdir()) == list(temporary.iterdir()) == []


@pytest.mark.long
def test_the_study_has_every_setting_beside_cat_in_each_round(tmp_path: Path, host: dict[str, str]) -> None:
    if not is_disk(tmp_path):
        pytest.skip("the tests' folder is in memory, where no read is cold")
    words = ["--folder", tmp_path, "--size", "4M", "--block", "256K", "--streams", "2", "--rounds", "2"]
    done = subprocess.run(
        [sys.executable, STUDY, *words], env=host, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    by_setting = {(line["setting"], line["operation"]): line for line in lines}
    for setting in ("cat", "bounce", "compat"):
        for operation in ("write", "read_cold", "read_warm"):
            if (setting, operation) != ("cat", "write"):
                assert by_setting[setting, operation]["right"] is True
                assert len(by_setting[setting, operation]["MBps_all"]) == 2
    assert {line["streams"] for line in lines if line["setting"] != "cat"} == {2}
    assert by_setting["compat", "read_cold"]["state_proved"]
    assert "not supported" in by_setting["direct", "all"]["error"]  # told, and no failure of the study
    assert not list(tmp_path.glob("peerway-gds-*"))
