"""An agent's sender against the server and proxies: one bad batch never holds up those after it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from jobs_server import NOW, Server, node_batch, serving

from peerway_jobs.agent.sender import Sender
from peerway_jobs.agent.settings import Settings
from peerway_jobs.agent.spool import Spool
from peerway_jobs.batch import encode
from peerway_jobs.clock import Sent
from peerway_jobs.frames import MOST_FRAMES, post_payloads
from peerway_jobs.monitor import Monitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BOOT = "00000000-0000-4000-8000-000000000000"
STREAM = "ab" * 16


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(Monitor(tmp_path_factory.mktemp("jobs"), clock=lambda: NOW)) as server:
        yield server


def spool_of(folder: Path, payloads: list[bytes]) -> Spool:
    (folder / "spool").mkdir()
    (folder / "spool" / "stream").write_text(STREAM)
    spool = Spool(folder / "spool", 8 << 20)
    for payload in payloads:
        spool.append(payload)
    return spool


def send_all(url: str, token: str, spool: Spool, folder: Path, node: str = "n1") -> list[str]:
    """Run the sender until the spool is empty; returns its messages."""
    file, said, empty = folder / "token", list[str](), threading.Event()
    file.write_text(token)
    file.chmod(0o600)
    settings = Settings(url, str(file), node=node, interval_s=0.05)
    sender = Sender(settings, spool, lambda: Sent(int(NOW * 1000), 60_000, BOOT), said.append)
    unsent = spool.unsent

    def watched() -> tuple[int, list[bytes]]:
        first, frames = unsent()
        if not frames:
            empty.set()
        return first, frames

    spool.unsent = watched  # type: ignore[method-assign]
    sender.start()
    sender.wake()
    empty.wait()
    sender.stop()
    return said


def refused(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "spool" / "refused").glob("*"))


def encoded_batch(seq: int, node: str = "n1") -> bytes:
    return encode(node_batch(seq, node))


BAD: dict[str, Callable[[int, str], bytes]] = {
    "no batch at all": lambda _, __: b"junk",
    "a wrong figure": lambda seq, node: encode(
        node_batch(seq, node, samples={"core": node_batch().samples["gpu"]})
    ),
    "another node's": lambda seq, _: encoded_batch(seq, "renamed"),
    "a time in the future": lambda seq, node: encode(
        node_batch(seq, node, boot=BOOT.replace("8", "9"), wall_ms=1 << 47)
    ),
}


@pytest.mark.parametrize(
    ("bad", "places"),
    [*((bad, (1, 2, 5)) for bad in BAD), ("no batch at all", (1,)), ("no batch at all", (1, 2, 3, 4, 5, 6))],
)
def test_a_batch_that_the_server_refuses_is_set_aside_and_the_others_arrive(
    server: Server, tmp_path: Path, bad: str, places: tuple[int, ...]
) -> None:
    node = f"n{[*BAD].index(bad)}-{len(places)}"  # the server has no batches of it
    payloads = [BAD[bad](seq, node) if seq in places else encoded_batch(seq, node) for seq in range(1, 7)]
    spool = spool_of(tmp_path, payloads)
    said = send_all(server.url, server.token("", "agent", node=node), spool, tmp_path)
    assert refused(tmp_path) == list(places)
    good = set(range(1, 7)) - set(places)
    assert {seq for seq in range(1, 7) if server.monitor.jobs.known(node, STREAM, seq)} == good
    assert any(f"batch {places[0]}" in line for line in said)


@contextmanager
def proxy(answer: Callable[[list[bytes]], tuple[int, bytes]]) -> Iterator[str]:
    """A server that answers with `answer(batches of the POST)`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, text = answer(post_payloads(body))
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}"
        finally:
            http.shutdown()


@pytest.mark.parametrize(
    ("most", "body"),
    [
        (5, b'{"seq": 999}'),
        *(pytest.param(1, body, marks=pytest.mark.long) for body in (b"", b'{"seq": 999}')),
        *(pytest.param(most, b'{"seq": "x", "frame": -1}', marks=pytest.mark.long) for most in (1, 5)),
        pytest.param(5, b"", marks=pytest.mark.long),
    ],
)
def test_a_proxy_that_takes_less_at_once_and_names_no_batch_gets_less_at_once(
    tmp_path: Path, body: bytes, most: int
) -> None:
    arrived: list[bytes] = []
    spool = spool_of(tmp_path, [b"%d" % n for n in range(1, MOST_FRAMES)])

    def answer(payloads: list[bytes]) -> tuple[int, bytes]:
        if len(payloads) > most or b"7" in payloads:
            return 413, body
        arrived.extend(payloads)
        last = int(payloads[-1])
        return 200, b'{"stream": "%s", "acknowledged": %d}' % (spool.stream.encode(), last)

    with proxy(answer) as url:
        send_all(url, "t" * 43, spool, tmp_path)
    assert refused(tmp_path) == [7]
    assert arrived == [b"%d" % n for n in range(1, MOST_FRAMES) if n != 7]


def test_one_spurious_refusal_loses_no_batch(tmp_path: Path) -> None:
    spool, tries = spool_of(tmp_path, [b"1"]), list[int]()

    def answer(_: list[bytes]) -> tuple[int, bytes]:
        tries.append(1)
        good = b'{"stream": "%s", "acknowledged": 1}' % spool.stream.encode()
        return (400, b"") if len(tries) == 1 else (200, good)

    with proxy(answer) as url:
        send_all(url, "t" * 43, spool, tmp_path)
    assert refused(tmp_path) == []


def test_an_agent_goes_on_to_the_next_server_and_stays_there(tmp_path: Path) -> None:
    spool, asked = spool_of(tmp_path, [b"%d" % n for n in range(1, 4)]), list[str]()

    def answers(name: str, status: int) -> Callable[[list[bytes]], tuple[int, bytes]]:
        def answer(payloads: list[bytes]) -> tuple[int, bytes]:
            asked.append(name)
            last = int(payloads[0])  # one at a time, so that it asks again
            return status, b'{"stream": "%s", "acknowledged": %d}' % (spool.stream.encode(), last)

        return answer

    with proxy(answers("gone", 200)) as gone:
        pass
    with proxy(answers("full", 503)) as full, proxy(answers("good", 200)) as good:
        said = send_all(f"{gone} {full} {good}", "t" * 43, spool, tmp_path)
    assert asked == ["full", "good", "good", "good"]
    assert said[0].startswith(f"cannot send to {gone}: ConnectionRefusedError")
    assert said[1].startswith("the server answers 503")
    assert full in said[1]
    assert said[2] == f"the server {good} takes batches"


def test_an_agent_whose_servers_all_fail_pauses_after_a_round_of_them(tmp_path: Path) -> None:
    spool, asked = spool_of(tmp_path, [b"1"]), list[int]()

    def answer(_: list[bytes]) -> tuple[int, bytes]:
        asked.append(1)
        good = b'{"stream": "%s", "acknowledged": 1}' % spool.stream.encode()
        return (503, b"") if len(asked) < 6 else (200, good)

    with proxy(answer) as one, proxy(answer) as other:
        send_all(f"{one} {other}", "t" * 43, spool, tmp_path)
    assert len(asked) == 6
