"""Results of other tools become records. storage_samples holds outputs as their documentation shows them, and
two of fio 3.33 itself.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from peerway_common.cli import command as peerway
from peerway_measure import records
from peerway_measure.storage.imports import BadResult, read

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
    record = next(r for r in read(SAMPLES / file, "v100").records if (r.via, r.test) == (via, test))
    assert (record.shape, record.bytes, record.ranks) == (shape, size, streams)
    assert (record.messages_per_s if test.endswith("_mr") else record.bandwidth_MBps) == pytest.approx(
        rate, rel=1e-5
    )
    assert record.extra["node_type"] == "v100"
    assert not record.validated
    assert record.extra.get("state") == ("unknown" if record.op == "read" else None)
    assert records.parse(record.as_json()) == record


def test_each_repetition_is_a_record() -> None:
    assert [r.op for r in read(SAMPLES / "ior.json").records] == ["write", "read", "write"]
    assert {r.host for r in read(SAMPLES / "ior.json").records} == {"node07"}


def test_fio_itself() -> None:
    written = read(SAMPLES / "fio.json").records
    raw = json.loads((SAMPLES / "fio.json").read_text())
    assert [(r.test, r.shape, r.bytes) for r in written] == [("file_write_bw", "sequential 256 KiB", 8 << 20)]
    assert written[0].bandwidth_MBps == pytest.approx(raw["jobs"][0]["write"]["bw_bytes"] / 1e6, rel=0.01)
    random = read(SAMPLES / "fio_random.json").records
    assert [(r.test, r.shape, r.bytes, r.iterations) for r in random] == [
        ("file_random_read_latency", "random 4 KiB direct", 4096, 256)
    ]
    assert random[0].p99_us >= random[0].p50_us > 1


IOR_READ = '"bwMiB": 8192.0'
# A sample, what of it is replaced by what, and the line and the reason of the row that is left out; empty
# where the row is good.
ROWS = [
    ("ior.txt", "3200.00 ", "-nan    ", "line 24: bw(MiB/s) is -nan, not a number"),
    ("ior.txt", "3200.00 ", "-       ", "line 24: bw(MiB/s) is -, not a number"),
    ("ior.txt", "3200.00 ", "inf     ", "line 24: bw(MiB/s) is inf, not a number"),
    ("ior.txt", "3200.00 ", "0.00    ", "line 24: bw(MiB/s) is 0.00, which is not a measurement"),
    ("ior.txt", "0.020000 ", "nan      ", "line 24: total(s) is nan, not a number"),
    ("ior.txt", "3200.00 ", "", "line 24: 10 values, where the table has 11 columns"),
    ("ior.txt", "3200.00 ", "3.2e+03 ", ""),
    ("ior.txt", "\nread ", "\nior WARNING: inconsistent file size by different tasks.\nread ", ""),
    ("ior.txt", "\nread ", "\nremove    -  -  -  16384  1024.00  0.0  -  0.0  0.2  0\nread ", ""),
    ("ior.json", IOR_READ, '"bwMiB": NaN', "line 6, row 2: bwMiB is nan, not a number"),
    ("ior.json", IOR_READ, '"bwMiB": -nan', "line 6, row 2: bwMiB is nan, not a number"),
    ("ior.json", IOR_READ, '"bwMiB": -', "line 6, row 2: bwMiB is nan, not a number"),
    ("ior.json", IOR_READ, '"bwMiB": inf', "line 6, row 2: bwMiB is nan, not a number"),
    ("ior.json", IOR_READ, '"bwMiB": null', "line 6, row 2: bwMiB is missing, not a number"),
    ("ior.json", IOR_READ, '"bw": 8192.0', "line 6, row 2: it has no 'bwMiB'"),
    ("ior.json", IOR_READ, '"bwMiB": 8.192e3', ""),
    ("ior.json", '"Command line"', '"command line"', ""),
    ("mdtest.txt", " 7000.000", " -nan", "line 16: the mean is -nan, not a number"),
    ("mdtest.txt", " 8000.000", " -", "line 16: the maximum is -, not a number"),
    ("mdtest.txt", " 7000.000", " 7e+03", ""),
    ("elbencho.csv", ",1000,", ",-,", "line 2: time ms [last] is -, not a number"),
    ("elbencho.csv", ",1000,", ",,", "line 2: time ms [last] is missing, not a number"),
    ("elbencho.csv", ",1000,", ",1e+03,", ""),
    ("elbencho.csv", ",2048,", ",-nan,", "line 2: MiB [last] is -nan, not a number"),
    (
        "elbencho.json",
        '"time ms [last]": "2000"',
        '"time ms [last]": "inf"',
        "line 1, row 1: time ms [last] is inf",
    ),
    ("fio.json", '"runtime": 8,', '"runtime": -nan,', "line 7, row 2: job seq, write: runtime is nan"),
    ("fio.json", '"256k"', '"256q"', "line 7, row 2: job seq, write: the block size '256q'"),
    ("gdsio.txt", "time 2.000000", "time -nan", "line 1: total_time is -nan, not a number"),
    ("gdsio.txt", " Threads: 4", "", "line 1: it does not have the fields"),
]


@pytest.mark.parametrize(("file", "old", "new", "omitted"), ROWS)
def test_a_row_that_is_no_measurement_is_named_and_the_others_are_kept(
    file: str, old: str, new: str, omitted: str, tmp_path: Path
) -> None:
    text = (SAMPLES / file).read_text()
    changed = tmp_path / file
    changed.write_text(text.replace(old, new, 1))
    assert changed.read_text() != text
    all_rows = read(SAMPLES / file).records
    if len(all_rows) == 1 and omitted:
        with pytest.raises(BadResult, match=re.escape(omitted)):
            read(changed)
        return
    rows = read(changed)
    assert len(rows.records) == len(all_rows) - bool(omitted)
    assert len(rows.omitted) == bool(omitted)
    assert all(reason.startswith(omitted) for reason in rows.omitted)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ('"bs": "1048576"', "sequential 1 MiB"),
        ('"bs": "1m,2MiB"', "sequential 2 MiB"),
        ('"bs": ",64k"', "sequential 64 KiB"),
        ('"bs": "64k,"', "sequential 4 KiB"),
        ('"blocksize": "1m"', "sequential 1 MiB"),
        ('"bsrange": "4k-1m"', "sequential 4 KiB to 1 MiB"),
        ('"bsrange": "4k-1m,8k-2m"', "sequential 8 KiB to 2 MiB"),
        ('"bssplit": "4k/10:64k/50:32k/"', "sequential 4 KiB to 64 KiB"),
        ('"bs": "1k", "kb_base": "1000"', "sequential 1000 B"),
    ],
)
def test_the_block_of_fio_is_what_its_options_say(options: str, shape: str, tmp_path: Path) -> None:
    file = tmp_path / "fio.json"
    file.write_text((SAMPLES / "fio.json").read_text().replace('"bs": "256k"', options))
    assert [record.shape for record in read(file).records] == [shape]


def test_repetitions_of_ior_have_the_bytes_of_their_run(tmp_path: Path) -> None:
    """Their rates and times are rounded: 6 decimals below 1, 2 below 3600, none above."""
    text = (SAMPLES / "ior.txt").read_text().partition("write     1280")[0]
    tail = "0.000100  0.04  0.000100"
    for rate, seconds in (("4258", "0.015030"), ("3999", "0.02"), ("61.54", "1.04"), ("7293", "8.8e-03")):
        text += f"write  {rate}  {rate}  0.001  16384  1024.00  {tail}  {seconds}  0\n"
    text += (
        f"write  4000  4000  0.001  16384  1024.00  {tail}  0.008000  0\n"  # it ended at half of the bytes
    )
    (tmp_path / "ior.txt").write_text(text)
    measured = read(tmp_path / "ior.txt").records
    assert {record.bytes for record in measured} == {16 << 20}
    assert [round(record.bandwidth_MBps / 1.048576, 2) for record in measured] == [
        4258,
        3999,
        61.54,
        7293,
        4000,
    ]
    assert [record.extra.get("moved_bytes") for record in measured] == [None] * 4 + [8 << 20]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is not a result of IOR, mdtest"),
        ("{}", "it is not a result of"),
        (
            '{"fio version": "fio-3.33", "jobs": [{"read": {}}]}',
            "no row of it can be a record: line 1, row 1: job , read: it has no 'total_ios'",
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
            "no row of it can be a record: line 1, row 1: it has no 'blockKiB'",
        ),
        ("\x00\xff" * 1000, "it is not a result of"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "x"
    file.write_text(text)
    with pytest.raises(BadResult, match=says):
        read(file)


def test_the_command_line_says_that_rows_were_left_out(tmp_path: Path) -> None:
    bad, out = tmp_path / "ior.txt", tmp_path / "r.jsonl"
    bad.write_text((SAMPLES / "ior.txt").read_text().replace("3200.00 ", "-nan    "))
    good = str(SAMPLES / "gdsio.txt")
    done = CliRunner().invoke(peerway, ["storage", "import", str(bad), good, "--out", str(out)])
    assert done.exit_code == 1
    assert f"{bad}: left out line 24: bw(MiB/s) is -nan" in done.output
    assert "1 row left out of 4" in done.output
    assert len(records.read(out)) == 3


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
