"""`peerway storage` as a user runs it, on this machine's file systems: records, and proofs of what the
caches held.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from launching import LIMIT, run_command

from peerway_measure import records
from peerway_measure.storage.folder import RunFolder
from peerway_measure.storage.operation import OperationFailed, operate

SMALL = ("--size", "2M", "--block", "256K", "--small-files", "20", "--random-blocks", "20")
PEERWAY = (sys.executable, "-m", "peerway")
# Records, the command that made them, the folder that was measured, and the file of crossed factors.
Ran = tuple[list[records.Record], subprocess.CompletedProcess[str], Path, Path]


def storage(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_command([*PEERWAY, "storage", str(folder), *map(str, words)])


def is_disk(folder: Path) -> bool:
    return (
        "tmpfs"
        not in subprocess.run(
            ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True
        ).stdout
    )


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    """One measurement of everything, with each engine available here."""
    folder = tmp_path_factory.mktemp("place")
    out = tmp_path_factory.mktemp("out") / "r.jsonl"
    words = (*SMALL, "--node-type", "t1", "--out", out)
    done = storage(*words, "--streams", "1,2", "--mode", "buffered,direct", folder=folder)
    assert done.returncode == 0, done.stderr
    factors = (
        "--size",
        "256K,1M",
        "--block",
        "64K,256K",
        "--mode",
        "buffered,direct+fsync",
        "--streams",
        "1",
    )
    tests = ("write", "read", "--repeat", "2", *factors, "--append", "--out", out.with_name("factors.jsonl"))
    crossed = storage(*tests, folder=folder)
    assert crossed.returncode == 0, crossed.stderr
    if shutil.which("fio"):
        more = storage(
            "write",
            "read",
            *words,
            "--append",
            "--engine",
            "fio",
            "--size",
            "16M",  # of which 1 % is more than fio's own pages, if it has to be read from the disk
            "--streams",
            "1",
            "--mode",
            "fsync",
            folder=folder,
        )
        assert more.returncode == 0, more.stderr
    return records.read(out), done, folder, out.with_name("factors.jsonl")


def test_all_tests_give_records_and_nothing_is_left(
    run: Ran,
) -> None:
    measured, _, folder, _ = run
    assert {r.test for r in measured if r.via == "posix"} >= {
        *("file_write_bw", "file_read_warm_here_bw", "file_random_read_latency", "file_random_write_latency"),
        *("file_create_mr", "file_stat_mr", "file_read_mr", "file_rename_mr", "file_remove_mr"),
    }
    assert {r.ranks for r in measured} == {1, 2}
    assert {r.shape for r in measured if r.test == "file_write_bw"} >= {
        "sequential 256 KiB",
        "sequential 256 KiB direct",
        "shared 256 KiB",
    }
    assert all(r.validated for r in measured if r.via == "posix" or r.op == "read")
    assert {r.extra["node_type"] for r in measured} == {"t1"}
    assert all(r.extra["file_system"] and r.extra["mount_options"] and r.extra["kernel"] for r in measured)
    assert list(folder.iterdir()) == []


def test_each_combination_of_the_factors_has_records_in_each_run(
    run: Ran,
) -> None:
    measured = records.read(run[3])
    written = [r for r in measured if r.test == "file_write_bw"]
    memory = written[0].extra["file_system"] == "tmpfs"  # which has no O_DIRECT
    combinations = {
        (r.bytes, r.extra["block"], r.extra["mode"])
        for r in written
        if r.extra["mode"] == "buffered" or not memory
    }
    assert len(combinations) == (4 if memory else 8)
    keys = Counter((r.test, r.shape, r.bytes) for r in measured)
    assert set(keys.values()) == {2}  # one of each run
    page = subprocess.run(
        [*PEERWAY, "compare", run[3], run[3], "--factor", "block=64K:256K"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "block: 64 KiB -> 256 KiB" in page.stdout
    assert "no group" not in page.stdout


@pytest.mark.alone  # what else runs here takes pages from the cache
def test_states_are_proved_on_a_local_disk(
    run: Ran,
) -> None:
    measured, _, folder, _ = run
    if not is_disk(folder):
        pytest.skip("the tests' folder is in memory")
    reads = [r for r in measured if r.test.startswith("file_read") and r.test.endswith("bw")]
    proved = [r for r in reads if r.extra["state_proved"]]
    # Short of memory, the kernel may drop pages between the look at the cache and the end of the read.
    assert len(proved) >= len(reads) - 1, [(r.via, r.shape, r.ranks, r.extra) for r in reads]
    assert {r.test for r in proved} == {"file_read_cold_bw", "file_read_warm_here_bw"}
    for r in proved:  # the kernel may drop or keep a few pages
        share = r.extra["fetched_bytes"] / (r.bytes * r.ranks)
        assert share >= 0.99 if "cold" in r.test else share <= 0.01


def test_without_a_state_that_can_be_made_it_says_why(
    run: Ran,
) -> None:
    assert "O_DIRECT passes the page cache by" in run[1].stderr


def test_files_in_memory_have_no_cold_state(tmp_path: Path) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    place = Path("/dev/shm") / f"peerway-test-{os.getpid()}"
    place.mkdir()
    try:
        done = storage("write", "read", *SMALL, "--streams", "1", "--out", tmp_path / "r", folder=place)
        assert list(place.iterdir()) == []
    finally:
        place.rmdir()
    assert "the files of tmpfs are its page cache" in done.stderr
    assert {r.test for r in records.read(tmp_path / "r")} == {"file_write_bw", "file_read_warm_here_bw"}


def test_a_file_that_somebody_changed_is_noticed(tmp_path: Path) -> None:
    folder = RunFolder.make(tmp_path, 10)
    words = {
        "size": 1 << 20,
        "block": 1 << 16,
        "streams": 1,
        "depth": 4,
        "direct": 0,
        "fsync": 0,
        "shared": 0,
        "seed": 5,
    }
    path = folder.prefix("w1")
    operate("write", 10, path=path, **words)
    assert operate("read", 10, path=path, **words)["right"]
    with Path(f"{path}.0").open(
        "r+b"
    ) as file:  # between two stamps: only the comparison of all bytes sees it
        file.seek(300_000 // 512 * 512 + 100)
        file.write(b"x")
    assert operate("verify", 10, path=path, **words, overwritten=0)["wrong"] == 1
    with Path(f"{path}.0").open("r+b") as file:
        file.seek(512 * 7)
        file.write(b"somebody")
    assert not operate("read", 10, path=path, **words)["right"]
    assert folder.remove() == []


def test_a_file_that_somebody_changes_meanwhile_makes_the_command_fail(tmp_path: Path) -> None:
    """The command that drops the server's cache is used to change a byte between two stamps."""
    place, out = tmp_path / "place", tmp_path / "r.jsonl"
    place.mkdir()
    if not is_disk(place):
        pytest.skip("the tests' folder is in memory, where no server's cache is dropped")
    other = tmp_path / "other"
    script = tmp_path / "other.py"
    script.write_text(
        "import pathlib\n"
        f"(file,) = pathlib.Path({str(place)!r}).glob('*/*.w1r0.0')\n"
        "with file.open('r+b') as f:\n    f.seek(300 * 512 + 100)\n    f.write(b'x')\n"
    )
    other.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(script)])}\n")
    other.chmod(0o755)
    words = ("write", "read", *SMALL, "--streams", "1", "--drop-server", other, "--out", out)
    done = storage(*words, folder=place)
    assert done.returncode == 1
    assert "1 blocks of the files were not what was written (posix, 1 stream of 2 MiB, " in done.stderr
    assert "did somebody change them?" in done.stderr
    assert "the data read differs from the data written" in done.stderr
    assert not any(r.validated for r in records.read(out))
    assert list(place.iterdir()) == []


def test_no_two_sectors_are_alike_and_nothing_compresses(tmp_path: Path) -> None:
    import zlib

    folder = RunFolder.make(tmp_path, 10)
    words = {
        "size": 4 << 20,
        "block": 1 << 20,
        "streams": 2,
        "depth": 1,
        "direct": 0,
        "fsync": 0,
        "shared": 0,
    }
    operate("write", 10, path=folder.prefix("a"), seed=1, **words)
    operate("write", 10, path=folder.prefix("b"), seed=2, **words)
    data = b"".join(Path(f"{folder.prefix(name)}.0").read_bytes() for name in "ab")
    sectors = {data[at : at + 512] for at in range(0, len(data), 512)}
    assert len(sectors) == len(data) // 512
    assert len(zlib.compress(data, 1)) > 0.99 * len(data)
    folder.remove()


def test_it_never_leaves_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OperationFailed, match="token="):
        operate("remove", 10, place=tmp_path, token="../../../tmp", begins="")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "aaaaaaaaaaaa.kept").write_text("kept")
    inner = tmp_path / "peerway-storage-aaaaaaaaaaaa"
    inner.mkdir()
    (inner / "aaaaaaaaaaaa.d").symlink_to(outside)  # a link of ours is removed, what it points to is not
    operate("remove", 10, place=tmp_path, token="aaaaaaaaaaaa", begins="")
    assert (outside / "aaaaaaaaaaaa.kept").exists()
    assert not inner.exists()


def test_an_error_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, says in (("none", "name a folder that exists"), ("file", "name a folder")):
        done = storage("write", folder=tmp_path / name)
        assert done.returncode == 1
        assert f"peerway: {tmp_path / name}: open of a folder: " in done.stderr
        assert says in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--size", "800000G", "--streams", "1"), "are needed; choose a smaller --size"),
        (("--engine", "gds"), "the engine gds/direct cannot be used"),
        (("--engine", "dd"), "there is no engine 'dd'"),
        (("--states", "lukewarm"), "'lukewarm' is not one of cold"),
        (
            ("read", *SMALL, "--states", "warm_elsewhere"),
            "warm_elsewhere was not measured: it needs another node",
        ),
        (("read", *SMALL, "--states", "after_drop"), "no command was given that drops the server's cache"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    if "gds" in words and Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a GPU")
    done = storage(*words, folder=tmp_path)
    assert done.returncode != 0
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_random_reads_tell_what_the_cache_held(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = storage("random", *SMALL, "--streams", "1", "--out", out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (read,) = (r for r in records.read(out) if r.test == "file_random_read_latency")
    if read.extra["file_system"] == "tmpfs":
        assert "state" not in read.extra  # its files are its page cache
        return
    nothing = read.extra["resident_before"] == 0
    assert (read.extra["state"], read.extra["state_proved"]) == ("cold" if nothing else "unknown", nothing)


def test_the_server_drops_its_cache_once_for_all_nodes_and_while_none_reads(
    tmp_path: Path, two_nodes: list[str]
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    drop = f"echo dropped | cat >> {tmp_path}/drops"  # a shell's
    out = tmp_path / "r.jsonl"
    words = ("read", *SMALL, "--streams", "1", "--states", "after_drop", "--drop-server", drop, "--out", out)
    done = storage(*words, *two_nodes, folder=place)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "drops").read_text() == "dropped\n"
    assert len(records.read(out)) == 2


@pytest.mark.parametrize("ended", ["its time is over", "Ctrl-C"])
def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path, ended: str) -> None:
    place, child = tmp_path / "place", tmp_path / "child"
    place.mkdir()
    if not is_disk(place):
        pytest.skip("the tests' folder is in memory, where no server's cache is dropped")
    drop = f"sleep 1000 & echo $! > {child}.draft && mv {child}.draft {child}; wait"
    limit = "5" if ended == "its time is over" else "900"
    words = (
        "read",
        *SMALL,
        "--streams",
        "1",
        "--drop-server",
        drop,
        "--limit",
        limit,
        "--states",
        "after_drop",
    )
    command = [*PEERWAY, "storage", str(place), *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as measuring:
        while not child.exists():
            assert measuring.poll() is None, measuring.communicate()[1]
            time.sleep(0.02)
        lives_on = os.pidfd_open(int(child.read_text()))
        if ended == "Ctrl-C":
            measuring.send_signal(signal.SIGINT)
        _, errors = measuring.communicate()
    assert ended == "Ctrl-C" or "--drop-server did not end within 5 s" in errors
    try:
        assert select.select([lives_on], [], [], LIMIT)[0], errors
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(lives_on, signal.SIGKILL)
        os.close(lives_on)


def test_nodes_measure_together_and_read_each_others_files(tmp_path: Path, two_nodes: list[str]) -> None:
    place = tmp_path / "place"
    place.mkdir()
    out = tmp_path / "r.jsonl"
    done = storage("write", "read", *SMALL, "--streams", "1", "--out", out, *two_nodes, folder=place)
    assert done.returncode == 0, done.stderr
    measured = records.read(out)
    assert sum(r.test == "file_write_bw" for r in measured) == 2
    assert all(r.validated and r.extra["nodes"] == 2 for r in measured)
    elsewhere = [
        r
        for r in measured
        if "warm_elsewhere" in str(r.extra.get("state_proof")) or "warm_elsewhere" in r.test
    ]
    assert len(elsewhere) == 2  # here both nodes have one page cache, which the evidence shows
    assert {r.test for r in elsewhere} <= {"file_read_warm_elsewhere_bw", "file_read_unknown_bw"}
    assert list(place.iterdir()) == []


def test_nodes_write_and_read_their_parts_of_one_file(tmp_path: Path, two_nodes: list[str]) -> None:
    place = tmp_path / "place"
    place.mkdir()
    out = tmp_path / "r.jsonl"
    done = storage("shared", *SMALL, "--streams", "2", "--out", out, *two_nodes, folder=place)
    assert done.returncode == 0, done.stderr
    shared = [r for r in records.read(out) if r.shape == "shared by 2 nodes 256 KiB"]
    assert all(r.validated and r.extra["nodes"] == 2 for r in shared)
    # A record of each node's part, and one of the whole file, which took as long as its slowest part.
    written = [r for r in shared if r.op == "write"]
    assert sorted(r.ranks for r in written) == [2, 2, 4]
    assert {r.bytes for r in written} == {2 << 20}
    assert max(r.p50_us for r in written if r.ranks == 2) == next(r.p50_us for r in written if r.ranks == 4)
    reads = [r for r in shared if r.op == "read"]
    assert sorted(r.ranks for r in reads if r.test == "file_read_warm_here_bw") == [2, 2, 4]
    assert all("state_proved" in r.extra for r in reads)
    states = {r.extra.get("state_wanted", r.extra["state"]) for r in reads}
    assert states >= {"warm_here"}
    for state in states:
        each = [r for r in reads if r.extra.get("state_wanted", r.extra["state"]) == state]
        (whole,) = (r for r in each if r.ranks == 4)
        assert whole.extra["state_proved"] == all(r.extra["state_proved"] for r in each if r.ranks == 2)
    # Beside it, a file for each stream.
    assert [r.ranks for r in records.read(out) if r.shape == "sequential 256 KiB" and r.op == "write"] == [
        2,
        2,
    ]
    assert list(place.iterdir()) == []


def test_parts_of_one_file_are_compared_with_what_each_node_wrote(tmp_path: Path) -> None:
    folder = RunFolder.make(tmp_path, 10)
    words = {
        "size": 1 << 20,
        "block": 1 << 16,
        "streams": 2,
        "depth": 4,
        "direct": 0,
        "fsync": 0,
        "shared": 1,
    }
    begun: list[int] = []
    path = folder.prefix("w1s")
    for first, seed in ((2, 6), (0, 5)):
        operate("write", 10, lambda: begun.append(1), path=path, first=first, parts=4, seed=seed, **words)
    assert len(begun) == 2  # each said that it was ready, and waited
    for first, seed in ((0, 5), (2, 6)):
        assert (
            operate("verify", 10, path=path, first=first, parts=4, seed=seed, overwritten=0, **words)["wrong"]
            == 0
        )
    assert operate("verify", 10, path=path, first=0, parts=4, seed=6, overwritten=0, **words)["wrong"] == 32
    part = operate("residency", 10, path=f"{path}.0", offset=2 << 20, length=2 << 20)
    assert part["size"] == 2 << 20
    assert part["resident"] <= 2 << 20
    with pytest.raises(OperationFailed, match="No such file"):
        operate("read", 10, lambda: begun.append(1), path=folder.prefix("none"), seed=1, **words)
    assert len(begun) == 3  # also where it fails, so that other nodes do not wait for it
    folder.remove()


def test_where_one_node_cannot_write_there_is_no_shared_file(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    out = tmp_path / "r.jsonl"
    agent = tmp_path / "agent"
    # The kernel kills what writes more than so much to a file.
    agent.write_text('#!/bin/sh\nif [ "$1" = beta ]; then ulimit -f 1024; fi\nshift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    hosts = ("--hosts", "alpha,beta", "--launch-agent", agent)
    done = storage("shared", *SMALL, "--streams", "1", "--out", out, *hosts, folder=place)
    assert done.returncode == 0, done.stderr
    assert "write by posix (1 stream of 2 MiB, one shared file of 2 nodes, buffered, " in done.stderr
    written = [r for r in records.read(out) if r.op == "write"]
    assert [r.shape for r in written] == ["sequential 256 KiB"]  # the other node's
    assert not any("shared" in r.shape for r in records.read(out))
    assert list(place.iterdir()) == []
