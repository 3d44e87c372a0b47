"""What a change is worth: the model's known answers, its decisions as tables, and the published example."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import exp, expm1, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from synthetic_records import record

from peerway_common.cli import command as peerway
from peerway_measure import records
from peerway_measure.records import Record
from peerway_measure.worth.assumptions import KINDS, Assumptions, Choices, parse
from peerway_measure.worth.hours import worth
from peerway_measure.worth.model import Inputs, gains
from peerway_measure.worth.shares import Share, Stated, Traces, Transfer
from peerway_measure.worth.speedups import SpeedUp, match, speedups
from peerway_measure.worth.usage import Accounts, read

YEAR = "2025-01-01,2026-01-01"
NONE = Inputs(None, {}, {})


def rounds(us: float, kind: str = "a100", number: int = 12, **fields: Any) -> list[Record]:
    """A side of a campaign with a spread of a per cent."""
    several = []
    for i in range(number):
        time = us * (1 + 0.01 * ((i * 7) % 8 - 3.5) / 3.5)
        times = dict.fromkeys(("p50_us", "p99_us", "min_us", "mean_us"), time)
        extra = {"run": f"r{i}", "round": i, "node_type": kind}
        rate = {"bandwidth_MBps": fields.get("bytes", 8) / time}
        several.append(record(**(times | rate | {"host": "n1", "extra": extra} | fields)))
    return several


def run(*words: object) -> str:
    done = CliRunner().invoke(peerway, ["worth", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words: object) -> str:
    done = CliRunner().invoke(peerway, ["worth", *map(str, words)])
    assert done.exit_code == 2, done.output
    return done.output


def file(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


# The published example: software 3 % faster is 37,000 GPU-hours a year, of the 1,233,333 that follow from it.
# 365 of the 365.25 days of a year are accounted.
ALLOCATED = f"{37_000 / 0.03 * 365 / 365.25:.3f}"


def accounts(folder: Path, *rows: str) -> Path:
    return file(folder, "usage.csv", "application,node_type,from,to,gpu_hours", *rows)


@pytest.mark.parametrize(
    ("column", "freed"), [("less_time", 37_000), ("faster", 37_000 / 0.03 * (1 - 1 / 1.03))]
)
def test_the_published_example_from_stated_figures(tmp_path: Path, column: str, freed: float) -> None:
    usage = accounts(tmp_path, f"software,v100,{YEAR},{ALLOCATED}")
    stated = file(tmp_path, "stated.csv", f"application,node_type,{column},low,high", "software,,3,2,4")
    answer = json.loads(run("--usage", usage, "--stated", stated, "--json"))
    assert answer["total"]["hours"] == pytest.approx(1_233_333, abs=1)
    assert answer["total"]["freed"] == pytest.approx(freed, abs=1)
    low, high = answer["total"]["freed_interval"]
    less = [0.02, 0.04] if column == "less_time" else [1 - 1 / 1.02, 1 - 1 / 1.04]
    assert [low, high] == pytest.approx([1_233_333 * share for share in less], rel=0.01)


def test_the_published_example_from_a_campaign(tmp_path: Path) -> None:
    """The application itself was measured before and after: its whole run time changes as that test did."""
    fields = {"test": "lqcd_iteration", "op": "solve", "via": "peerway", "shape": "16", "bytes": 0}
    files = []
    for name, us in (("before", 1e6), ("after", 0.97e6)):
        files.append(tmp_path / f"{name}.jsonl")
        records.write(files[-1], rounds(us, "v100", **fields))
    usage = accounts(tmp_path, f"software,v100,{YEAR},{ALLOCATED}")
    shares = file(
        tmp_path,
        "shares.csv",
        "application,trace,test,path,bytes,share",
        "software,none,lqcd_iteration,peerway,,1",
    )
    words = ["--usage", usage, "--shares", shares, "--before", files[0], "--after", files[1]]
    total = json.loads(run(*words, "--assume", "one-trace=exact", "--json"))["total"]
    assert total["freed"] == pytest.approx(37_000, rel=0.02)
    assert total["freed_interval"][0] < 37_000 < total["freed_interval"][1]
    assert (
        json.loads(run(*words, "--json"))["total"]["freed_interval"] is None
    )  # one trace: how sure is unknown


def known(
    test: str, size: int, ratio: float, kind: str = "a100", path: str = "peer/copy", **more: Any
) -> SpeedUp:
    transfer = Transfer(
        test,
        path,
        size,
        *(
            more.get(n, d)
            for n, d in (("ranks", 2), ("shape", "contiguous"), ("source", "host"), ("target", "host"))
        ),
    )
    return SpeedUp(kind, transfer, log(ratio), log(ratio), log(ratio), more.get("problem", ""))


LATENCIES = [known("put_latency", 1024, 1.0), known("put_latency", 4096, 4.0)]
PUT = Transfer("put", "peer/copy", 2048)


@pytest.mark.parametrize(
    ("transfer", "measured", "assumed", "expected"),
    [
        (PUT, LATENCIES, (), 2.0),  # between two sizes, on logarithmic scales
        (Transfer("put", "peer/copy", 4096), LATENCIES, (), 4.0),
        (Transfer("put", "peer/copy", 8192), LATENCIES, (), 4.0),  # twice the largest
        (Transfer("put", "peer/copy", 512), LATENCIES, (), 1.0),
        (
            Transfer("put", "peer/copy", 8193),
            LATENCIES,
            (),
            "lies beyond the sizes that were measured (1 KiB, 4",
        ),
        (Transfer("put", "peer/copy", 8193), LATENCIES, ("sizes=nearest",), 4.0),
        (PUT, LATENCIES, ("sizes=exact",), "was not measured at 2 KiB"),
        (PUT, [*LATENCIES, known("put_bw", 2048, 3.0)], (), 2.0),  # a message alone: the latency
        (PUT, [known("put_bw", 2048, 3.0)], (), 3.0),
        (Transfer("put_bw", "peer/copy", 2048), [*LATENCIES, known("put_bw", 2048, 3.0)], (), 3.0),
        (
            PUT,
            [known("put_latency", 2048, 2.0, "v100")],
            (),
            "no speed-up of put by peer/copy on a100 (only on v1",
        ),
        (
            PUT,
            [known("put_latency", 2048, 2.0, path="staged")],
            (),
            "no speed-up of put by peer/copy on a100",
        ),
        (PUT, [*LATENCIES, known("put_latency", 2048, 9.0, shape="2048/4")], (), 2.0),  # contiguous
        (
            PUT,
            [*LATENCIES, known("put_latency", 2048, 9.0, ranks=8)],
            (),
            "with several values of ranks (2, 8)",
        ),
        (
            Transfer("put", "peer/copy", 2048, ranks=8),
            [*LATENCIES, known("put_latency", 2048, 9.0, ranks=8)],
            (),
            9.0,
        ),
        (
            PUT,
            [known("put_latency", 2048, 1.0, problem="2 runs on a side are too few")],
            (),
            "2 runs on a side",
        ),
    ],
)
def test_which_speed_up_a_transfer_has(
    transfer: Transfer, measured: list[SpeedUp], assumed: tuple[str, ...], expected: float | str
) -> None:
    matched = match(transfer, "a100", measured, parse(assumed))
    if isinstance(expected, str):
        assert expected in matched.problem
        assert not matched.parts
    else:
        assert matched.problem == ""
        assert exp(matched.value) == pytest.approx(expected)


def gain_of(traces: Traces, measured: Sequence[SpeedUp] | None, *assumed: str, kind: str = "a100") -> Any:
    inputs = Inputs(measured, {("heat", kind): traces}, {})
    return gains([("heat", "a100")], inputs, parse(assumed))["heat", "a100"]


def half(share: float, waiting: float = 0.0) -> list[Share]:
    """A trace with this share of its time in a transfer that becomes twice as fast."""
    return [Share(Transfer("put", "peer/copy", 2048), share, waiting)]


OTHER = Share(Transfer("send", "openmpi", 64), 0.02)


@pytest.mark.parametrize(
    ("traces", "measured", "assumed", "expected"),
    [
        ({"a": half(0.2)}, LATENCIES, (), 0.1),
        ({"a": half(0.2), "b": half(0.4)}, LATENCIES, (), 0.15),
        ({"a": half(0.2), "b": []}, LATENCIES, (), 0.05),  # a trace without transfers counts, too
        ({"a": half(0.2, 0.1)}, LATENCIES, (), 0.1),
        ({"a": half(0.2, 0.1)}, LATENCIES, ("waits=shrink",), 0.15),
        ({"a": half(0.2)}, [known("put_latency", 2048, 0.5)], (), -0.2),  # twice the time: a loss
        (
            {"a": [*half(0.2), OTHER]},
            LATENCIES,
            (),
            "no speed-up of send by openmpi on a100 (2 % of its time)",
        ),
        ({"a": [*half(0.2), OTHER]}, LATENCIES, ("unmeasured=2",), 0.1),
        ({"a": half(0.2)}, None, (), "no records of before and after"),
    ],
)
def test_the_share_of_the_run_time_that_is_saved(
    traces: Traces, measured: list[SpeedUp] | None, assumed: tuple[str, ...], expected: float | str
) -> None:
    gain = gain_of(traces, measured, *assumed)
    if isinstance(expected, str):
        assert gain.value is None
        assert expected in gain.problem
        assert gain.commands
    else:
        assert gain.value == pytest.approx(expected)
        assert (gain.draws is None) == (len(traces) == 1)


def test_a_trace_of_another_node_type_counts_only_if_that_is_assumed() -> None:
    traces: Traces = {"a": half(0.2)}
    assert gain_of(traces, LATENCIES, kind="v100").problem == "it was traced only on v100"
    assert gain_of(traces, LATENCIES, "traces=any-type", kind="v100").value == pytest.approx(0.1)
    assert gain_of(traces, LATENCIES, kind="").value == pytest.approx(
        0.1
    )  # a trace that stands for all types


@pytest.mark.parametrize("count", [2, 4, 10])
def test_the_interval_contains_the_truth_in_95_per_cent_of_all_cases(count: int) -> None:
    random, held, cases = np.random.default_rng(count), 0, 200
    truth = 0.3 * -expm1(-log(1.3))
    for _ in range(cases):
        estimate = log(1.3) + random.normal(0, 0.05)
        transfer = Transfer("put_latency", "peer/copy", 2048)
        measured = [SpeedUp("a100", transfer, estimate, estimate - 0.098, estimate + 0.098)]
        traces = {str(i): half(float(random.normal(0.3, 0.03))) for i in range(count)}
        low, high = np.percentile(gain_of(traces, measured).draws, (2.5, 97.5))
        held += low <= truth <= high
    # With two traces Student's distribution makes the interval wider than needed.
    assert 0.92 <= held / cases <= (0.98 if count > 2 else 1)


def test_errors_that_are_independent_make_a_narrower_interval() -> None:
    measured = [
        SpeedUp("a100", Transfer("put_latency", "peer/copy", size), log(2), log(1.5), log(2.7))
        for size in (8, 1 << 20)
    ]
    shares = [Share(Transfer("put", "peer/copy", s.transfer.bytes), 0.2) for s in measured]
    traces: Traces = {"a": shares, "b": shares}
    together, alone = (gain_of(traces, measured, *words).draws for words in ((), ("errors=independent",)))
    assert alone.std() == pytest.approx(together.std() / 2**0.5, rel=0.1)


def test_what_the_table_by_node_type_does_not_know_is_unknown() -> None:
    before, after = rounds(2.0), rounds(1.0)
    (faster,) = speedups(before, after, (), Assumptions())
    assert exp(faster.value) == pytest.approx(2, rel=0.02)
    assert exp(faster.low) < 2 < exp(faster.high)
    (few,) = speedups(before[:2], after[:2], (), Assumptions())
    assert "2 runs on a side are too few; measure 4 or more" in few.problem
    other = rounds(1.0, driver="580")
    (changed,) = speedups(before, other, (), Assumptions())
    assert "driver changed: none -> 580" in changed.problem
    assert not speedups(before, other, ("driver",), Assumptions())[0].problem
    assert not speedups(before, other, (), parse(("other-changes=accepted",)))[0].problem
    (same,) = speedups(before, rounds(2.0), (), Assumptions())
    assert (same.low < 0 < same.high, same.problem) == (True, "")
    (none,) = speedups(before, rounds(2.0), (), parse(("no-difference=zero",)))
    assert (none.value, none.low, none.high) == (0, 0, 0)


def usage_of(folder: Path, *rows: str) -> Accounts:
    head = "application,account,project,node_type,from,to,gpu_hours,core_hours"
    return read([file(folder, "usage.csv", head, *rows)], "gpu")


def test_hours_are_scaled_to_a_year_and_added_up(tmp_path: Path) -> None:
    usage = usage_of(
        tmp_path,
        "heat,phys,p1,a100,2026-01-01,2026-02-01,3100,0",
        "heat,phys,p1,a100,2026-02-01,2026-03-01,2800,0",
        "heat,bio,p2,v100,2026-01-01,2026-03-01,1000,0",
        ",bio,p2,a100,2026-02-01,2026-03-01,100,0",
    )
    assert usage.days == 59
    inputs = Inputs(None, {}, {("heat", ""): Stated(0.1, 0.05, 0.15)})
    year = 365.25 / 59
    answer = worth(usage, inputs, "project", Assumptions())
    assert [(row.application, row.node_type) for row in answer.rows] == [
        ("heat", "a100"),
        ("heat", "v100"),
        ("", "a100"),
    ]
    assert answer.rows[0].sum.hours == pytest.approx(5900 * year)
    assert answer.rows[0].sum.freed == pytest.approx(590 * year)
    assert answer.rows[2].gain.problem == "the usage names no application"
    assert [(s.name, s.known_hours) for s in answer.sums] == [
        ("p1", pytest.approx(5900 * year)),
        ("p2", pytest.approx(1000 * year)),
    ]
    assert answer.total.freed == pytest.approx(690 * year)
    assert answer.total.interval == pytest.approx((345 * year, 1035 * year), rel=0.02)
    left = worth(usage, inputs, "project", parse(("year=period", "used=50%"))).total
    assert (left.hours, left.freed) == (pytest.approx(7000), pytest.approx(345))
    filled = worth(usage, inputs, "project", parse(("untraced=average",)))
    assert filled.rows[2].averaged
    assert filled.total.freed == pytest.approx(700 * year)
    assert filled.total.known_hours == pytest.approx(filled.total.hours)
    assert worth(usage, inputs, "project", parse(("used=0",))).total.freed == 0


@pytest.mark.parametrize(
    ("less_time", "sentence"),
    [
        ("10,5,15", "36.5 GPU-hours a year freed, 95 % interval 18"),
        ("-10,-15,-5", "36.5 GPU-hours a year lost, 95 % interval 18"),
        ("1,-5,7", "which does not show that any are"),
        ("-1,-7,5", "which does not show that any are"),
        ("10,,", "36.5 GPU-hours a year freed, with an unknown interval"),
    ],
)
def test_the_answer_in_a_sentence(tmp_path: Path, less_time: str, sentence: str) -> None:
    usage = accounts(tmp_path, f"heat,a100,{YEAR},365")
    stated = file(tmp_path, "stated.csv", "application,node_type,less_time,low,high", f"heat,,{less_time}")
    assert sentence in run("--usage", usage, "--stated", stated)


USAGE = ("application,node_type,from,to,gpu_hours", f"heat,a100,{YEAR},1")
SHARES = ("application,trace,test,path,bytes,share", "heat,t,put,peer/copy,8,0.5")
STATED = ("application,node_type,less_time,faster,low,high", "heat,,3,,,")


@pytest.mark.parametrize(
    ("option", "lines", "message"),
    [
        ("--usage", (), "usage.csv is empty; `peerway jobs usage -o FILE` writes such a file"),
        ("--usage", USAGE[:1], "has no rows below its first line; `peerway jobs usage -o FILE` writes them"),
        (
            "--usage",
            ("application,node_type,from,to,gpu_hour", USAGE[1]),
            "1: there is no column 'gpu_hour'; did you mean gpu_hours?",
        ),
        (
            "--usage",
            ("application,from,to,gpu_hours", f"heat,{YEAR},1"),
            "1: the column node_type is missing",
        ),
        (
            "--usage",
            ("application,application,node_type,from,to,gpu_hours", f"h,h,a,{YEAR},1"),
            "the column application is there twice",
        ),
        (
            "--usage",
            (USAGE[0], f"heat,a100,{YEAR},-1"),
            "2: gpu_hours is '-1', but must be a number from 0 to 1e+12",
        ),
        ("--usage", (USAGE[0], f"heat,a100,{YEAR},nan"), "gpu_hours is 'nan', but must be a number"),
        ("--usage", (USAGE[0], f"heat,a100,{YEAR},1 000"), "gpu_hours is '1 000', but must be a number"),
        ("--usage", (USAGE[0], f"heat,a100,{YEAR},"), "gpu_hours is missing, and --resource gpu needs it"),
        (
            "--usage",
            ("application,node_type,from,to,core_hours", f"heat,a100,{YEAR},1"),
            "gpu_hours is missing",
        ),
        ("--usage", (USAGE[0], f"heat,a100,{YEAR},1,2"), "6 cells, but the first line names 5 columns"),
        (
            "--usage",
            (USAGE[0], "heat,a100,01.02.2025,2026-01-01,1"),
            "from is '01.02.2025', but must be a date such as",
        ),
        (
            "--usage",
            (USAGE[0], "heat,a100,2026-01-01,2026-01-01,1"),
            "has no day; to is the first day after the period",
        ),
        (
            "--usage",
            (*USAGE, "heat,a100,2025-12-01,2026-02-01,1"),
            "3: the period begins on 2025-12-01, before that of",
        ),
        ("--usage", (USAGE[0], f'"heat,a100,{YEAR},1'), "not CSV: unexpected end of data"),
        (
            "--shares",
            (*SHARES, "heat,t,get,peer/copy,8,0.6"),
            "3: the shares of the trace t are 1.1 together, more than the",
        ),
        (
            "--shares",
            (SHARES[0], "heat,t,put,peer/copy,8,1.5"),
            "share is '1.5', but must be a number from 0 to 1",
        ),
        (
            "--shares",
            (SHARES[0], "heat,t,put,peer/copy,8.5,0.5"),
            "bytes is '8.5', but must be a whole number",
        ),
        (
            "--shares",
            (SHARES[0], "heat,t,,peer/copy,8,0.5"),
            "2: test is empty; name put, get, send, write, other or a",
        ),
        ("--stated", (STATED[0], "heat,,3,3,,"), "2: give either less_time or faster, in per cent"),
        ("--stated", (STATED[0], "heat,,,,,"), "2: give either less_time or faster, in per cent"),
        (
            "--stated",
            (STATED[0], "heat,,101,,,"),
            "less_time is '101', but must be a number from -1000 to 100",
        ),
        (
            "--stated",
            (STATED[0], "heat,,3,,2,"),
            "give both low and high, the bounds of the interval, or neither",
        ),
        ("--stated", (STATED[0], "heat,,3,,4,5"), "3 does not lie between low (4) and high (5)"),
        (
            "--stated",
            (*STATED, "heat,,4,,,"),
            "3: this application and node type stand in an earlier line, too",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, option: str, lines: tuple[str, ...], message: str
) -> None:
    good = {"--usage": USAGE, "--shares": SHARES, "--stated": STATED}
    needed = ["--shares", file(tmp_path, "good.csv", *SHARES)] if option == "--usage" else []
    assert good[option] != lines
    path = file(tmp_path, f"{option[2:]}.csv", *lines)
    assert message in " ".join(refused(option, path, *needed).split())


def test_a_figure_is_not_counted_twice(tmp_path: Path) -> None:
    shares, stated = (file(tmp_path, f"{n}.csv", *lines) for n, lines in (("s", SHARES), ("t", STATED)))
    usage = accounts(tmp_path, f"heat,a100,{YEAR},1")
    assert "has shares and a stated figure" in refused(
        "--usage", usage, "--shares", shares, "--stated", stated
    )
    assert "is a file given twice" in refused("--usage", usage, *["--shares", shares] * 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give --shares or --stated"),
        (("--usage", "nowhere.csv", "--shares", "nowhere.csv"), "cannot read nowhere.csv: No such file"),
        (("--shares", "nowhere.csv", "--before", "nowhere"), "give both --before and --after, or neither"),
        (("--shares", "x", "--factor", "kernel"), "--factor and --node-type need --before and --after"),
        (("--shares", "x", "--assume", "size=exact"), "there is no assumption 'size'; did you mean sizes?"),
        (("--shares", "x", "--assume", "sizes"), "'sizes' has no value; write NAME=VALUE"),
        (
            ("--shares", "x", "--assume", "sizes=any"),
            "sizes is 'any', but must be within or nearest or exact",
        ),
        (
            ("--shares", "x", "--assume", "used=101"),
            "used is '101', but must be a number of per cent from 0 to 100",
        ),
        (("--shares", "x", "--assume", "used=1", "--assume", "used=2"), "used is given twice"),
    ],
)
def test_a_command_line_that_cannot_be_used_is_refused(words: tuple[str, ...], message: str) -> None:
    assert message in " ".join(refused(*words).split())


@pytest.fixture
def scene(tmp_path: Path) -> list[object]:
    """Two applications on two node types; one of them is traced on one type, twice."""
    words: list[object] = []
    for name, us in (("before", 2.0), ("after", 1.0)):
        path = tmp_path / f"{name}.jsonl"
        records.write(path, rounds(us, via="peer/copy", bytes=1024))
        words += [f"--{name}", path]
    hours = [f"{n},{t},{YEAR},100000" for n in ("heat", "lqcd") for t in ("a100", "v100")]
    words += ["--usage", accounts(tmp_path, *hours)]
    lines = [f"heat,a100,{t},put,peer/copy,1024,{s}" for t, s in (("t1", 0.2), ("t2", 0.22))]
    head = "application,node_type,trace,test,path,bytes,share"
    return [*words, "--shares", file(tmp_path, "shares.csv", head, *lines, "heat,a100,t1,other,,,0.8")]


def test_the_table_says_what_is_unknown_and_what_measures_it(scene: list[object]) -> None:
    text = run(*scene)
    assert "heat         a100                100,068          21 %" in text
    assert "75 % of the allocated hours are unknown" in text
    assert (
        "note: heat on v100 is unknown: it was traced only on a100; measure: "
        "peerway trace -o DIR -- COMMAND; "
        "peerway trace shares DIR --application heat --node-type v100 -o FILE"
    ) in text
    assert "note: lqcd on a100 is unknown: it was not traced" in text
    assert "sizes=within" in text
    any_type = run(*scene, "--assume", "traces=any-type")
    assert (
        "heat on v100 is unknown: no speed-up of put by peer/copy on v100 (only on a100) "
        "(21 % of its time); measure: peerway bench put_latency --paths peer/copy --repeat 10 --out FILE"
    ) in any_type


def test_json_has_all_figures_and_the_page_stands_alone(scene: list[object], tmp_path: Path) -> None:
    page = tmp_path / "worth.html"
    answer = json.loads(run(*scene, "--json", "--by", "node_type", "-o", page))
    assert answer["assumptions"]["sizes"] == "within"
    row = next(row for row in answer["rows"] if row["less_time"] is not None)
    assert (row["application"], row["traces"]) == ("heat", 2)
    assert row["less_time"] == pytest.approx(0.105, rel=0.02)
    assert [each["name"] for each in answer["sums"]] == ["a100", "v100"]
    assert answer["sums"][1]["freed"] is None
    html = page.read_text()
    assert html.count("<svg") == 2
    assert "heat, a100" in html
    assert "unknown: it was traced only on a100" in html
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")


def test_names_from_files_cannot_leave_their_place(tmp_path: Path) -> None:
    usage = accounts(tmp_path, f"<script>\x1b[31m,a100,{YEAR},1")
    stated = file(tmp_path, "stated.csv", "application,node_type,less_time", "<script>\x1b[31m,,3")
    page = tmp_path / "worth.html"
    text = run("--usage", usage, "--stated", stated, "-o", page)
    assert "\x1b" not in text + page.read_text()
    assert "<script" not in page.read_text()


def test_without_usage_the_shares_are_still_known(scene: list[object]) -> None:
    at = scene.index("--usage")
    text = run(*scene[:at], *scene[at + 2 :])
    assert "heat         a100                unknown          21 %  10.5 %" in text
    assert "Freed hours are unknown: --usage is missing" in text


def test_what_faster_files_are_worth(tmp_path: Path) -> None:
    fields = {
        "test": "file_write_bw",
        "op": "write",
        "via": "posix",
        "shape": "sequential 1 MiB",
        "bytes": 1 << 30,
        "ranks": 4,
        "target": "file",
    }
    words: list[object] = []
    for name, us in (("before", 1e6), ("after", 0.5e6)):
        records.write(tmp_path / f"{name}.jsonl", rounds(us, **fields))
        words += [f"--{name}", tmp_path / f"{name}.jsonl"]
    lines = [f"climate,{t},write,posix,{1 << 30},0.08" for t in ("t1", "t2")]
    words += [
        "--shares",
        file(tmp_path, "shares.csv", "application,trace,test,path,bytes,share", *lines),
        "--usage",
        accounts(tmp_path, f"climate,a100,{YEAR},100000"),
    ]
    total = json.loads(run(*words, "--json"))["total"]
    assert total["freed"] == pytest.approx(100_068 * 0.04, rel=0.02)


def test_of_very_many_applications_the_largest_are_shown(tmp_path: Path) -> None:
    usage = accounts(tmp_path, *(f"job{i},,{YEAR},{i}" for i in range(5000)), f"heat,a100,{YEAR},9999")
    stated = file(tmp_path, "stated.csv", "application,node_type,less_time", "heat,,3")
    page = tmp_path / "worth.html"
    text = run("--usage", usage, "--stated", stated, "-o", page)
    assert text.count("\n") < 150
    assert "heat" in text.splitlines()[1]
    assert "job4999      (no type)" in text
    assert "and 4961 more rows, all of them with --json" in text
    assert "and 4981 more notes, all of them with --json" in text
    assert page.stat().st_size < 1 << 16
    assert "and 4961 more rows" in page.read_text()
    assert len(json.loads(run("--usage", usage, "--stated", stated, "--json"))["rows"]) == 5001


@pytest.mark.parametrize("resource", ["gpu", "core"])
def test_the_hours_of_the_resource_count(tmp_path: Path, resource: str) -> None:
    usage = file(
        tmp_path, "u.csv", "application,node_type,from,to,gpu_hours,core_hours", f"h,a,{YEAR},365,3650"
    )
    stated = file(tmp_path, "stated.csv", *STATED[:1], "h,,10,,,")
    total = json.loads(run("--usage", usage, "--stated", stated, "--resource", resource, "--json"))["total"]
    assert total["freed"] == pytest.approx({"gpu": 36.525, "core": 365.25}[resource])


def test_the_document_lists_every_assumption_with_its_default() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "measure" / "worth.md").read_text()
    defaults = Assumptions().as_dict()
    for name, kind in KINDS.items():
        if isinstance(kind, Choices):
            for word, sentence in kind.words.items():
                default = " (default)" * (word == defaults[name])
                assert f"| `{name}={word}`{default} | {sentence} |" in page
        else:
            assert f"| `{name}=N%` (default {defaults[name]:g}%) | {kind.text.format('N %')} |" in page


def test_the_sides_may_be_folders_of_campaigns(scene: list[object], tmp_path: Path) -> None:
    words = list(scene)
    for name in ("before", "after"):
        (tmp_path / name / "results").mkdir(parents=True)
        file_of_records = tmp_path / f"{name}.jsonl"
        words[words.index(file_of_records)] = tmp_path / name
        file_of_records.rename(tmp_path / name / "results" / "test.node.0.jsonl")
    total = json.loads(run(*words, "--json"))["total"]
    assert total["freed"] == pytest.approx(0.105 * 100_068, rel=0.02)
    (tmp_path / "after" / "results" / "test.node.0.jsonl").write_text("{}\n")
    assert "after/results/test.node.0.jsonl:1: field 'test' is missing" in " ".join(refused(*words).split())
    (tmp_path / "after" / "results" / "test.node.0.jsonl").unlink()
    assert "after has no results; `peerway campaign run" in " ".join(refused(*words).split())


def test_one_side_twice_is_refused(scene: list[object], tmp_path: Path) -> None:
    words = [tmp_path / "before.jsonl" if w == tmp_path / "after.jsonl" else w for w in scene]
    assert "--before and --after are the same" in " ".join(refused(*words).split())


def test_records_without_a_node_type_get_the_one_that_is_named(scene: list[object], tmp_path: Path) -> None:
    for name, us in (("before", 2.0), ("after", 1.0)):
        plain = [replace(r, extra={"run": r.run}) for r in rounds(us, via="peer/copy", bytes=1024, number=8)]
        turn = [
            replace(r, time=f"2026-01-0{i + 1}T{'00' if name == 'before' else '12'}:00:00Z")
            for i, r in enumerate(plain)
        ]  # measured in turn
        records.write(tmp_path / f"{name}.jsonl", turn)
    assert "no speed-up of put by peer/copy on a100 (only on (no type))" in run(*scene)
    total = json.loads(run(*scene, "--node-type", "a100", "--json"))["total"]
    assert total["freed"] == pytest.approx(0.105 * 100_068, rel=0.02)
