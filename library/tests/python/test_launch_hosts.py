"""The hosts of a job, as data, and the messages between a rank's stand-in and its keeper."""

from __future__ import annotations

import ipaddress
import socket
from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner

from peerway.cli.hosts import Hosts
from peerway.launch import rendezvous, wire
from peerway.launch.addresses import own_addresses
from peerway.launch.hosts import BadHosts, Host, of_slurm, parse, parse_file, places, rendezvous_of, spread
from peerway.launch.stand_in import carried
from peerway_common.cli import command


def test_hosts_are_read_from_a_list_and_from_a_file() -> None:
    hosts = [Host("node1", 2), Host("10.0.0.7"), Host("user@node3.site"), Host("fd00::2", 4)]
    assert parse("node1:2, 10.0.0.7,user@node3.site,[fd00::2]:4") == hosts
    text = "# two kinds\nnode1 slots=2\n\n10.0.0.7\nuser@node3.site # slow\n[fd00::2]:4\n"
    assert parse_file(text) == hosts
    assert parse("") == []


@pytest.mark.parametrize("text", ["a:0", "a:b", "-oProxyCommand=x", "a b", "a;reboot", "a:1:2", "$(x)"])
def test_what_is_no_host_is_refused_so_that_no_agent_takes_it_for_an_option(text: str) -> None:
    with pytest.raises(BadHosts, match="is not a host; write"):
        parse(text)


@pytest.mark.parametrize(
    ("hosts", "ranks", "expected"),
    [
        ("a,b", 4, "aabb"),
        ("a,b", 3, "aab"),
        ("a,b", 1, "a"),
        ("a:1,b:3", 3, "abb"),
        ("a:1,b", 4, "abbb"),
        ("a:1,b:1,a:1", 3, "aab"),
    ],
)
def test_ranks_fill_hosts_in_blocks(hosts: str, ranks: int, expected: str) -> None:
    assert "".join(spread(parse(hosts), ranks)) == expected


def test_tune_has_a_rank_on_each_of_two_hosts_however_many_they_take() -> None:
    """Including the hosts of a Slurm allocation, whose first node once got both ranks."""
    pair = Hosts((Host("node1", 2), Host("node2", 2)), ("agent",)).pair()
    assert pair.words() == ["--hosts", "node1:1,node2:1", "--launch-agent", "agent"]
    assert Hosts().pair() == Hosts()


@pytest.mark.parametrize("hosts", ["node1", "node1:1,node1:1", "node1,node2,node3"])
def test_tune_is_between_two_hosts(hosts: str) -> None:
    done = CliRunner().invoke(command, ["tune", "--hosts", hosts, "--out", "-"])
    assert done.exit_code == 2
    assert "tune measures between two hosts" in done.stderr
    assert "node1" in done.stderr


def test_too_few_places_are_told() -> None:
    with pytest.raises(BadHosts, match=r"5 ranks were asked for, and the hosts take 4: a:1, b:3"):
        spread(parse("a:1,b:3"), 5)


@pytest.mark.parametrize(
    ("allocation", "hosts"),
    [
        ({"SLURM_TASKS_PER_NODE": "2(x2),1"}, [Host("n1", 2), Host("n2", 2), Host("n3", 1)]),
        ({"SLURM_TASKS_PER_NODE": "4"}, [Host("n1"), Host("n2"), Host("n3")]),
        ({"SLURM_JOB_NUM_NODES": "1"}, []),
        ({"SLURM_JOB_ID": ""}, []),
    ],
)
def test_the_nodes_of_a_slurm_allocation(allocation: dict[str, str], hosts: list[Host]) -> None:
    names = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_NODELIST": "n[1-3]"}
    assert (
        of_slurm(names | allocation, lambda nodes: ["n1", "n2", "n3"] if nodes == "n[1-3]" else []) == hosts
    )


def test_ranks_of_this_host_alone_need_no_agent_and_no_network() -> None:
    of_ranks = ["localhost"] * 2
    with rendezvous_of(of_ranks, ()) as addresses:
        placed = places(of_ranks, (), "none", None, addresses)
    assert [place.through for place in placed] == [(), ()]
    assert [dict(place.settings) for place in placed] == [
        {"PEERWAY_LOCAL_RANK": str(rank), "PEERWAY_LOCAL_SIZE": "2"} for rank in range(2)
    ]


def test_a_host_may_greet_before_it_says_where_rank_0_will_listen() -> None:
    agent = ("sh", "-c", 'echo Welcome to $1; shift; eval "$*"', "sh")
    with rendezvous.held_at("node1", agent) as addresses:
        port = int(addresses.rpartition(":")[2])
        assert len(addresses.split(",")) == len(own_addresses())
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("", port))
    socket.create_server(("", port)).close()


def test_a_host_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "ANSWER_S", 0.1)
    monkeypatch.setattr(rendezvous, "LAST_WORDS", 0.1)
    message = r"host node1 cannot be reached: .* node1 .* has not answered for 0\.1 s"
    agent = ("sh", "-c", "exec sleep 600", "sh")
    with pytest.raises(rendezvous.NoRendezvous, match=message), rendezvous.held_at("node1", agent):
        pass


def test_addresses_of_this_host_are_addresses() -> None:
    assert [str(ipaddress.ip_address(text)) for text in own_addresses()] == own_addresses() != []


def test_what_tells_of_a_host_or_a_session_stays_there() -> None:
    environment = {"PATH": "/bin", "PEERWAY_SECRET": "s", "OMP_NUM_THREADS": "4", "XDG_CONFIG_HOME": "/c"}
    own = {
        "HOSTNAME": "a",
        "SSH_CONNECTION": "x",
        "SLURM_PROCID": "0",
        "DISPLAY": ":0",
        "XDG_RUNTIME_DIR": "/r",
    }
    assert carried(environment | own) == environment


def pieces(text: bytes, size: int) -> list[bytes]:
    return [text[low:high] for low, high in pairwise([*range(0, len(text), size), len(text)])]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_notes_are_taken_out_of_what_a_rank_writes(size: int) -> None:
    mark = b"\x1etoken "
    text = b"begin" + wire.note("token", "here") + b"half a line" + wire.note("token", "more")
    text += mark[:-2] + b"no mark\n" + wire.note("other", "ended") + b"end" + mark[:3]
    notes, shown, received = wire.Notes("token"), b"", list[Any]()
    for chunk in pieces(text, size):
        for piece in notes.feed(chunk):
            if isinstance(piece, bytes):
                shown += piece
            else:
                received.append(piece)
    shown += notes.finish()
    assert received == [{"kind": "here"}, {"kind": "more"}]
    assert (
        shown
        == b"beginhalf a line" + mark[:-2] + b"no mark\n" + wire.note("other", "ended") + b"end" + mark[:3]
    )


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_commands_are_whole_however_they_come(size: int) -> None:
    data = b"signal 9\ninput 3\n\n\x00"
    text = wire.command("signal", 2) + wire.command("input", len(data), data) + wire.command("alive")
    commands, received = wire.Commands(), []
    for chunk in pieces(text, size):
        received += commands.feed(chunk)
    assert received == [("signal", 2, b""), ("input", len(data), data), ("alive", 0, b"")]
