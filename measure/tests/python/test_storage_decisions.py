"""What `peerway storage` decides, as data: states of caches, mounts and counters of clients that nobody has
here, requests, fio's JSON.
"""

from __future__ import annotations

import json
import socket
from itertools import product
from pathlib import Path

import pytest
from synthetic_records import record

from peerway_measure.storage import place as places
from peerway_measure.storage.engines.base import FileOperation
from peerway_measure.storage.engines.fio import command, outcome
from peerway_measure.storage.measure import in_random_order, streams_of
from peerway_measure.storage.node_group import SingleNode, by_node
from peerway_measure.storage.reads import judged_together
from peerway_measure.storage.request import BadRequest, Request
from peerway_measure.storage.states import Evidence, State, judge, judge_random
from peerway_measure.storage.table import rows

MB = 10**6
BY = ("cachestat", "NFS mountstats")


@pytest.mark.parametrize(
    ("state", "resident", "fetched", "name", "proved"),
    [
        ("cold", 0.0, 100 * MB, "cold", True),
        ("cold", 0.0, 130 * MB, "cold", True),  # others read meanwhile, too
        ("cold", 0.3, 70 * MB, "unknown", False),
        ("cold", 0.0, 40 * MB, "unknown", False),  # it came from somewhere else
        ("cold", 0.0, None, "cold", False),  # FUSE
        ("cold", None, 100 * MB, "cold", False),
        ("warm_here", 1.0, 0, "warm_here", True),
        ("warm_here", 0.999, 4096, "warm_here", True),
        ("warm_here", 0.5, 50 * MB, "unknown", False),
        ("warm_here", 1.0, 100 * MB, "unknown", False),  # NFS asked the server again, all the same
        ("warm_here", 1.0, None, "warm_here", False),
        ("warm_elsewhere", 0.0, 100 * MB, "warm_elsewhere", True),
        ("warm_elsewhere", 1.0, 0, "unknown", False),
        ("after_drop", 0.0, 100 * MB, "after_drop", True),
    ],
)
def test_a_state_is_what_the_evidence_says(
    state: State, resident: float | None, fetched: int | None, name: str, proved: bool
) -> None:
    seen = Evidence(100 * MB, resident, BY[0], fetched, BY[1])
    judged = judge(state, seen)
    assert (judged.state, judged.proved) == (name, proved)
    extra = judged.extra(seen)
    assert extra["state_proved"] is proved
    assert ("contradicts" in extra["state_proof"]) == (name == "unknown")
    assert extra.get("state_wanted") == (state if name == "unknown" else None)


MOUNTS = """22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:50 / /scratch rw,noatime - lustre 10.0.0.1@o2ib:/scratch rw,flock,lazystatfs
31 22 0:51 / /home\\040of\\040all rw - nfs4 nas:/home rw,vers=4.2,rsize=1048576
32 22 0:52 / /mnt/glu ro - fuse.glusterfs gl:/vol rw,user_id=0
33 22 0:53 / /dev/shm rw - tmpfs tmpfs rw
34 22 0:53 / /other/shm rw - tmpfs tmpfs rw
"""
MOUNTSTATS = """device sysfs mounted on /sys with fstype sysfs
device nas:/home mounted on /home\\040of\\040all with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2
	events:	1 2 3
	bytes:	100 200 0 0 5000 6000 7 8
device nas:/b mounted on /b with fstype nfs4 statvers=1.1
	bytes:	1 2 3 4 9 9 9 9
"""
OSC = """snapshot_time             1700000000.1 secs.nsecs
req_waittime              10 samples [usec] 1 2 3 4
read_bytes                3 samples [bytes] 4096 1048576 {} 99
write_bytes               1 samples [bytes] 4096 4096 4096 16777216
"""


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    files = {
        "proc/self/mountinfo": MOUNTS,
        "proc/self/mountstats": MOUNTSTATS,
        "sys/fs/lustre/version": "2.15.3\n",
        "proc/fs/lustre/osc/scratch-OST0000-osc-ffff/stats": OSC.format(2_000_000),
        "proc/fs/lustre/osc/scratch-OST0001-osc-ffff/stats": OSC.format(3_000_000),
        "proc/fs/lustre/osc/other-OST0000-osc-ffff/stats": OSC.format(7),
        "proc/fs/lustre/osc/scratch-OST0000-osc-ffff/import": "import:\n  target_version: 2.12.8.0\n",
        "sys/fs/lustre/osc/scratch-OST0000-osc-ffff/max_rpcs_in_flight": "8\n",
        "sys/fs/lustre/osc/scratch-OST0001-osc-ffff/max_rpcs_in_flight": "32\n",
        "proc/fs/lustre/osc/scratch-OST0000-osc-ffff/checksums": "1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "device", "point", "kind", "fetched"),
    [
        ("/scratch/me", "0:50", "/scratch", "lustre", 5_000_000),
        ("/home of all/me", "0:51", "/home of all", "nfs", 5000),
        ("/mnt/glu/x", "0:52", "/mnt/glu", "fuse", None),
        ("/other/shm", "0:53", "/other/shm", "memory", None),
        ("/tmp", "8:1", "/", "local", None),
        ("/link/to/scratch", "0:50", "/scratch", "lustre", 5_000_000),  # by its device, not by its name
        (
            "/scratch/me",
            "9:99",
            "/scratch",
            "lustre",
            5_000_000,
        ),  # btrfs has device numbers that no mount has
    ],
)
def test_a_place_is_found_with_its_counters(
    clients: Path, folder: str, device: str, point: str, kind: str, fetched: int | None
) -> None:
    place = places.find(Path(folder), device, clients)
    assert (place.mount_point, place.kind) == (point, kind)
    counter = places.counter(place, clients)
    assert (counter.fetched if counter else None) == fetched


def test_versions_are_those_that_a_client_sees(clients: Path) -> None:
    lustre = places.find(Path("/scratch"), "0:50", clients)
    assert places.versions(lustre, clients) == {"client_version": "2.15.3", "server_version": "2.12.8.0"}
    assert places.settings(lustre, clients) == "checksums=1 max_rpcs_in_flight=32/8"
    nfs = places.find(Path("/home of all"), "0:51", clients)
    assert places.settings(nfs, clients) == ""
    assert places.versions(nfs, clients) == {"protocol_version": "NFS 4.2"}
    assert places.versions(places.find(Path("/tmp"), "8:1", clients), clients) == {}


@pytest.mark.parametrize(
    ("resident", "state", "proved"), [(0.0, "cold", True), (0.01, "unknown", False), (None, "cold", False)]
)
def test_random_reads_are_cold_where_nothing_was_resident(
    resident: float | None, state: str, proved: bool
) -> None:
    seen = Evidence(4096, resident, "mincore", fetched=1 << 20, counter="the process's own count")
    judged = judge_random(seen)
    assert (judged.state, judged.proved) == (state, proved)
    assert judged.extra(seen)["fetched_bytes"] == 1 << 20


def test_the_client_of_glusterfs_has_the_version_of_its_parts(tmp_path: Path) -> None:
    mount = places.Place("/scratch", "fuse.glusterfs", "/etc/glusterfs/x.vol", "rw", "fuse")
    assert places.versions(mount, tmp_path) == {}
    for name in ("10.3", "gfevents"):
        (tmp_path / "usr/lib/x86_64-linux-gnu/glusterfs" / name).mkdir(parents=True)
    assert places.versions(mount, tmp_path) == {"client_version": "10.3"}


def test_what_a_disk_moves_is_counted_for_all_that_use_it(tmp_path: Path) -> None:
    assert places.moved_by_disk("8:1", tmp_path) is None
    (tmp_path / "sys/dev/block/8:1").mkdir(parents=True)
    (tmp_path / "sys/dev/block/8:1/stat").write_text("    9 0 100 4 3 0 50 1 0 2 6 0 0 0 0 0 0\n")
    assert places.moved_by_disk("8:1", tmp_path) == 150 * 512


@pytest.mark.parametrize(
    ("device", "features", "goes"),
    [("0x0005", "0110010100", True), ("0x0005", "0110000100", False), ("0x0002", "0110010100", False)],
)
def test_a_machine_that_gives_its_memory_back_is_known(
    tmp_path: Path, device: str, features: str, goes: bool
) -> None:
    assert not places.memory_goes_back(tmp_path)
    folder = tmp_path / "sys/bus/virtio/devices/virtio0"
    folder.mkdir(parents=True)
    (folder / "device").write_text(f"{device}\n")
    (folder / "features").write_text(f"{features}\n")
    assert places.memory_goes_back(tmp_path) is goes


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"sizes": (4096, 1000), "blocks": (4096,)}, "--size is 1000 bytes; it must be a multiple of 4096"),
        ({"blocks": (1 << 20, 12288)}, "must be a power of two"),
        (
            {"sizes": (1 << 30, 3 << 19), "blocks": (4096, 1 << 20)},
            "--size 1572864 is not a multiple of --block",
        ),
        ({"stripes": ("", "0")}, "--stripes: '0' is not a stripe layout; write a count such as 4"),
    ],
)
def test_a_bad_request_is_refused_with_its_numbers(changed: dict[str, int], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        Request(place=Path("/x"), **changed)  # type: ignore[arg-type]


def test_the_space_that_is_needed_counts_what_lies_there_at_once() -> None:
    request = Request(
        place=Path("/x"), tests=("write", "read"), sizes=(1 << 20,), blocks=(1 << 20,), streams=(1, 4)
    )
    assert request.most_bytes(nodes=1) == int(4 * (1 << 20) * 1.1)
    assert request.most_bytes(nodes=3) == int(12 * (1 << 20) * 1.1)
    assert Request(place=Path("/x"), tests=("write", "random"), sizes=(1 << 20,), streams=(1,)).most_bytes(
        1
    ) == int((2 << 20) * 1.1)


def test_each_combination_of_the_factors_is_a_case_and_random_blocks_are_of_the_first_block() -> None:
    request = Request(
        place=Path("/x"),
        tests=("write", "random"),
        sizes=(1 << 20, 1 << 22),
        blocks=(1 << 16, 1 << 20),
        modes=("buffered", "direct+fsync"),
    )
    cases = [*request.files()]
    assert {(f.size, f.block, f.mode) for f in cases} == {
        *product((1 << 20, 1 << 22), (1 << 16, 1 << 20), ("buffered", "direct+fsync"))
    }
    assert len({f.name for f in cases}) == len(cases) == 8
    assert {f.block for f in cases if "random" in f.tests} == {1 << 16}
    last = cases[-1]
    assert last.shape("write") == "sequential 1 MiB direct fsync"
    assert last.shape("read") == "sequential 1 MiB direct"
    assert last.random_shape("write") == "random 4 KiB in 4 MiB direct fsync"
    assert request.most_bytes(1) == int(2 * (1 << 22) * 1.1)


def test_several_nodes_share_one_file_also_with_a_stream_each() -> None:
    request = Request(place=Path("/x"), tests=("shared",), sizes=(1 << 20,), streams=(1,))
    assert not [f for f in request.files(1) if f.shared]
    assert [f.shape("read") for f in request.files(3)] == ["sequential 1 MiB", "shared by 3 nodes 1 MiB"]


class Scripted(SingleNode):
    """Three nodes, of which two have these texts."""

    def __init__(self, *others: tuple[str, list[str]]) -> None:
        self.others = others

    def all_gather(self, mine: str) -> list[str]:
        return [mine, *map(json.dumps, self.others)]


def test_what_a_node_tells_has_its_name_unless_all_tell_the_same() -> None:
    here = socket.gethostname()
    group = Scripted(("n2", ["full", "slow"]), ("n3", ["slow"]))
    assert by_node(group, ["slow"]) == ["slow", "n2: full"]
    assert by_node(group, ["full"]) == [f"{', '.join(sorted([here, 'n2']))}: full", "n2, n3: slow"]
    assert by_node(SingleNode(), ["full"]) == ["full"]


def test_the_whole_file_has_a_state_where_all_nodes_had_it() -> None:
    mine = judge("cold", Evidence(1 << 20, 0.0, BY[0], 1 << 20, BY[1]))
    assert judged_together(mine, ["5 cold 1", "7 cold 1"]) == mine
    part = judged_together(mine, ["5 cold 1", "7 cold 0"])
    assert (part.state, part.proved, part.why) == ("cold", False, "1 of 2 nodes proved their part")
    other = judged_together(mine, ["5 cold 1", "7 unknown 0"])
    assert (other.state, other.extra()["state_wanted"]) == ("unknown", "cold")


def test_runs_have_orders_of_their_own_and_nodes_have_the_same() -> None:
    orders = [in_random_order(range(8), token) for token in ("a", "b", "a")]
    assert orders[0] != orders[1]
    assert orders[0] == orders[2]
    assert {*map(tuple, map(sorted, orders))} == {(*range(8),)}


def test_streams_are_numbers_or_all() -> None:
    assert streams_of("1,4,4")[:2] == [1, 4]
    assert streams_of("all")[0] >= 1
    for wrong in ("0", "x", "1,,2"):
        with pytest.raises(ValueError, match="write for example 1,4,all"):
            streams_of(wrong)


def test_fio_is_asked_for_a_job_a_stream() -> None:
    files = next(
        iter(
            Request(
                place=Path("/x"), tests=("write",), sizes=(1 << 21,), streams=(2,), modes=("direct+fsync",)
            ).files()
        )
    )
    words = command("write", FileOperation(Path("/x/a:b"), files, 1, 1, 1 << 20))
    assert [w for w in words if w.startswith("--filename")] == [
        "--filename=/x/a\\:b.0",
        "--filename=/x/a\\:b.1",
    ]
    assert {"--end_fsync=1", "--direct=1"} <= set(words)
    assert "--end_fsync=1" not in command("read", FileOperation(Path("/x/a"), files, 1, 1, 1 << 20))


def test_fio_is_as_slow_as_its_slowest_stream() -> None:
    def job(runtime: int) -> dict[str, object]:
        return {"write": {"runtime": runtime}, "usr_cpu": 10.0, "sys_cpu": 40.0, "job_runtime": runtime}

    measured = outcome("write", {"fio version": "fio-3.33", "jobs": [job(500), job(800)]})
    assert measured.elapsed_ns == 800_000_000
    assert measured.cpu_us == 650_000
    assert measured.data_is_correct is None


def test_the_table_has_an_order_though_measurements_have_none() -> None:
    """By test, block and streams; within one measurement the write stands before its reads."""
    sequential = [
        record(
            test=test,
            via="posix",
            shape=f"sequential {block}",
            bytes=MB,
            ranks=streams,
            extra={"block": block},
        )
        for block, streams in (("16 MiB", 1), ("64 KiB", 4), ("64 KiB", 1))
        for test in ("file_write_bw", "file_read_cold_bw")
    ]
    others = [
        record(test="file_create_mr", via="posix", shape="one folder", ranks=1),
        record(test="file_random_read_latency", via="posix", shape="random 4 KiB in 1 GiB", ranks=1),
        record(test="file_write_bw", via="posix", shape="shared 1 MiB", ranks=4, extra={"block": "1 MiB"}),
    ]
    assert [line.split()[0] for line in rows([*others, *sequential])][1:] == [
        *["file_write_bw", "file_read_cold_bw"] * 3,
        "file_write_bw",
        "file_random_read_latency",
        "file_create_mr",
    ]
    how = [line.split("posix")[1].split("  ")[1:] for line in rows(sequential) if "file_write" in line]
    assert [[part.strip() for part in line if part.strip()][:2] for line in how] == [
        ["sequential 64 KiB", "1"],
        ["sequential 64 KiB", "4"],
        ["sequential 16 MiB", "1"],
    ]
