"""Strangers at the rendezvous: processes of other users, and of this one, that do all they can at its socket.
The ranks, who know the secret, meet all the same; and nobody gets in by repeating what a rank has said."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import LIMIT, clean_environment, compile_program, library_folder

SECRET = "00112233445566778899aabbccddeeff"
RANKS = 4
ROUNDS = 3
HELLO_BYTES = 48  # header, seal and payload
CHALLENGE, REFUSE = 2, 5
STRANGER = 65534  # a second user, if the tests can become one


@pytest.fixture(scope="module")
def public() -> Iterator[Path]:
    """A folder that every user can read, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="peerway-strangers-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def flood(public: Path) -> Path:
    """programs/flood.c, compiled."""
    return compile_program("flood", public / "flood")


def start(program: Path, rank: int, address: str, *commands: str, size: int = 2) -> subprocess.Popen[str]:
    variables = {"PEERWAY_RANK": str(rank), "PEERWAY_SIZE": str(size), "PEERWAY_SECRET": SECRET}
    return subprocess.Popen(
        [program, *commands],
        env=clean_environment(**variables, PEERWAY_RENDEZVOUS=address),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def require_meeting(ranks: list[subprocess.Popen[str]], rounds: int = 1) -> None:
    for number, rank in enumerate(ranks):
        out, err = rank.communicate(timeout=LIMIT)
        assert (rank.returncode, err) == (0, ""), f"rank {number}: {err}"
        assert out.splitlines() == [f"gathered {number} of {len(ranks)}"] * rounds


def unix_address(kind: str) -> str:
    return f"unix:@peerway-{kind}-{os.urandom(8).hex()}"


def fresh_address(kind: str) -> str:
    if kind == "unix":
        return unix_address("flood")
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"tcp:127.0.0.1:{free.getsockname()[1]}"


def listen_at(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + address.removeprefix("unix:@"))
    listener.listen()
    listener.settimeout(LIMIT)
    return listener


def connect_to(address: str) -> socket.socket:
    for _ in range(2000):
        reached = socket.socket(socket.AF_UNIX)
        reached.settimeout(LIMIT)
        with contextlib.suppress(ConnectionRefusedError):
            reached.connect("\0" + address.removeprefix("unix:@"))
            return reached
        reached.close()
        threading.Event().wait(0.01)
    pytest.fail(f"nobody listens at {address}")


def read_whole(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (piece := connection.recv(count - len(data))):
        data += piece
    return data


@pytest.fixture(scope="module")
def hello(team_program: Path) -> str:
    """The first message of a rank, in hexadecimal."""
    address = unix_address("recorder")
    with listen_at(address) as listener:
        rank = start(team_program, 1, address, size=RANKS)
        with listener.accept()[0] as connection:
            greeting = read_whole(connection, HELLO_BYTES)
        rank.kill()
        rank.communicate()
    assert len(greeting) == HELLO_BYTES
    return greeting.hex()


@contextlib.contextmanager
def flooded(program: Path, kinds: list[str], address: str, hello: str) -> Iterator[None]:
    users = (None, STRANGER) if os.geteuid() == 0 else (None, None)
    kinds = kinds * 2 if len(kinds) == 1 else kinds
    attackers = [
        subprocess.Popen([program, kind, address, "60", "5000000", hello], user=user, stdout=subprocess.PIPE)
        for kind, user in zip(kinds, itertools.cycle(users), strict=False)
    ]
    try:
        yield
    finally:
        for attacker in attackers:
            attacker.kill()
            attacker.communicate()


@pytest.mark.parametrize("kind", ["unix", "tcp"])
@pytest.mark.parametrize("flood_kind", ["silence", "garbage", "hello", "replay", "reconnect", "all"])
def test_a_flood_keeps_no_rank_out(
    team_program: Path, flood: Path, hello: str, flood_kind: str, kind: str
) -> None:
    kinds = ["silence", "garbage", "hello", "reconnect"] if flood_kind == "all" else [flood_kind]
    address = fresh_address(kind)
    # A hello whose last bytes are changed is right except for its seal.
    with flooded(flood, kinds, address, "" if flood_kind == "garbage" else hello):
        commands = ["gather", *["again", "gather"] * (ROUNDS - 1)]
        ranks = [start(team_program, rank, address, *commands, size=RANKS) for rank in range(RANKS)]
        require_meeting(ranks, ROUNDS)


def record_a_meeting(program: Path) -> bytes:
    """Everything that rank 1 sends to the bootstrap server, recorded by this process between the two."""
    hub_address, address = unix_address("hub"), unix_address("relay")
    recorded = bytearray()
    with listen_at(address) as listener:
        ranks = [start(program, 0, hub_address, "gather"), start(program, 1, address, "gather")]
        with listener.accept()[0] as member, connect_to(hub_address) as hub:

            def answer() -> None:
                with contextlib.suppress(OSError):
                    while piece := hub.recv(4096):
                        member.sendall(piece)
                    member.shutdown(socket.SHUT_WR)

            answering = threading.Thread(target=answer)
            answering.start()
            while piece := member.recv(4096):
                recorded += piece
                hub.sendall(piece)
            answering.join()
        require_meeting(ranks)
    return bytes(recorded)


def test_what_a_rank_said_lets_nobody_else_in(team_program: Path) -> None:
    recorded = record_a_meeting(team_program)
    assert len(recorded) > HELLO_BYTES
    address = unix_address("replay")
    first = start(team_program, 0, address, "gather")
    with connect_to(address) as thief, connect_to(address) as late:
        thief.sendall(recorded)
        answer = read_whole(thief, 40)
        assert answer[7] == CHALLENGE  # the recording works up to here, because the secret is the same
        assert thief.recv(4096) == b""  # disconnected, because it cannot answer the challenge
        late.sendall(recorded)
        assert read_whole(late, 40)[7] == REFUSE
    # If one of the strangers had been accepted as rank 1, this rank would be one too many.
    require_meeting([first, start(team_program, 1, address, "gather")])


def test_nobody_can_take_the_socket_of_the_next_team(team_program: Path) -> None:
    address = unix_address("next")
    with contextlib.ExitStack() as taken:
        for guess in (f"{address}.{number}" for number in range(5)):
            taken.enter_context(listen_at(guess))
        commands = ("gather", "again", "gather", "again", "gather")
        require_meeting([start(team_program, rank, address, *commands) for rank in range(2)], 3)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two other users")
def test_a_folder_that_another_user_made_first_keeps_nobody_apart(public: Path) -> None:
    """Ranks of mpirun on one host meet through a file, which is in /tmp if the session has no folder."""
    user, group = 54321, 54321
    program = compile_program("team", public / "team")
    shutil.copy(library_folder() / "libpeerway.so", public)  # where the library is they may not look
    names = [
        f"peerway-{user}",
        *(f"peerway-{user}-{guess}" for guess in ("", "XXXXXX", "000000", "0", "job")),
    ]
    squatted = [Path("/tmp", name) for name in names]
    try:
        for path in squatted:
            path.mkdir()
            path.chmod(0o777)
            os.chown(path, STRANGER, STRANGER)
        environment = {**clean_environment(), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        environment |= {"OMPI_MCA_ess_base_jobid": "job", "HOME": "/nonexistent", "PEERWAY_TIMEOUT": "20"}
        environment["LD_LIBRARY_PATH"] = str(public)
        environment.pop("XDG_RUNTIME_DIR", None)
        ranks = [
            subprocess.Popen(
                [program, "gather"],
                env={**environment, "OMPI_COMM_WORLD_RANK": str(rank)},
                user=user,
                group=group,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in (1, 0)
        ]
        require_meeting(ranks[::-1])
        assert not [file for path in squatted for file in path.iterdir()]
        own = [path for path in Path("/tmp").glob(f"peerway-{user}-*") if path.stat().st_uid == user]
        assert [path.stat().st_mode & 0o777 for path in own] == [0o700]
        assert not list(own[0].iterdir())  # the secret is removed with the rendezvous
    finally:
        for path in Path("/tmp").glob(f"peerway-{user}*"):
            path.rmdir()
