"""`make jobs-demo` as its user sees it: a page that answers, and a clean end at Ctrl-C.

Ctrl-C may also be pressed twice, or before everything has started. Nothing may remain.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import free_port

from peerway_measure.rehearse.cluster import cgroups, why_not

LIMIT_S = 150  # a guard against hangs, not an expectation
DEMO = Path(__file__).with_name("jobs_demo.py")

pytestmark = pytest.mark.cluster


@pytest.fixture
def folder() -> Iterator[Path]:
    """The place for the demonstration's folder: other users can reach it,
    and its path is short enough for sockets.
    """
    if why := why_not():
        pytest.skip(why)
    path = Path(tempfile.mkdtemp(prefix="demo-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def started(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """Start the demonstration as the leader of a process group, as in a terminal; returns it and its port."""
    port = free_port()
    command = [sys.executable, str(DEMO), "--port", str(port)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    demo = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    return demo, port


def remains(folder: Path, demo: int) -> list[str]:
    """Processes, mounts, cgroups and files that an ended demonstration left."""
    names = [f"{controller}: {path.name}" for controller in cgroups.CONTROLLERS
             for path in (cgroups.ROOT / controller).glob(f"peerway-{demo}")]  # fmt: skip
    names += [str(path) for path in folder.iterdir()]
    if str(folder) in Path("/proc/self/mountinfo").read_text():
        names.append("mounts")
    for process in Path("/proc").glob("[0-9]*"):
        try:  # a space has mounts of the folder
            texts = [
                (process / name).read_bytes().decode(errors="replace") for name in ("cmdline", "mountinfo")
            ]
        except OSError:
            continue
        if any(str(folder) in text for text in texts):
            names.append(f"process {process.name}: {texts[0]}")
    return names


def ended(demo: subprocess.Popen[str], signals: tuple[signal.Signals, signal.Signals]) -> str:
    """Send two signals to the group, the second during the cleanup, as a terminal does;
    returns the remaining output.
    """
    first, second = signals
    os.killpg(demo.pid, first)
    time.sleep(0.2)
    os.killpg(demo.pid, second)
    try:
        rest, _ = demo.communicate(timeout=LIMIT_S)
    finally:
        demo.kill()
    return rest


@pytest.mark.long
def test_the_demonstration_shows_its_page_and_ends_at_two_signals(folder: Path) -> None:
    demo, port = started(folder)
    with demo:
        assert demo.stdout is not None
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if "log in as" in line:
                break
        (address,) = re.findall(r"http://\S+", "".join(lines))
        assert address.endswith(f":{port}")
        with urllib.request.urlopen(address + "/login", timeout=LIMIT_S) as page:
            assert b"Peerway jobs" in page.read()
        assert remains(folder, demo.pid)
        rest = ended(demo, (signal.SIGINT, signal.SIGINT))
    assert rest.endswith("stopped\n")
    assert demo.returncode == 0
    assert remains(folder, demo.pid) == []


@pytest.mark.long
@pytest.mark.parametrize("progress", ["*", "*/nodes/head/ready", "*/munge.socket"])
def test_a_demonstration_that_is_ended_while_it_starts_leaves_nothing(folder: Path, progress: str) -> None:
    demo, _ = started(folder)
    with demo:
        deadline = time.monotonic() + LIMIT_S
        while not list(folder.glob(progress)):
            assert demo.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ended(demo, (signal.SIGTERM, signal.SIGINT))
    assert demo.returncode == 0
    assert remains(folder, demo.pid) == []
