"""The report page as text: what is in it, that records cannot inject anything, and what bad input gets."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import gzip
import hashlib
import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from synthetic_records import LINES, cube, curves, record

from peerway_common.cli import command as peerway
from peerway_common.units import bandwidth_text, size_text, time_text
from peerway_measure import records
from peerway_measure.report.axes import size_axis, tick_text, value_axis
from peerway_measure.report.choices import choices
from peerway_measure.report.headline import headline
from peerway_measure.report.page import render, together
from peerway_measure.report.routes import (
    Line,
    Span,
    TableError,
    in_words,
    read_table,
    spans_from_records,
    spans_from_table,
)
from peerway_measure.report.spread import spread_text
from peerway_measure.report.styles import styles
from peerway_measure.report.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
TABLE = {
    "format": "peerway route table", "version": 2,
    "costs": [
        {"op": "put", "shape": "contiguous", "pair": "host->host", "path": "peer/store",
         "points": [[8, 0.3], [1024, 0.4], [1 << 20, 120.0]]},
        {"op": "put", "shape": "contiguous", "pair": "host->host", "path": "peer/copy",
         "points": [[8, 1.5], [1 << 20, 75.0, 0.02]]},
    ],
    "splits": [],
}  # fmt: skip


class Elements(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def data(page: str) -> dict[str, Any]:
    text = re.search(r'<script type="application/octet-stream" id="data">(.*?)</script>', page, re.S)
    assert text
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text[1])))
    return content


def without_scripts(page: str) -> str:
    return re.sub(r"<script>.*?</script>", "", page, flags=re.S)


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., Result]:
    def invoke(some: list[records.Record], *options: str) -> Result:
        records.write(tmp_path / "in.jsonl", some)
        arguments = ["report", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "page.html"), *options]
        return CliRunner().invoke(peerway, arguments)

    return invoke


# ---- the page


def test_each_test_has_its_curves_with_every_point() -> None:
    plots = data(render([*curves()]))["plots"]
    assert len(plots) == 4  # time and bandwidth of two tests
    for plot in plots.values():
        assert {trace["meta"]["curve"] for trace in plot["data"]} == {*LINES, "route"}
        assert all(len(trace["x"]) == len(trace["y"]) == 24 for trace in plot["data"])
        assert (plot["layout"]["xaxis"]["type"], plot["layout"]["yaxis"]["type"]) == ("log", "log")


def test_repeated_records_become_one_point_of_their_median() -> None:
    several = [record(p50_us=t, min_us=0, p99_us=9, bytes=b) for t in (1, 5, 2) for b in (8, 16)]
    (trace,) = data(render(several))["plots"]["section-0-time"]["data"]
    assert trace["y"] == [2, 2]
    assert "n=3" in trace["customdata"][0]


def allowing(paths: str, time: float, **fields: Any) -> records.Record:
    """A record of a route for which the user allowed these paths; "" allows all."""
    extra = {**fields.pop("extra", {}), **({"allowed": paths} if paths else {})}
    return record(**dict.fromkeys(("p50_us", "p99_us", "min_us", "mean_us"), time), extra=extra, **fields)


def test_a_route_with_other_paths_to_choose_from_is_a_curve_of_its_own() -> None:
    """A halo by two methods was once one row with the median of both."""
    ways = {"": 0.3, "plan/slots": 0.771, "plan/straight": 0.401}
    several = [allowing(paths, time, via="plan", test="halo") for paths, time in ways.items()]
    names = ["plan", "plan (plan/slots)", "plan (plan/straight)"]
    assert list(styles(several)) == names
    assert [(row.curve, row.small, row.points) for row in summary(several, styles(several))] == [
        (name, time_text(time), 1) for name, time in zip(names, ways.values(), strict=True)
    ]
    assert [trace["meta"]["curve"] for trace in data(render(several))["plots"]["section-0-bars"]["data"]] == [
        *reversed(names)
    ]
    files = styles(together({Path("old"): several, Path("new"): several}))
    assert files["plan (plan/slots) · old"].color == files["plan (plan/slots) · new"].color


def test_the_automatic_choice_is_the_one_among_all_paths() -> None:
    """A route with fewer allowed paths is neither judged nor marked as the automatic choice."""
    free, few = (
        [allowing(paths, time, via="route", bytes=b, extra={"chosen": chosen}) for b in (8, 16)]
        for paths, time, chosen in (("", 1.0, "peer/shm"), ("staged", 4.0, "staged"))
    )
    path = [allowing("", 1.0, via="peer/shm", bytes=b) for b in (8, 16)]
    assert headline([*free, *few, *path])[0] == (
        "The automatic choice (route) is within 10 % of the fastest path at 2 of 2 points."
    )
    assert choices([*free, *few]) == [("put_latency, host to host", "peer/shm")]
    assert list(styles([*few, *path, *free])) == ["route", "route (staged)", "peer/shm"]
    pairs = [dataclasses.replace(r, target=target) for r in (*few, *free) for target in ("host", "cuda:0")]
    (heat_map,) = data(render(pairs))["maps"]
    assert heat_map["sizes"][0]["time"]["via"] == [["route", "route"]]


def test_the_three_faces_of_a_cube_have_one_scale() -> None:
    plots = data(render([*cube()]))["plots"]
    assert set(plots) == {"section-0-i", "section-0-j", "section-0-k"}
    assert len({json.dumps(plot["layout"]["yaxis"]["range"]) for plot in plots.values()}) == 1
    assert plots["section-0-k"]["data"][0]["x"] == [2, 4, 8, 16, 32, 64, 128, 256, 512]


def test_the_strip_of_a_split_is_parted() -> None:
    split = {8: "peer/copy", 16: "peer/copy 93 % + staged 7 %"}
    some = [record(via="route", bytes=size, extra={"chosen": path}) for size, path in split.items()]
    shapes = data(render(some))["plots"]["section-0-time"]["layout"]["shapes"]
    strips = [(s["name"], s["y0"] < 1.02 and s["y1"] > 1.04) for s in shapes if s["type"] == "rect"]
    assert strips == [("strip:peer/copy", True), ("strip:staged", False), ("strip:peer/copy", False)]


def test_limits_of_the_hardware_are_last_and_do_not_compete() -> None:
    some = [record(via="flag", p50_us=0.1, min_us=0.1), record(), record(via="ucx/tag"), record(via="route")]
    assert list(styles(some)) == ["route", "peer/store", "ucx/tag", "flag"]
    assert not any(row.fastest or row.widest for row in summary(some, styles(some))[-1:])


@pytest.mark.parametrize(
    ("test", "heading"),
    [("put_latency", "one way"), ("get_latency", "whole operation"), ("put_bw", "many under way")],
)
def test_a_time_is_called_what_it_is(test: str, heading: str) -> None:
    assert f"{heading} (median)" in without_scripts(render([record(test=test), record(test=test, bytes=16)]))


def test_faces_of_one_size_are_drawn_as_bars() -> None:
    faces = [record(shape=f"cube:256/{across}", via=via) for across in "ijk" for via in ("staged", "route")]
    plots = data(render(faces))["plots"]
    assert {trace["type"] for plot in plots.values() for trace in plot["data"]} == {"bar"}


def test_a_single_size_is_drawn_as_bars() -> None:
    plots = data(render([record(via="staged"), record(via="openmpi")]))["plots"]
    (plot,) = plots.values()
    assert [trace["type"] for trace in plot["data"]] == ["bar", "bar"]


def test_a_single_size_of_a_bandwidth_test_is_drawn_as_bandwidth() -> None:
    two = [record(test="put_bw", via=via, bandwidth_MBps=rate) for via, rate in (("a", 9e3), ("b", 4e3))]
    page = render(two)
    ((plot,), text) = data(page)["plots"].values(), without_scripts(page)
    assert [(trace["x"], trace["text"]) for trace in plot["data"]] == [
        ([4e3], ["4.00 GB/s"]), ([9e3], ["9.00 GB/s"]),
    ]  # fmt: skip
    assert "Bandwidth (median), 8 B" in text


@pytest.mark.parametrize(("most", "ticks"), [
    (0.2, ["0", "100 ns", "200 ns", "300 ns"]), (6.0, ["0", "2 µs", "4 µs", "6 µs", "8 µs"]),
    (900.0, ["0", "500 µs", "1 ms"]), (4.1e6, ["0", "2 s", "4 s", "6 s"]), (0.0, ["0"]),
])  # fmt: skip
def test_the_axis_of_bars_has_the_units_of_their_texts(most: float, ticks: list[str]) -> None:
    times = (("a", most), ("b", most / 2))
    two = [record(via=via, min_us=0.0, p50_us=p50, p99_us=most, mean_us=p50) for via, p50 in times]
    (plot,) = data(render(two))["plots"].values()
    assert plot["layout"]["xaxis"]["ticktext"] == ticks


def test_registering_moves_nothing_and_has_no_bandwidth() -> None:
    page = render([record(test="registration", op="register", via="cache", bytes=n) for n in (8, 1 << 24)])
    assert "B/s" not in without_scripts(page) + json.dumps(data(page))


def test_device_pairs_have_a_heat_map_with_the_route_or_the_best_path() -> None:
    pairs = [("cuda:10", "cuda:2"), ("cuda:2", "cuda:10")]
    some = [r for pair in pairs for r in curves(("put_bw",), ("staged", "peer/copy"), pair)]
    (heat_map,) = data(render(some))["maps"]
    assert heat_map["sources"] == ["cuda:2", "cuda:10"]
    last = heat_map["sizes"][-1]["bandwidth"]
    assert last["via"] == [["", "route"], ["route", ""]]
    assert last["z"][0][0] is None
    (heat_map,) = data(render([r for r in some if r.via != "route"]))["maps"]
    assert heat_map["sizes"][-1]["time"]["via"][0][1] == "peer/copy"
    assert data(render([*curves()]))["maps"] == []


def test_the_page_names_machine_commands_and_data_that_was_not_checked() -> None:
    some = [record(driver="580.65", command="peerway bench --quick"), record(host="node02", validated=False)]
    page = unescape(without_scripts(render(some)))
    for text in (
        "580.65",
        "node02",
        "synthetic cpu",
        "peerway bench --quick",
        "1 of 2 records were not validated",
    ):
        assert text in page
    assert "not validated" not in without_scripts(render([record()]))


def test_nothing_is_loaded_from_anywhere() -> None:
    page = render([*curves(), *cube()])
    elements = Elements(page).elements
    assert not [tag for tag, _ in elements if tag in ("link", "iframe", "img", "object", "embed", "base")]
    assert not [attributes for _, attributes in elements if "src" in attributes]
    assert all(str(attributes["href"]).startswith("#") for _, attributes in elements if "href" in attributes)
    assert "://" not in without_scripts(page)
    assert "@import" not in page.split("</style>")[0]
    policy = next(str(a["content"]) for _, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline' " not in policy.split("script-src")[1]


@pytest.mark.parametrize(
    "field",
    ["test", "via", "op", "shape", "source", "target", "host", "device", "driver", "version", "command"],
)
def test_no_text_of_a_record_becomes_a_tag(field: str) -> None:
    innocent, evil = record(**{field: "harmless"}), record(**{field: EVIL})
    several = [record(), record(bytes=16)]
    page, other = render([evil, *several]), render([innocent, *several])
    assert EVIL not in page
    tags = [[tag for tag, _ in Elements(text).elements] for text in (page, other)]
    assert tags[0] == tags[1]
    for plot in data(page)["plots"].values():  # plotly reads tags in texts, but never shows meta
        shown = [{name: value for name, value in trace.items() if name != "meta"} for trace in plot["data"]]
        assert "<img" not in json.dumps(shown)
    assert data(page)["plots"].keys() == data(other)["plots"].keys()


def test_a_chosen_path_in_extra_becomes_no_tag() -> None:
    some = [record(via="route", bytes=b, extra={"chosen": EVIL}) for b in (8, 16)]
    assert Elements(render(some)).count("img") == 0


# ---- routes


def test_borders_lie_between_the_sizes_that_took_different_paths() -> None:
    chosen = {8: "peer/store", 16: "peer/store", 64: "peer/copy", 256: "peer/copy"}
    some = [record(via="route", bytes=size, extra={"chosen": path}) for size, path in chosen.items()]
    spans = spans_from_records(some)
    assert spans == [Span(8, 32, "peer/store", (8, 16)), Span(32, 256, "peer/copy", (64, 256))]
    assert in_words(spans) == "peer/store to 16 B, peer/copy from 64 B"
    shapes = data(render(some))["plots"]["section-0-time"]["layout"]["shapes"]
    assert [s["x0"] for s in shapes if s["name"] == "border"] == [32]
    assert spans_from_records([record()]) == []


def test_borders_come_from_a_table_where_its_lines_cross(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(TABLE))
    lines = read_table(tmp_path / "t.json").lines
    spans = spans_from_table(lines, record(), [8, 1 << 20])
    assert [span.path for span in spans] == ["peer/store", "peer/copy"]
    border = spans[0].last
    assert lines[0].cost(border) == pytest.approx(lines[1].cost(border), rel=0.1)
    assert re.fullmatch(r"peer/store to [\d.]+ KiB, then peer/copy", in_words(spans))
    assert spans_from_table(lines, record(op="get"), [8, 1 << 20]) == []
    assert spans_from_table(lines, record(source="cuda:0"), [8, 1 << 20]) == []
    assert spans_from_table(lines, record(target="host:malloc"), [8, 1 << 20]) == []  # a class of its own
    assert spans_from_table(lines, record(source="host:malloc"), [8, 1 << 20]) == spans  # the near end


def test_a_table_with_two_kinds_of_links_gives_no_border() -> None:
    links = [
        Line("put", "contiguous", "cuda", f"cuda/{link}", "peer", ((8, 1), (16, 2)))
        for link in ("nvlink", "pcie")
    ]
    assert spans_from_table(links, record(source="cuda:0", target="cuda:1"), [8, 16]) == []


def test_a_line_goes_on_as_its_last_piece() -> None:
    line = Line("put", "contiguous", "host", "host", "peer", ((10, 1.0), (20, 2.0)))
    assert (line.cost(1), line.cost(15), line.cost(40)) == (1.0, 1.5, 4.0)


@pytest.mark.parametrize(("content", "why"), [
    ("{", "not JSON"), ("{}", "not a route table"), ('{"format": "other"}', "not a route table"),
    (json.dumps(TABLE | {"costs": [{"op": "put"}]}), r"costs\[0\] cannot be read"),
    (json.dumps(TABLE | {"costs": 7}), "cannot be read"),
    (json.dumps(TABLE | {"version": 99}), "of version 99, and this Peerway reads 2"),
])  # fmt: skip
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(TableError, match=why):
        read_table(tmp_path / "t.json")


# ---- looks


def test_a_path_looks_the_same_whatever_else_is_there() -> None:
    many = styles(record(via=f"peer/{i}") for i in range(40))
    assert len({(s.color, s.dash, s.marker) for s in many.values()}) >= 24
    several = styles(record(via=via) for via in ("openmpi", "staged", "route", "flag"))
    assert list(several) == ["route", "staged", "openmpi", "flag"]
    assert several["openmpi"].dash == "dash"
    assert several["route"].color != several["flag"].color


def test_several_files_are_several_curves_in_one_plot(tmp_path: Path) -> None:
    """Their records were once pooled into one median."""
    files = {tmp_path / "before.jsonl": [record(bytes=b, p50_us=0.4) for b in (8, 16)],
             tmp_path / "after.jsonl": [record(bytes=b) for b in (8, 16)]}  # fmt: skip
    page = render(together(files))
    plot = data(page)["plots"]["section-0-time"]
    assert {t["meta"]["curve"]: t["y"] for t in plot["data"]} == {
        "peer/store · before": [0.4, 0.4], "peer/store · after": [0.3, 0.3]
    }  # fmt: skip
    old, new = data(page)["styles"].values()
    assert old["color"] == new["color"]
    assert (old["dash"], old["marker"]) == ("dot", "circle-open")
    assert (new["dash"], new["marker"]) == ("solid", "circle")
    chips = [a for tag, a in Elements(page).elements if tag == "button"]
    assert [(a["data-kind"], a["data-name"]) for a in chips] == [
        ("file", "before"), ("file", "after"), ("via", "peer/store")
    ]  # fmt: skip
    assert "peer/store · after" in without_scripts(page).split('id="summary"')[1]


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    files = {Path(folder, "x.jsonl"): [record()] for folder in ("a", "b", "c", "d", "e")}
    looks = styles(together(files))
    assert next(iter(looks)) == "peer/store · a/x"
    assert len({(look.dash, look.marker) for look in looks.values()}) >= 4
    assert [r.extra for r in together({Path("x.jsonl"): [record()]})] == [{}]


def test_the_route_that_is_marked_is_that_of_the_last_file() -> None:
    old, new = ([record(via="route", bytes=b, extra={"chosen": path}) for b in (8, 16)] for path in "xy")
    plots = data(render(together({Path("old"): old, Path("new"): new})))["plots"]
    strips = plots["section-0-time"]["layout"]["shapes"]
    assert {shape["name"] for shape in strips} == {"strip:y"}


@pytest.mark.parametrize(("values", "extra", "ends"), [
    ((1, 2, 3, 4, 5), {}, (1, 1)), ((2, 2), {}, (0, 0)), ((2,), {"spread": 0.1}, (0.2, 0.2)),
    ((2,), {"spread": "much"}, (0, 0)), ((2,), {"spread": 7}, (1.8, 1.8)),
])  # fmt: skip
def test_whiskers_span_the_middle_half(
    values: tuple[float, ...], extra: dict[str, object], ends: tuple[float, float]
) -> None:
    some = [record(p50_us=v, p99_us=9, mean_us=2, bytes=b, extra=extra) for v in values for b in (8, 16)]
    (trace,) = data(render(some))["plots"]["section-0-time"]["data"]
    whiskers = trace["error_y"]
    assert (whiskers["arrayminus"][0], whiskers["array"][0]) == pytest.approx(ends)


def test_a_spread_of_many_times_the_median_is_no_percentage() -> None:
    """A run that waited for a busy CPU was once shown with ±50456 %."""
    rows = [record(p50_us=us, p99_us=9e3, mean_us=us) for us in (3.0, 3.1, 3.2, 3000.0, 3100.0)]
    assert spread_text(rows, "p50_us") == " ±468×"
    assert spread_text(rows[:3], "p50_us") == " ±2 %"


def test_rates_below_a_megabyte_have_units_of_their_own() -> None:
    assert bandwidth_text(0.0123) == "12.3 kB/s"
    assert bandwidth_text(1e-4) == "100 B/s"
    axis = value_axis([2e-5, 900.0], lambda value: tick_text(bandwidth_text(value)))
    assert not [text for text in axis["ticktext"] if text.startswith("0")]


def test_axes_have_few_ticks_that_people_read() -> None:
    axis = size_axis([8, 1 << 30], "size", "%{x}", lambda size: f"{size} B")
    assert 2 <= len(axis["tickvals"]) <= 9
    assert set(axis["tickvals"]) <= {2**power for power in range(40)}
    axis = value_axis([0.2, 9.0], lambda value: f"{value:g} µs")
    assert axis["ticktext"] == ["0.2 µs", "0.5 µs", "1 µs", "2 µs", "5 µs", "10 µs"]
    assert len(value_axis([1e-3, 1e12], str)["tickvals"]) <= 9
    assert tick_text("1.00 µs") == "1 µs"
    assert value_axis([0, 0], str)["tickvals"]
    assert value_axis([0.115, 0.115], time_text)["ticktext"] == ["100 ns", "120 ns", "140 ns"]
    for high in (1.001, 1.5, 2.3, 4.4, 30, 700):  # an axis of any length can be read
        ticks = value_axis([1.0, high], lambda value: f"{value:.3g}")["ticktext"]
        assert 3 <= len(ticks) == len(set(ticks)) <= 8


@pytest.mark.parametrize(("count", "text"), [
    (8, "8 B"), (1000, "1000 B"), (1536, "1.5 KiB"), (65536, "64 KiB"), (512 * 512 * 8 * 3, "6 MiB"),
    (80_000_000_000, "80 GB"), (80_000_000_001, "≈74.5 GiB"), (1_000_000_000, "1 GB"), (3 << 29, "1.5 GiB"),
])  # fmt: skip
def test_sizes_are_said_in_short_numbers(count: int, text: str) -> None:
    assert size_text(count) == text


def test_the_script_is_the_one_that_the_lock_names_and_a_page_stays_small() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    version, digest = re.findall(r"npm: plotly.js-basic-dist-min==(\S+) sha256:(\w+)", lock)[0]
    script = (ROOT / "common/peerway_common/assets/plotly/plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(script).hexdigest() == digest
    assert f"v{version}".encode() in script[:200]
    assert len(render([*curves(), *cube()]).encode()) < 1.5e6


# ---- the command


def test_the_command_writes_the_page(report: Callable[..., Result], tmp_path: Path) -> None:
    result = report([*curves(("put_bw",))])
    assert result.exit_code == 0, result.output
    assert "put_bw" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in.jsonl", "page.html"]


def test_the_command_marks_the_borders_of_a_table(report: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(TABLE))
    result = report([record(bytes=8), record(bytes=1 << 20)], "--table", str(tmp_path / "t.json"))
    assert result.exit_code == 0, result.output
    assert "peer/copy" in without_scripts((tmp_path / "page.html").read_text(encoding="utf-8"))


def test_the_page_of_a_thousand_published_records_can_be_mailed() -> None:
    readable = {}
    for file in sorted((ROOT / "results").glob("*/*.jsonl")):
        with contextlib.suppress(records.RecordError):
            if sum(map(len, readable.values())) < 1000:
                readable[file] = records.read(file)
    assert sum(map(len, readable.values())) >= 1000
    assert len(render(together(readable)).encode()) <= 1.5e6


def test_files_are_told_apart_by_as_little_of_their_paths_as_it_takes() -> None:
    some = [Path("/far/away/old/host.jsonl"), Path("/far/away/new/host.jsonl")]
    looks = styles(together({file: [record()] for file in some}))
    assert {style.file for style in looks.values()} == {"old/host", "new/host"}


def timed(**times: float) -> list[records.Record]:
    """A record for each path or tool, with the same time for all its statistics."""
    return [
        record(via=via.replace("_", "/"), **dict.fromkeys(("p50_us", "p99_us", "min_us", "mean_us"), time))
        for via, time in times.items()
    ]


FURTHEST = "At worst it takes 2.0 times as long as peer/shm: put_latency, 8 B, host to host."


@pytest.mark.parametrize(("times", "sentences"), [
    ({"route": 2.0, "peer_shm": 1.0, "staged": 4.0},
     ["The automatic choice (route) is within 10 % of the fastest path at 0 of 1 point. " + FURTHEST]),
    ({"route": 1.0, "peer_shm": 1.0, "openmpi": 2.0},
     ["The automatic choice (route) is within 10 % of the fastest path at 1 of 1 point.",
      "Against the best of openmpi, the route is faster at 1 of 1 point, slower at 0. "
      "Less than 10 % is equal."]),
    ({"route": 3.0, "peer_shm": 1.0, "openmpi": 2.0},  # the fastest path is not what programs get
     ["The automatic choice (route) is within 10 % of the fastest path at 0 of 1 point. "
      + FURTHEST.replace("2.0", "3.0"),
      "Against the best of openmpi, the route is faster at 0 of 1 point, slower at 1. "
      "Less than 10 % is equal."]),
    ({"peer_shm": 1.0, "staged": 4.0, "openmpi": 1.05},
     ["Against the best of openmpi, the fastest path is faster at 0 of 1 point, slower at 0. "
      "Less than 10 % is equal."]),
    ({"flag": 0.1, "staged": 1.0},
     ["No automatic choice (route) and no other tool was measured beside the paths."]),
])  # fmt: skip
def test_the_page_begins_with_a_headline(times: dict[str, float], sentences: list[str]) -> None:
    some = timed(**times)
    assert headline(some) == sentences
    page = without_scripts(render(some))
    assert page.index(sentences[0].replace("'", "&#39;")) < page.index('id="legend"')


def test_points_with_and_without_the_route_are_told_apart() -> None:
    other = [dataclasses.replace(each, test="halo") for each in timed(staged=4.0, openmpi=2.0)]
    _, sentence = headline([*timed(route=1.0, staged=1.0, openmpi=2.0), *other])
    assert sentence == (
        "Against the best of openmpi, the route is faster at 1 of 1 point, slower at 0; elsewhere the "
        "fastest path is faster at 0 of 1 point, slower at 1. Less than 10 % is equal."
    )


def test_each_case_is_judged_by_the_last_file_that_has_it() -> None:
    """Files may contain different tests; what only an earlier file has counts, too."""
    old, other = timed(route=4.0, openmpi=2.0), timed(route=1.0, openmpi=2.0)
    halo = [dataclasses.replace(record, test="halo") for record in timed(staged=1.0)]
    sentence, of = headline(together({Path("old"): old, Path("new"): other, Path("halo"): halo}))
    assert sentence.startswith("Against the best of openmpi, the route is faster at 1 of 1 point")
    assert of == "Of what several files have measured, this judges new alone."


def test_an_older_page_survives_a_failure(report: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("older")
    assert report([]).exit_code == 2
    assert (tmp_path / "page.html").read_text() == "older"


@pytest.mark.parametrize(("out", "why"), [
    ("no/page.html", "there is no folder {here}/no"),
    ("", "Is a directory"),
])  # fmt: skip
def test_an_output_that_cannot_be_written_is_no_wrong_command_line(
    report: Callable[..., Result], out: str, why: str, tmp_path: Path
) -> None:
    result = report([record()], "-o", str(tmp_path / out))
    assert result.exit_code == 1
    assert f"cannot write {tmp_path / out}: {why.format(here=tmp_path)}; name another file" in result.output
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("some", "options", "why"), [
    ([], (), "has no records"),
    ([record()], ("--table", "/nowhere.json"), "cannot read /nowhere.json: No such file"),
])  # fmt: skip
def test_what_cannot_be_done_is_said(
    report: Callable[..., Result], some: list[records.Record], options: tuple[str, ...], why: str
) -> None:
    result = report(some, *options)
    assert result.exit_code == 2, result.output
    assert why in result.output


@pytest.mark.parametrize("indent", [None, 1])
def test_a_route_table_in_place_of_records_is_named(indent: int | None, tmp_path: Path) -> None:
    table = tmp_path / "routes.json"
    table.write_text(json.dumps(TABLE, indent=indent))
    result = CliRunner().invoke(peerway, ["report", str(table), "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 2
    assert f"{table} is a route table, not records; give it to --table" in result.output


@pytest.mark.parametrize("verb", ["report", "explain", "bench"])
def test_records_in_place_of_a_route_table_are_named(verb: str, tmp_path: Path) -> None:
    some = tmp_path / "some.jsonl"
    records.write(some, [record(), record(bytes=16)])
    words = {"report": [str(some), "-o", str(tmp_path / "page.html")], "bench": ["signal_latency"]}.get(
        verb, []
    )
    result = CliRunner().invoke(peerway, [verb, *words, "--table", str(some)])
    assert result.exit_code == 2
    assert f"{some} has records, and is not a route table" in result.output


def test_lines_of_another_schema_are_refused(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text(record().as_json() + '\n{"name": "other", "value": 1}\n')
    result = CliRunner().invoke(peerway, ["report", str(mixed), "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 2
    assert "mixed.jsonl:2: field 'test' is missing" in result.output
    assert not (tmp_path / "page.html").exists()
