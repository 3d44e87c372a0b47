"""Files that somebody else wrote: whatever is in them, a verb shows it as text or refuses it in one line that
names the file, the line and the field; and never takes more memory or time than it says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from synthetic_records import record

from peerway_common.cli import command as peerway
from peerway_common.printable import json_text, printable
from peerway_measure import records
from peerway_measure.report.figures import bars
from peerway_measure.report.pairs import heat_maps
from peerway_measure.report.styles import styles
from peerway_trace.curve import of_records

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("common", "library/python", "nic", "measure", "trace", "xacc", "jobs")
EVIL = "\x1b]0;mine\x07[red]\u202e\ud800\x9b2J\nfake <b>"
SHOWN = r"\x1b]0;mine\x07[red]\u202e\ud800\x9b2J\nfake <b>"
NAMES = ("via", "shape", "source", "target", "device", "version", "command")
BASE = json.loads(record().as_json())


def line(**changed: object) -> str:
    return json.dumps(BASE | changed) + "\n"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(peerway, [str(word) for word in words])


def obeyed(text: str) -> set[str]:
    """What a terminal would not just show."""
    return {c for c in text if not c.isprintable() and c != "\n"}


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.output.count("\n") == 1, result.output
    assert not obeyed(result.output)
    for word in words:
        assert word in result.output


@pytest.fixture
def evil(tmp_path: Path) -> tuple[Path, Path]:
    """Two files with the same names, which differ in their host and in what they keep in extra."""
    files = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    for file, host in zip(files, (EVIL, EVIL + "2"), strict=True):
        names = dict.fromkeys(NAMES, EVIL)
        file.write_text(line(**names, host=host, driver=host, extra={"chosen": EVIL, EVIL: host}))
    return files


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("µs → 5 – 6", "µs → 5 – 6"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("a\u202eb\u2066", r"a\u202eb\u2066"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
        ("a\nb\tc", r"a\nb\tc"),
    ],
)
def test_what_a_terminal_obeys_becomes_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text, lines=True) == shown.replace(r"\n", "\n")
    assert json.loads(json_text({"a": text})) == {"a": text}
    assert not obeyed(json_text({"a": text}, indent=1))


@pytest.mark.parametrize("options", [(), ("--by", "device"), ("--factor", "host"), ("--format", "json")])
def test_names_in_a_comparison_are_only_text(evil: tuple[Path, Path], options: tuple[str, ...]) -> None:
    result = invoke("compare", *evil, *options)
    assert result.exit_code == 0, result.exception
    assert not obeyed(result.output)
    folded = "".join(result.output.split())
    assert "".join((SHOWN if "json" not in options else SHOWN.replace("\\", "\\\\")).split()) in folded


def test_names_in_a_report_are_only_text(evil: tuple[Path, Path], tmp_path: Path) -> None:
    result = invoke("report", *evil, "-o", tmp_path / "page.html")
    assert result.exit_code == 0, result.exception
    page = (tmp_path / "page.html").read_text()
    drawn = page[: page.index("<script>")]
    assert not obeyed(drawn)
    assert "fake &lt;b&gt;" in drawn
    assert "fake <b>" not in drawn


def test_nothing_prints_past_the_one_printer() -> None:
    """Rich's own console obeys markup and passes escape sequences on; peerway_common.console's does not."""
    counts = Counter(
        str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if "tests" not in file.parts
        for _ in re.findall(r"click\.echo\(|(?<!\w)Console\(", file.read_text())
    )
    shared = "common/peerway_common"  # the one printer; errors, which import no rich
    assert counts == {f"{shared}/terminal.py": 1, f"{shared}/cli/__init__.py": 4}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("p50_us", 1e308),
        ("p50_us", 1e-320),
        ("p99_us", 10**400),
        ("mean_us", -1.0),
        ("min_us", 1e13),
        ("bandwidth_MBps", 1e308),
        ("messages_per_s", 1e18),
        ("cpu_percent", 1e9),
        ("bytes", 10**30),
        ("time", "2026-11-21\x1b09:30:00+00:00"),
        ("via", ["x"] * 10000),
    ],
)
@pytest.mark.parametrize("verb", ["compare", "report"])
def test_what_cannot_be_is_refused_with_file_line_and_field(
    tmp_path: Path, verb: str, field: str, value: object
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(line() + line(**{field: value}))
    words = [file, file] if verb == "compare" else [file, "-o", tmp_path / "page.html"]
    refused(invoke(verb, *words), f"{file}:2: field '{field}' is ")


def test_an_endless_line_and_an_endless_file_are_refused_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(
        invoke("compare", "/dev/zero", "/dev/zero"), "/dev/zero:1: the line is longer than 1,048,576 bytes"
    )
    monkeypatch.setattr(records, "MOST_BYTES", 1000)
    file = tmp_path / "records.jsonl"
    file.write_text(line() * 3)
    refused(invoke("compare", file, file), f"{file}:3: ", "more than 1,000 bytes together")


def test_a_lone_surrogate_is_kept_when_a_record_is_written_again(tmp_path: Path) -> None:
    records.write(tmp_path / "a.jsonl", [record(host=EVIL)])
    records.append(tmp_path / "a.jsonl", record(host=EVIL))
    assert [r.host for r in records.read(tmp_path / "a.jsonl")] == [EVIL, EVIL]


@pytest.mark.parametrize(
    "table",
    [
        '{"costs": [[]], "splits": []}',
        '{"costs": [{"line": [[1e400, 1, 1, 1]], "pair": "a->b"}], "splits": []}',
        f'{{"costs": [{{"line": [[1, 1, 1, {10**400}]], "pair": "a->b"}}], "splits": []}}',
        '{"costs": [{"points": [[1, NaN]], "op": "put", "pair": "a->b"}], "splits": []}',
        '{"costs": [], "splits": [{"points": [[1, 1]], "pair": "a->b", "parts": 3}]}',
        '{"costs": {}}',
        "[" * 100_000,
        "\x1b[2J",
        "x" * (17 << 20),
    ],
)
def test_a_route_table_that_cannot_be_is_refused(tmp_path: Path, table: str) -> None:
    file = tmp_path / "table.json"
    file.write_text(table.replace("{", '{"format": "peerway route table", ', 1))
    (tmp_path / "records.jsonl").write_text(line())
    page = tmp_path / "page.html"
    refused(invoke("report", tmp_path / "records.jsonl", "--table", file, "-o", page), str(file))
    assert not page.exists()


def test_too_many_records_of_one_group_are_refused_with_their_count(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(line() * 10_001)
    refused(invoke("compare", file, file), "10,001 runs of one group (test put_latency")


class Counted(str):
    """A name that counts how often it is compared with another."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return str.__eq__(self, other)


def test_many_values_of_via_are_looked_at_once_each() -> None:
    several = [record(via=Counted(f"path {i}"), bytes=8) for i in range(500)]
    looks: Any = styles(several)
    Counted.compared = 0
    assert len(bars(several, looks)["data"]) == 500
    assert Counted.compared < 20 * 500


def test_a_map_of_more_devices_than_a_page_holds_is_left_out_and_said() -> None:
    many = [record(source=f"cuda:{i}", target=f"cuda:{i + 1}") for i in range(600)]
    few = [record(test="put_bw", source=f"cuda:{i}") for i in ("9" * 5000, "²", 2, 10)]
    maps, omitted = heat_maps([*many, *few])
    assert [m["name"] for m in maps] == ["put_bw · contiguous"]
    assert maps[0]["sources"] == ["cuda:2", "cuda:10", f"cuda:{'9' * 5000}", "cuda:²"]
    counts = "600 sources, 600 targets and 1 sizes are 360,000 cells; a page holds 250,000"
    assert omitted == [f"put_latency · contiguous: {counts}"]


def test_output_that_takes_no_more_ends_in_no_traceback(evil: tuple[Path, Path]) -> None:
    words = [sys.executable, "-m", "peerway", "compare", *map(str, evil)]
    done = subprocess.run(words, capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\xb7" in done.stdout  # the point between names
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        b"peerway: cannot write to standard output: No space left on device\n",
    )
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")  # as click has it


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "serve", "--data", "FOLDER", "--oidc", "FILE"),
        ("jobs", "serve", "--data", "FOLDER", "--mail", "FILE"),
        ("jobs", "notices", "--data", "FOLDER", "--mail", "FILE"),
        ("jobs", "replay", "--data", "FOLDER", "--rules", "FILE"),
        ("jobs", "agent", "--settings", "FILE"),
        ("run", "-n", "1", "--hostfile", "FILE", "--", "true"),
        ("campaign", "status", "FOLDER"),
    ],
    ids=" ".join,
)
def test_a_text_that_is_not_utf_8_is_refused_with_its_file_and_line(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = tmp_path / "campaign.toml"
    file.write_bytes('a = "b"\nc = "Köln"\n'.encode("latin-1"))
    places = {"FILE": file, "FOLDER": tmp_path}
    outcome = invoke(*(places.get(word, word) for word in words))
    assert outcome.exit_code in (1, 2)
    assert isinstance(outcome.exception, SystemExit), outcome.exception
    assert f"{file}:2: the byte 0xf6 is not UTF-8; save the file as text in UTF-8" in outcome.output


def test_records_for_curves_that_are_not_utf_8_are_refused_with_their_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "bench.jsonl"
    file.write_bytes(line().encode() + b"\xff\n")
    with pytest.raises(ValueError, match=f"{file}:2: the byte 0xff is not UTF-8"):
        of_records(file)
