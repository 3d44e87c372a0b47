"""Jobs while /dev/shm is full, and jobs whose processes are all killed at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from launching import LIMIT, clean_environment, source_of


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of mounts and processes need root")
def test_a_full_dev_shm_ends_no_job_and_killed_jobs_leave_nothing() -> None:
    """For each path that makes shared memory; `explain` makes it too and says what UCX lacks."""
    paths = ["peer/shm", "staged", "nic:torus"]
    alone = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc"]
    done = subprocess.run(
        [*alone, sys.executable, str(source_of("killed_jobs.py")), *paths],
        env=clean_environment(PEERWAY_NIC="torus", PEERWAY_UCX="off"),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    *jobs, explained = [json.loads(line) for line in done.stdout.splitlines()]
    assert explained["explain"] == 0, done.stderr
    assert "(/dev/shm, where it shares memory, has 0 KiB left)" in explained["text"]
    assert [job["path"] for job in jobs] == paths
    for job in jobs:
        assert job["said"] == [["True"], ["True"]], (job, done.stderr)
        assert any(name.startswith("@peerway-") for name in job["during"]), job
        assert job["left"] == [], job
