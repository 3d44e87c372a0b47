"""`make jobs-demo` as its user sees it: an address whose page answers, and an end at Ctrl-C."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from peerway_measure.rehearse.cluster import why_not

LIMIT_S = 150  # a guard against hangs, no expectation
DEMO = Path(__file__).with_name("jobs_demo.py")

pytestmark = pytest.mark.cluster


@pytest.mark.long
def test_the_demonstration_shows_its_page_and_ends() -> None:
    if why := why_not():
        pytest.skip(why)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(DEMO), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line)
            if "log in as" in line:
                break
        (address,) = re.findall(r"http://\S+", "".join(said))
        with urllib.request.urlopen(address + "/login", timeout=LIMIT_S) as page:
            assert b"Peerway jobs" in page.read()
        demo.send_signal(signal.SIGINT)
        try:
            rest, _ = demo.communicate(timeout=LIMIT_S)
        finally:
            demo.kill()
    assert rest.endswith("stopped\n")
    assert demo.returncode == 0
