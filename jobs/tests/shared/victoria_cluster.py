"""Two clusters of VictoriaMetrics for tests: a real one, if its programs are installed, and a double.

The double has a vminsert, a vmselect and two vmstorage before one real server. As in a cluster, each knows
only its own paths, and vminsert answers 400 to others.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ports import free_port, free_ports

from peerway_jobs.store.promql import PromStore

Answer = tuple[int, bytes]
# Of the cluster version; no package of Debian has them. Built by Go from the module
# github.com/VictoriaMetrics/VictoriaMetrics, at a version that ends in -cluster.
PROGRAMS = ("vmstorage", "vminsert", "vmselect")
STARTS_S = 30  # a guard against hangs


class RealCluster:
    """A vminsert, a vmselect and two vmstorage, whose programs are on the PATH; `folder` has their output."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder, self._stack = folder, stack
        addresses = [f"127.0.0.1:{port}" for port in free_ports(4)]
        inserts, selects = addresses[:2], addresses[2:]
        self._storages = [
            self._start(
                "vmstorage", f"-storageDataPath={folder}/{number}",
                f"-vminsertAddr={inserts[number]}", f"-vmselectAddr={selects[number]}",
            )
            for number in range(2)
        ]  # fmt: skip
        self._insert = self._start("vminsert", f"-storageNode={','.join(inserts)}")
        self._select = self._start(
            "vmselect", f"-storageNode={','.join(selects)}", f"-cacheDataPath={folder}/cache",
            "-search.latencyOffset=0s",
        )  # fmt: skip

    def store(self) -> PromStore:
        """A store at these addresses."""
        return PromStore(
            f"http://{self._insert}/insert/7/prometheus",
            f"http://{self._select}/select/7/prometheus",
            [f"http://{storage}" for storage in self._storages],
        )

    def _start(self, program: str, *options: str) -> str:
        """Start a program, wait until it answers, and return its address."""
        address = f"127.0.0.1:{free_port()}"
        common = (f"-httpListenAddr={address}", "-loggerLevel=ERROR", "-memory.allowedBytes=64MB")
        output = self._folder / f"{program}-{address}.log"
        log = self._stack.enter_context(output.open("wb"))
        process = self._stack.enter_context(
            subprocess.Popen([program, *common, *options], stdout=log, stderr=log)
        )
        self._stack.callback(process.terminate)
        deadline = time.monotonic() + STARTS_S
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://{address}/health", timeout=1).close()
                return address
            time.sleep(0.05)
        raise AssertionError(f"{program} does not answer:\n{output.read_text()}")


class Cluster:
    """Forwards to `server`. `starts` has the times at which each vmstorage started, "" if it is away."""

    def __init__(self, server: str, stack: contextlib.ExitStack) -> None:
        self.starts = ["1000", "1001"]
        self.metric = "process_start_time_seconds"
        self._server = server
        insert, select = (
            stack.enter_context(_answering(lambda handler, kind=kind: self._forwarded(kind, handler)))  # type: ignore[misc]
            for kind in ("insert", "select")
        )
        self.insert, self.select = f"{insert}/insert/7/prometheus", f"{select}/select/7/prometheus"
        self.storages = [
            stack.enter_context(_answering(lambda handler, n=number: self._metrics(n, handler)))  # type: ignore[misc]
            for number in range(2)
        ]

    def store(self) -> PromStore:
        """A store at these addresses."""
        return PromStore(self.insert, self.select, self.storages)

    def _forwarded(self, kind: str, handler: BaseHTTPRequestHandler) -> Answer:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))) or None
        prefix = f"/{kind}/7/prometheus"
        writes = handler.path.endswith("/api/v1/write")
        if not handler.path.startswith(prefix + "/api/v1/") or writes != (kind == "insert"):
            return 400, b"unsupported path requested"
        headers = {
            name: text for name, text in handler.headers.items() if name.startswith(("Content-", "X-"))
        }
        request = urllib.request.Request(self._server + handler.path.removeprefix(prefix), body, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def _metrics(self, number: int, handler: BaseHTTPRequestHandler) -> Answer:
        if handler.path != "/metrics" or not self.starts[number]:
            return 503, b""
        return 200, f"vm_rows 5\n{self.metric} {self.starts[number]}\n".encode()


@contextlib.contextmanager
def _answering(answer_of: Callable[[BaseHTTPRequestHandler], Answer]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, content = answer_of(self)
            self.send_response(status)
            self.send_header("Content-Length", str(0 if status == 204 else len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815 - the name is http.server's

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
