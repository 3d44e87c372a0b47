"""A server for agents that keeps what it gets. It is as strict as the real one, and its answers can be set.

    python3 jobs_receiver.py FOLDER ADDRESS PORT

FOLDER has cert.pem, key.pem, tokens.json (token -> node), and perhaps `answer` with a status to return
instead of 200. Batches are appended to FOLDER/received/NODE.frames before they are acknowledged.
"""

from __future__ import annotations

import http.server
import json
import os
import ssl
import sys
import time
from pathlib import Path

from peerway_jobs.batch_check import BadBatch, decode
from peerway_jobs.clock import Sent, correction_ms
from peerway_jobs.frames import MOST_BODY, BadFrame, frame, post_payloads, read_frames


class Receiver(http.server.BaseHTTPRequestHandler):
    """Handles one POST, or a question for a job of the node."""

    protocol_version = "HTTP/1.1"
    folder: Path

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length) if length <= MOST_BODY else b""
        self._answer(*self._judge(body))

    def do_GET(self) -> None:
        node, job = self._node(), self.path.partition("?")[0].rpartition("/")[2]
        path = self.folder / "received" / f"{node}.frames"
        batches = [decode(payload) for _, payload in read_frames(path.read_bytes())] if path.exists() else []
        known = {str(interval.job) for batch in batches for interval in batch.intervals}
        if job in known:
            self._answer(200, {"job": job, "verdict": None, "final": False, "on": [node]})
        else:
            self._answer(404, {})

    def _node(self) -> str | None:
        tokens: dict[str, str] = json.loads((self.folder / "tokens.json").read_text())
        return tokens.get(self.headers.get("Authorization", "").removeprefix("Bearer "))

    def _answer(self, status: int, answer: dict[str, object]) -> None:
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _judge(self, body: bytes) -> tuple[int, dict[str, object]]:
        told = self.folder / "answer"
        if told.exists():
            return int(told.read_text()), {}
        node = self._node()
        if node is None:
            return 401, {"error": "no such token"}
        try:
            sent = Sent.parse(self.headers.get("Peerway-Sent", ""))
            payloads = post_payloads(body)
        except (ValueError, BadFrame) as error:
            return 400, {"error": str(error)}
        done, stream = 0, ""
        with (self.folder / "received" / f"{node}.frames").open("ab") as file:
            for payload in payloads:
                try:
                    batch = decode(payload)
                except BadBatch as error:
                    return 422, {"error": str(error)}
                if batch.node != node:
                    return 403, {"error": "another node's"}
                added = correction_ms(batch.wall_ms, batch.mono_ms, batch.boot, sent, int(time.time() * 1000))
                if added or batch.unknown:
                    return 400, {"error": f"clock {added} ms, unknown {batch.unknown}"}
                file.write(frame(payload))
                done, stream = batch.seq, batch.stream
            file.flush()
            os.fsync(file.fileno())
        return 200, {"stream": stream, "acknowledged": done}

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main() -> None:
    Receiver.folder = Path(sys.argv[1])
    server = http.server.ThreadingHTTPServer((sys.argv[2], int(sys.argv[3])), Receiver)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(Receiver.folder / "cert.pem", Receiver.folder / "key.pem")
    # The handshake runs in the thread of its request, so that one that stalls blocks no other.
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()
