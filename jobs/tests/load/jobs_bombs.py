"""Measures the server's CPU time for POSTs with batches that decompress to far more than their size.

python jobs/tests/load/jobs_bombs.py --out results/jobs/bombs.jsonl
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs_load import SERVE, connected, peak_of
from jobs_node import BOOT, cpu_of

from peerway_jobs.clock import Sent
from peerway_jobs.frames import MOST_BODY, MOST_FRAMES, frame
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People

PORT = 18741


def posts() -> Iterator[tuple[str, int, bytes]]:
    """Yield name, bytes of JSON and body: one text of 600 MB, and bodies with the most frames allowed."""
    text = b'{"a":"' + b"x" * (600 << 20) + b'"}'
    yield "one text of 600 MB", len(text), frame(zlib.compress(text, 9))
    of_one = 16 << 20
    kinds = {
        "a list of 5 million numbers": b"[" + b"0," * (of_one // 3) + b"0]",
        "16 million brackets": b"[" * of_one,
        "2 million keys": b"{" + b'"a":0,' * (of_one // 6) + b'"a":0}',
        "an integer of a million digits": b'{"version":' + b"9" * (1 << 20) + b"}",
    }
    for name, each in kinds.items():
        one = frame(zlib.compress(each, 9))
        count = min(MOST_FRAMES, MOST_BODY // len(one))
        yield f"{name}, {count} times", count * len(each), one * count


def measured(folder: Path) -> Iterator[dict[str, Any]]:
    monitor = Monitor(folder)
    token = People(monitor.jobs).make_token("", ["agent"], time.time(), "n1")
    monitor.close()
    server = subprocess.Popen([sys.executable, *SERVE, f"127.0.0.1:{PORT}", "--data", str(folder)])
    try:
        connected(PORT).close()
        for name, size, body in posts():
            before, begun = cpu_of(server.pid), time.monotonic()
            status, answer = post(token, body)
            yield {
                "test": "bomb", "what": name, "bytes_of_json": size, "bytes_sent": len(body),
                "status": status, "answer": answer[:120], "cpu_s": cpu_of(server.pid) - before,
                "wall_s": time.monotonic() - begun, "peak_bytes": peak_of(server.pid),
            }  # fmt: skip
    finally:
        server.terminate()
        server.wait(60)


def post(token: str, body: bytes) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=600)
    headers = {"Authorization": f"Bearer {token}"}
    headers["Peerway-Sent"] = Sent(int(time.time() * 1000), 10_000, BOOT).header()
    connection.request("POST", "/api/v1/agent/batches", body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    host = {"machine": platform.machine(), "cpus": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
    with tempfile.TemporaryDirectory() as folder:
        for row in measured(Path(folder)):
            line = json.dumps(row | host | {"load": os.getloadavg()[0]})
            print(line, flush=True)
            if out:
                with out.open("a") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
