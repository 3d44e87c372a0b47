"""Results of other tools become records. storage_samples holds outputs as their documentation shows them, and
two of fio 3.33 itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from peerway import records
from peerway.cli import command as peerway
from peerway.storage.imports import BadResult, read

SAMPLES = Path(__file__).parent / "storage_samples"
GIB = 1 << 30


# file, via, test, shape, bytes, streams, MB/s or operations a second
EXPECTED = [
    ("ior.json", "ior", "file_write_bw", "sequential 1 MiB", GIB, 8, 4096 * 1.048576),
    ("ior.json", "ior", "file_read_unknown_bw", "sequential 1 MiB", GIB, 8, 8192 * 1.048576),
    ("ior.txt", "ior", "file_write_bw", "shared 1 MiB", 16 << 20, 4, 1280 * 1.048576),
    ("mdtest.txt", "mdtest", "file_create_mr", "a folder for each stream", 0, 4, 7000),
    ("mdtest.txt", "mdtest", "folder_rename_mr", "a folder for each stream", 0, 4, 2500),
    ("elbencho.json", "elbencho", "file_write_bw", "sequential 1 MiB direct", GIB, 8, 4096 * 1.048576),
    ("elbencho.json", "elbencho", "file_stat_mr", "a folder for each stream", 0, 8, 2000),
    ("elbencho.csv", "elbencho", "file_read_unknown_bw", "random 4 KiB", GIB, 2, 2048 * 1.048576),
    ("gdsio.txt", "gds/direct", "file_read_unknown_bw", "sequential 1 MiB", 2 * GIB, 4, 4096 * 1.048576),
    ("gdsio.txt", "gds/bounce", "file_write_bw", "sequential 4 MiB", GIB, 2, 1024 * 1.048576),
]


@pytest.mark.parametrize(("file", "via", "test", "shape", "size", "streams", "rate"), EXPECTED)
def test_what_a_tool_says_is_what_the_record_says(
    file: str, via: str, test: str, shape: str, size: int, streams: int, rate: float
) -> None:
    found = next(r for r in read(SAMPLES / file, "v100") if (r.via, r.test) == (via, test))
    assert (found.shape, found.bytes, found.ranks) == (shape, size, streams)
    assert (found.messages_per_s if test.endswith("_mr") else found.bandwidth_MBps) == pytest.approx(
        rate, rel=1e-5
    )
    assert found.extra["node_type"] == "v100"
    assert not found.validated
    assert found.extra.get("state") == ("unknown" if found.op == "read" else None)
    assert records.parse(found.as_json()) == found


def test_each_repetition_is_a_record() -> None:
    assert [r.op for r in read(SAMPLES / "ior.json")] == ["write", "read", "write"]
    assert {r.host for r in read(SAMPLES / "ior.json")} == {"node07"}


def test_fio_itself() -> None:
    written = read(SAMPLES / "fio.json")
    raw = json.loads((SAMPLES / "fio.json").read_text())
    assert [(r.test, r.shape, r.bytes) for r in written] == [("file_write_bw", "sequential 256 KiB", 8 << 20)]
    assert written[0].bandwidth_MBps == pytest.approx(raw["jobs"][0]["write"]["bw_bytes"] / 1e6, rel=0.01)
    random = read(SAMPLES / "fio_random.json")
    assert [(r.test, r.shape, r.bytes, r.iterations) for r in random] == [
        ("file_random_read_latency", "random 4 KiB direct", 4096, 256)
    ]
    assert random[0].p99_us >= random[0].p50_us > 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is not a result of IOR, mdtest"),
        ("{}", "it is not a result of"),
        (
            '{"fio version": "fio-3.33", "jobs": [{"read": {}}]}',
            "looks like a result of fio, but is not complete: KeyError",
        ),
        ('{"fio version": "fio-3.33", "jobs": []}', "it is output of fio without a result"),
        ("IOR-4.0.0: MPI\napi : POSIX\nnodes : 1\n", "it is output of IOR without a result"),
        (
            "mdtest-4.0.0 was launched with 4 total task(s) on 2 node(s)\n",
            "it is output of mdtest without a result",
        ),
        (
            '{"Command line": "ior", "tests": [{"Options": {"api": "P", "nodes": 1, '
            ' "tasks": 1, "access": "x"}, '
            '"Results": '
            '[{"access": "write", "bwMiB": 1e300, "totalTime": 1e300, "xferKiB": 1}]}]}',
            "not complete: OverflowError",
        ),
        ("\x00\xff" * 1000, "it is not a result of"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "x"
    file.write_text(text)
    with pytest.raises(BadResult, match=says):
        read(file)


def test_the_command_line_imports_and_compare_takes_it(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    files = [
        str(SAMPLES / name) for name in ("ior.json", "mdtest.txt", "elbencho.json", "fio.json", "gdsio.txt")
    ]
    done = CliRunner().invoke(peerway, ["storage", "import", *files, "--out", str(out), "--node-type", "cpu"])
    assert done.exit_code == 0, done.output
    assert len(records.read(out)) == 3 + 8 + 2 + 1 + 2
    compared = CliRunner().invoke(peerway, ["compare", str(out), str(out)])
    assert compared.exit_code == 0, compared.output
    assert "file_write_bw" in compared.output
