"""The protocol between a rank's stand-in on the launcher's host and the rank's keeper on another host.

The stand-in writes to the keeper's standard input: first one line of JSON (secret, environment, folder and
program, so that none of it is on a command line), then commands. The keeper answers on its standard error,
between the rank's own output, with notes that begin with a token known only to the two.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

ALIVE_S = 10.0  # seconds between two signs of life from the stand-in
SILENCE_S = 60.0  # seconds of silence after which the keeper takes the stand-in for dead
CHUNK = 1 << 16  # most bytes of input sent at once; the next follow when the rank has read them
MOST_JSON_BYTES = 16 << 20  # bytes of a line of JSON


def write_all(target: int, text: bytes) -> None:
    """Write everything, however little each call writes."""
    view = memoryview(text)
    while view:
        view = view[os.write(target, view) :]


def command(name: str, argument: int = 0, data: bytes = b"") -> bytes:
    """One command to the keeper: signal, input (with data), end (of the input), alive."""
    return f"{name} {argument}\n".encode() + data


class Commands:
    """Separates the commands in the chunks that the stand-in writes."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, chunk: bytes) -> Iterator[tuple[str, int, bytes]]:
        """The commands that are complete now."""
        self._held += chunk
        while b"\n" in self._held:
            line, _, rest = self._held.partition(b"\n")
            name, argument = line.decode().split()
            size = int(argument) if name == "input" else 0
            if len(rest) < size:
                return
            self._held = rest[size:]
            yield name, int(argument), rest[:size]


def note(token: str, kind: str, **values: Any) -> bytes:
    """One note of the keeper: here, failed, ended, more (input)."""
    return f"\x1e{token} {json.dumps({'kind': kind, **values})}\n".encode()


class Notes:
    """Separates the notes of the keeper from the other output on its standard error."""

    def __init__(self, token: str) -> None:
        self._mark = f"\x1e{token} ".encode()
        self._held = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | dict[str, Any]]:
        """The output to pass on and the notes, in their order."""
        self._held += chunk
        while True:
            text, mark, rest = self._held.partition(self._mark)
            if not mark:
                break
            if text:
                yield text
            line, end, after = rest.partition(b"\n")
            self._held = mark + rest
            if not end:
                return
            self._held = after
            yield json.loads(line)
        # The end of the available text may be the beginning of a mark.
        keep = next((n for n in range(len(self._mark) - 1, 0, -1) if self._held.endswith(self._mark[:n])), 0)
        ready, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if ready:
            yield ready

    def finish(self) -> bytes:
        """The rest of the output, when no more comes."""
        ready, self._held = self._held, b""
        return ready
