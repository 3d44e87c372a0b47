"""The thread that sends the spool to the server, in order, until all is acknowledged: docs/jobs/design.md."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from peerway_common.printable import shortened
from peerway_jobs.agent.settings import Settings, read_token
from peerway_jobs.agent.spool import Spool
from peerway_jobs.clock import Sent
from peerway_jobs.frames import HEAD_BYTES, MOST_FRAMES

PATH = "/api/v1/agent/batches"
MEDIA_TYPE = "application/x-peerway-batches"
_TIMEOUT_S = 20
_MOST_ANSWER = 65536
_MOST_TOLD = 1000  # characters of the server's message that are shown
_PAUSE_ROUNDS = 6  # the longest pause after failures, in rounds: a minute if a round is 10 s
_NEVER = (400, 413, 422)
_NOT_OURS = (401, 403)
_REFUSALS = 2  # refusals of a batch sent alone before it is set aside: the first may be a proxy's mistake


class Sender:
    """Call `start` once and `wake` after each batch. An error is logged once for each new reason."""

    def __init__(
        self, settings: Settings, spool: Spool, sent: Callable[[], Sent], tell: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._spool = spool
        self._sent = sent
        self._tell = tell
        self._reported = ""
        self._longest = max(1.0, _PAUSE_ROUNDS * settings.interval_s)
        self._addresses = settings.servers()
        self._at = 0  # which of them is used
        self._failures = 0  # in a row; after each round of all servers there is a pause
        self._connection: http.client.HTTPConnection | None = None
        self._at_once = MOST_FRAMES  # batches of the next POST; fewer after one was refused, to find it
        self._refusals = (0, 0)  # (the batch that was refused last, how often)
        self._work = threading.Condition()
        self._wanted = self._ended = False
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        if any(urlsplit(each).scheme == "https" for each in self._addresses):
            self._tls = ssl.create_default_context(cafile=settings.ca_file or None)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Tell the thread that a batch is waiting."""
        with self._work:
            self._wanted = True
            self._work.notify()

    def stop(self) -> None:
        """End after the current request; unsent batches stay in the spool."""
        with self._work:
            self._ended = True
            self._work.notify()
        self._thread.join(2)
        if not self._thread.is_alive():
            self._close()

    def _run(self) -> None:
        pause = 0.0
        while not self._ended:
            with self._work:
                if self._failures % len(self._addresses):
                    pass  # the next server is tried at once
                elif pause > 0:
                    self._work.wait_for(lambda: self._ended, pause * random.uniform(0.5, 1.0))
                elif not self._wanted:
                    self._work.wait(self._longest)
                self._wanted = False
            if self._ended:
                return
            try:
                pause = self._send_all(pause)
            except Exception as error:  # whatever it was, the next try may succeed; measuring goes on
                self._say(f"cannot send to {self._address()}: {error.__class__.__name__}: {error}")
                pause = self._failed(pause)

    def _send_all(self, pause: float) -> float:
        """Send until nothing is left (returns 0) or a request fails (returns the seconds to wait)."""
        while not self._ended:
            first, frames = self._spool.unsent()
            if not frames:
                return 0.0
            frames = frames[: self._at_once]
            status, answer, retry_after = self._post(b"".join(frames))
            last = first + len(frames) - 1
            if status == 200:
                done = answer.get("acknowledged")
                if answer.get("stream") != self._spool.stream or type(done) is not int or done < first - 1:
                    raise ValueError("the server's answer acknowledges nothing of what was sent")
                self._spool.acknowledge(min(done, last))
                self._say("")
                self._failures = 0
                self._at_once = min(MOST_FRAMES, 2 * self._at_once)
                pause = 0.0
                if done < first:
                    return self._longer(pause)
            elif status in _NEVER:
                self._refused(status, answer, first, frames)
            elif status == 403 and self._is_foreign(first, frames, answer):
                continue
            elif status in _NOT_OURS:
                self._say(f"the server refuses this node's token ({status}); see token_file in the settings")
                return self._longest
            else:
                why = shortened(str(answer.get("error", "no reason is given")), _MOST_TOLD)
                which = f" ({self._address()})" if len(self._addresses) > 1 else ""
                self._say(f"the server answers {status}: {why}{which}")
                return retry_after or (self._failed(pause) if status >= 500 else self._longer(pause))
        return 0.0

    def _refused(self, status: int, answer: dict[str, Any], first: int, frames: list[bytes]) -> None:
        """Find the refused batch, from the answer or by sending fewer at once; set it aside after _REFUSALS
        refusals, so that the batches after it need not wait.
        """
        place = _place(answer, first, len(frames))
        if place is None and len(frames) > 1:
            self._at_once = len(frames) // 2
            return
        place = place or 0
        self._spool.acknowledge(first + place - 1)  # the server has stored those before it
        self._at_once = 1
        seq = first + place
        times = self._refusals[1] + 1 if self._refusals[0] == seq else 1
        self._refusals = seq, times
        if times >= _REFUSALS:
            self._set_aside(seq, frames[place], str(answer.get("error", status)))

    def _is_foreign(self, first: int, frames: list[bytes], answer: dict[str, Any]) -> bool:
        """Set aside a batch made under another name of this node, which no token of today is valid for."""
        place = _place(answer, first, len(frames))
        if place is None or _node_of(frames[place]) in ("", self._settings.node):
            return False
        self._spool.acknowledge(first + place - 1)
        self._set_aside(first + place, frames[place], f"it is of {_node_of(frames[place])}")
        return True

    def _set_aside(self, seq: int, data: bytes, why: str) -> None:
        self._spool.refuse(seq, data)
        self._at_once = MOST_FRAMES
        why = shortened(why, _MOST_TOLD)
        self._say(f"the server refused batch {seq}, which is kept in the spool's folder refused: {why}")

    def _post(self, body: bytes) -> tuple[int, dict[str, Any], float]:
        token = read_token(Path(self._settings.token_file))  # read for each request: it may have been renewed
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": MEDIA_TYPE,
            "User-Agent": "peerway-jobs-agent",
        }
        for fresh in (False, True):
            kept = self._connection is not None
            connection = self._connect(fresh)
            try:
                if connection.sock is None:
                    connection.connect()
                headers["Peerway-Sent"] = self._sent().header()  # after connect(): a handshake may be slow
                path = urlsplit(self._address()).path
                connection.request("POST", path.rstrip("/") + PATH, body, headers)
                response = connection.getresponse()
                text = response.read(_MOST_ANSWER)
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                # The server may have closed a kept connection. The retry may send batches twice, which is
                # harmless.
                if fresh or not kept:
                    raise
        if response.will_close:
            self._close()
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = {}
        after = response.headers.get("Retry-After", "")
        seconds = min(600.0, float(after)) if after.isascii() and after.isdigit() else 0.0
        return response.status, answer if isinstance(answer, dict) else {}, seconds

    def _connect(self, fresh: bool) -> http.client.HTTPConnection:
        if fresh:
            self._close()
        if self._connection is None:
            address = urlsplit(self._address())
            host, port = str(address.hostname), address.port
            if address.scheme == "https":
                self._connection = http.client.HTTPSConnection(
                    host, port, timeout=_TIMEOUT_S, context=self._tls
                )
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _address(self) -> str:
        return self._addresses[self._at % len(self._addresses)]

    def _failed(self, pause: float) -> float:
        """Go on to the next server; returns the pause, which is made once all of them have failed."""
        self._close()
        self._at += 1
        self._failures += 1
        return pause if self._failures % len(self._addresses) else self._longer(pause)

    def _longer(self, pause: float) -> float:
        return min(self._longest, max(1.0, pause * 2))

    def _say(self, message: str) -> None:
        """Log each new reason once, and once that the server accepts batches again."""
        reason = message.partition(":")[0]
        if reason != self._reported:
            self._reported = reason
            self._tell(message or f"the server {self._address()} takes batches")


def _place(answer: dict[str, Any], first: int, count: int) -> int | None:
    """The frame of a POST that an answer is about, counted from 0; None if the answer does not say."""
    frame, seq = answer.get("frame"), answer.get("seq")
    if type(frame) is int and 0 <= frame < count:
        return frame
    return seq - first if type(seq) is int and first <= seq < first + count else None


def _node_of(frame: bytes) -> str:
    """The node that a batch in our own spool was made for; empty if it cannot be read."""
    try:
        content = json.loads(zlib.decompress(frame[HEAD_BYTES:]))
    except (ValueError, zlib.error):
        return ""
    return str(content.get("node", "")) if isinstance(content, dict) else ""
