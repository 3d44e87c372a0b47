"""The process in which a copy lives. It has a mount namespace of its own, and all hosts end with it.

Commands reach it through a socket in the copy's folder that only the folder's owner may use. A connection
carries one request, a line of JSON. The answer is lines {"say": text}, then {"status": number}.

A thread accepts requests and answers those that only ask. It queues all others for the first thread, because
hosts die with the thread that started them.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from peerway_common.printable import shell_word
from peerway_measure.rehearse.cluster.ending import end_at_first_signal
from peerway_measure.rehearse.copy import Copy
from peerway_measure.rehearse.disk import DiskError
from peerway_measure.rehearse.scenario import BadScenario, read
from peerway_measure.rehearse.upgrade import Failed, upgrade

SOCKET = "socket"
_CLONE_NEWNS = 0x20000
_START_S = 600.0  # for a hang; a start takes seconds on an idle machine
_ONLY_ASK = ("status", "enter")


class Gone(Exception):
    """No copy runs in the folder."""


def main(folder: Path) -> int:
    """Start the copy and serve requests until one of them ends it."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "no mount namespace of its own")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    end_at_first_signal()
    path = folder / SOCKET
    path.unlink(missing_ok=True)
    copy = Copy(folder)
    listener = socket.socket(socket.AF_UNIX)
    try:
        copy.start()
        os.chdir(folder)  # a socket's path must be short
        listener.bind(SOCKET)
        path.chmod(0o600)
        listener.listen()
        work: queue.Queue[tuple[socket.socket, dict[str, Any]]] = queue.Queue()
        threading.Thread(target=_accept_requests, args=(copy, listener, work), daemon=True).start()
        while True:
            connection, request = work.get()
            with connection, connection.makefile("w") as stream:
                if _answer(copy, request, stream) is None:
                    return 0
    except KeyboardInterrupt:
        return 0
    except (DiskError, RuntimeError, OSError) as error:
        print(error, flush=True)  # for `start`, which shows this output
        return 1
    finally:
        path.unlink(missing_ok=True)
        copy.stop()


def _accept_requests(
    copy: Copy, listener: socket.socket, work: queue.Queue[tuple[socket.socket, dict[str, Any]]]
) -> None:
    """Serve forever: answer queries here and queue all other requests."""
    while True:
        connection, _ = listener.accept()
        try:
            with connection.makefile("r") as lines:
                request = json.loads(lines.readline())
            if request.get("verb") not in _ONLY_ASK:
                work.put((connection, request))
                continue
            with connection, connection.makefile("w") as stream:
                _answer(copy, request, stream)
        except (ValueError, OSError):  # a malformed request gets no answer
            connection.close()


def _answer(copy: Copy, request: dict[str, Any], stream: Any) -> int | None:
    """Carry out a request. Returns its status, or None if it asks for the end. If the command went away, the
    request is carried out nevertheless.
    """

    def tell(message: dict[str, Any]) -> None:
        try:
            stream.write(json.dumps(message) + "\n")
            stream.flush()
        except OSError:
            pass

    if request.get("verb") == "stop":
        copy.stop()
        tell({"status": 0})
        return None
    try:
        status = _carry_out(copy, request, tell)
    except (DiskError, Failed, BadScenario, ValueError, OSError, RuntimeError) as error:
        traceback.print_exc()
        tell({"wrong": str(error)})
        status = 1
    tell({"status": status})
    return status


def _carry_out(copy: Copy, request: dict[str, Any], tell: Any) -> int:
    def say(text: str) -> None:
        tell({"say": text})

    match request.get("verb"):
        case "snapshot":
            copy.snapshot(request["name"])
        case "rollback":
            copy.roll_back(request["name"])
        case "status":
            say("hosts: " + ", ".join(copy.hosts("all")))
            say("snapshots: " + (", ".join(copy.disk.snapshots()) or "none"))
            if half := copy.disk.unfinished():
                say(
                    "an upgrade neither ended nor was rolled back: what it had done is in the copy; "
                    f"`peerway rehearse rollback {shell_word(copy.folder)} {half}` goes back to before it"
                )
        case "enter":
            if copy.cluster is None or request["host"] not in copy.cluster.spaces:
                raise ValueError(
                    f"{request['host']!r} is not up; the hosts are {', '.join(copy.hosts('all'))}"
                )
            command = request["command"] or ["bash"]
            say(
                json.dumps(
                    copy.cluster.command(
                        request["host"], *command, user=request["user"], TERM=request["term"]
                    )
                )
            )
        case "upgrade":
            scenario = read(Path(request["scenario"]))
            place = copy.folder / f"{scenario.name}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
            return 0 if upgrade(copy, scenario, say, place) else 1
        case other:
            raise ValueError(f"no such request: {other!r}")
    return 0


def start(folder: Path) -> None:
    """Start the process, and wait until the copy runs. Raises RuntimeError with its output."""
    log = folder / "log"
    (folder / SOCKET).unlink(missing_ok=True)  # left by a process that was killed
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "peerway_measure.rehearse.holder", str(folder)], stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    until = time.monotonic() + _START_S
    try:
        while not (folder / SOCKET).exists():
            if process.poll() is not None or time.monotonic() > until:
                process.terminate()
                output = log.read_text(errors="replace")[-3000:].strip()
                raise RuntimeError(f"the copy does not start: {output}")
            time.sleep(0.1)
    except KeyboardInterrupt:  # the user no longer wants the copy
        process.terminate()
        process.wait()
        raise


def ask(folder: Path, **request: Any) -> Any:
    """Send a request. Yields the lines of the answer as they come. Raises Gone if nobody answers."""
    connection = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    try:
        os.chdir(folder)
        connection.connect(SOCKET)
    except OSError:
        connection.close()
        raise Gone(
            f"no copy runs in {folder}; `peerway rehearse start {shell_word(folder)}` starts it"
        ) from None
    finally:
        os.chdir(before)
    with connection, connection.makefile("rw") as stream:
        stream.write(json.dumps(request) + "\n")
        stream.flush()
        for line in stream:
            yield json.loads(line)
    connection.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
