"""Comparisons: what is a difference, what is warned of, and what `peerway compare` prints and returns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner, Result
from synthetic_records import record

from peerway_common.cli import command as peerway
from peerway_measure import records
from peerway_measure.compare.changes import changes, why_apart
from peerway_measure.compare.groups import Key, Pair, pair_up
from peerway_measure.compare.metric import metric_of, name_of, ranks_text
from peerway_measure.compare.statistics import Comparison, compare_all, runs_needed

if TYPE_CHECKING:
    from peerway_measure.records import Record

Run = Callable[..., Result]


def times(*microseconds: float, **fields: Any) -> list[Record]:
    return [record(p50_us=t, min_us=0, p99_us=1e9, mean_us=1, **fields) for t in microseconds]


def bandwidths(*values: float) -> list[Record]:
    return [record(test="put_bw", bandwidth_MBps=value) for value in values]


def comparison_of(before: Iterable[Record], after: Iterable[Record], metric: str | None = None) -> Comparison:
    (found,) = compare_all(pair_up(before, after), metric)
    return found


def noisy(median: float, n: int, seed: int) -> list[Record]:
    return times(*(median * np.random.default_rng(seed).lognormal(0, 0.03, n)))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def invoke(before: list[Record], after: list[Record], *options: str) -> Result:
        files = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
        for file, side in zip(files, (before, after), strict=True):
            records.write(file, side)
        return CliRunner().invoke(peerway, ["compare", *map(str, files), *options])

    return invoke


# ---- statistics


def test_shorter_times_and_higher_bandwidths_are_faster() -> None:
    found = comparison_of(times(2.0, 2.02, 2.04, 2.06, 2.08), times(1.0, 1.01, 1.02, 1.03, 1.04))
    assert found.verdict == "faster"
    assert found.speedup == pytest.approx(2.0)
    found = comparison_of(bandwidths(100, 101, 102, 103, 104), bandwidths(50, 50.5, 51, 51.5, 52))
    assert found.verdict == "slower"
    assert found.speedup == pytest.approx(0.5)
    assert found.high is not None
    assert found.high < 1


def test_the_interval_encloses_the_ratio_and_the_p_value_is_that_of_mann_and_whitney() -> None:
    found = comparison_of(noisy(1.0, 20, seed=1), noisy(1.1, 20, seed=2))
    assert found.speedup is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.speedup < found.high < 1
    assert found.high - found.low < 0.1
    separated = comparison_of(times(1, 2, 3, 4, 5), times(6, 7, 8, 9, 10))
    assert separated.p == pytest.approx(2 / 252)  # 2 of the C(10, 5) orders are as extreme


def test_noise_is_seldom_called_a_difference() -> None:
    verdicts = [
        comparison_of(noisy(1, 12, seed=2 * i), noisy(1, 12, seed=2 * i + 1)).verdict for i in range(60)
    ]
    assert verdicts.count("no difference") >= 60 * 0.85


def test_too_few_runs_have_neither_interval_nor_p_value() -> None:
    found = comparison_of(times(2.0), times(1.0, 1.1))
    assert (found.verdict, found.low, found.high, found.p) == ("unknown", None, None, None)
    assert found.before.spread is None
    assert found.speedup == pytest.approx(np.median([2.0, 2 / 1.1]))
    assert (
        comparison_of(times(2, 2.1, 2.2), times(1, 1.1, 1.2)).verdict == "unknown"
    )  # 1 order of 10 is not rare


def test_runs_that_do_not_vary_still_have_an_interval() -> None:
    assert comparison_of(times(2, 2, 2, 2), times(1, 1, 1, 1)).verdict == "faster"
    assert comparison_of(times(2, 2, 2, 2), times(2, 2, 2, 2)).verdict == "no difference"


@pytest.mark.parametrize(("n", "m", "seed"), [(4, 4, 1), (7, 5, 2), (12, 20, 3)])
def test_the_interval_is_what_the_test_does_not_refuse(n: int, m: int, seed: int) -> None:
    before, after = noisy(1, n, seed), noisy(1.05, m, seed + 50)
    found = comparison_of(before, after)
    for end, inward in ((found.low, 1e-6), (found.high, -1e-6)):
        assert end is not None
        for step, refused in ((inward, False), (-inward, True)):
            scaled = times(*(r.p50_us * end * (1 + step) for r in after))
            p = comparison_of(before, scaled).p
            assert p is not None
            assert (p <= 0.05) == refused


# ---- from run to run

GROUPS = tuple(f"peer/{i}" for i in range(22))


class Sample(NamedTuple):
    """The fields of a record that the statistics use; a hundred times quicker to make."""

    run: str
    p50_us: float
    test: str = "put_latency"
    host: str = "busy"
    time: str = ""


def runs(rng: np.random.Generator, n: int, slower: dict[str, float]) -> dict[str, list[Sample]]:
    """Runs like those of `peerway bench --repeat` on a busy machine.

    Each run is in one of two modes, 20 % apart, from its start to its end; each group of it is in one of two
    further modes, 5 % apart.
    """
    found: dict[str, list[Sample]] = {via: [] for via in GROUPS}
    for run in range(n):
        mode = 1.2 if rng.random() < 0.5 else 1.0
        for via, samples in found.items():
            own = mode * (1.05 if rng.random() < 0.3 else 1.0) * slower.get(via, 1)
            samples += [Sample(str(run), value) for value in own * rng.lognormal(0, 0.005, 3)]
    return found


def verdicts(before: dict[str, list[Sample]], after: dict[str, list[Sample]]) -> dict[str, str]:
    pairs = [Pair(Key(("via",), (via,)), before[via], after[via]) for via in GROUPS]  # type: ignore[arg-type]
    return {str(c.pair.key.get("via")): c.verdict for c in compare_all(pairs)}


def called(rng: np.random.Generator, n: int, slower: dict[str, float]) -> set[str]:
    found = verdicts(runs(rng, n, {}), runs(rng, n, slower))
    assert len(found) == len(GROUPS)
    return {via for via, verdict in found.items() if verdict != "no difference"}


@pytest.mark.long
def test_modes_from_run_to_run_are_no_difference() -> None:
    """Without a change every reported difference is false: at most one comparison in twenty may have one."""
    rng = np.random.default_rng(16)
    false = [bool(called(rng, 7, {})) for _ in range(100)]
    assert sum(false) <= 100 * 0.05 + 2 * np.sqrt(100 * 0.05 * 0.95)


def test_of_what_is_called_different_one_in_twenty_is_not() -> None:
    rng = np.random.default_rng(7)
    changed = dict.fromkeys(GROUPS[:8], 1.6)
    rates = []
    for _ in range(60):
        found = called(rng, 8, changed)
        rates.append(len(found - changed.keys()) / max(1, len(found)))
        assert found >= changed.keys()
    assert np.mean(rates) <= 0.05 + 2 * np.std(rates) / np.sqrt(len(rates))


def test_a_change_of_ten_percent_is_found_between_modes() -> None:
    """On a quiet machine whose runs have two modes 5 % apart, exactly the two changed groups are found."""
    rng = np.random.default_rng(3)

    def side(slower: dict[str, float]) -> dict[str, list[Sample]]:
        return {
            via: [Sample(str(run), slower.get(via, 1) * rng.choice((1, 1.05)) * rng.lognormal(0, 0.005))
                  for run in range(10)]
            for via in GROUPS
        }  # fmt: skip

    found = verdicts(side({}), side({GROUPS[3]: 1.1, GROUPS[9]: 0.9}))
    told = {via: verdict for via, verdict in found.items() if verdict != "no difference"}
    assert told == {GROUPS[3]: "slower", GROUPS[9]: "faster"}


def test_records_of_one_run_are_one_sample() -> None:
    before = [r for run in "ab" for r in times(1, 1.1, 1.2, extra={"run": run})]
    found = comparison_of(
        before, times(1, 1.1, host="other", extra={"run": "a"}) + times(1, extra={"run": "a"})
    )
    assert (found.before.runs, found.after.runs) == (2, 2)  # hosts give their runs the same names


def test_several_groups_are_corrected_for() -> None:
    before, after = ([r for via in GROUPS for r in times(*values, via=via)] for values in
                     ((1, 1.01, 1.02, 1.03, 1.04), (0.99, 1.005, 1.015, 1.025, 1.05)))  # fmt: skip
    slow = times(1.1, 1.11, 1.12, 1.13, 1.14, via="one")
    several = compare_all(pair_up(before + times(1, 1.01, 1.02, 1.03, 1.04, via="one"), after + slow))
    alone = compare_all(pair_up(times(1, 1.01, 1.02, 1.03, 1.04), times(1.1, 1.11, 1.12, 1.13, 1.14)))
    assert (alone[0].verdict, several[-1].verdict) == ("slower", "no difference")
    assert (several[-1].p, several[-1].p_adjusted) == pytest.approx((2 / 252, 23 * 2 / 252))
    assert (runs_needed(1), runs_needed(22)) == (4, 6)


def test_no_ratio_is_made_of_a_zero() -> None:
    found = comparison_of(bandwidths(0, 0, 0), bandwidths(1, 2, 3))
    assert (found.speedup, found.low, found.verdict) == (None, None, "unknown")


def test_spread_is_half_the_quartile_distance() -> None:
    assert comparison_of(times(90, 95, 100, 105, 110), times(1)).before.spread == pytest.approx(0.05)


@pytest.mark.parametrize(("test", "field"), [
    ("put_latency", "p50_us"), ("put_bw", "bandwidth_MBps"), ("put_bibw", "bandwidth_MBps"),
    ("put_mbw_mr", "messages_per_s"), ("cube_face", "p50_us"),
])  # fmt: skip
def test_a_test_has_its_own_metric(test: str, field: str) -> None:
    assert metric_of(test).field == field
    assert metric_of(test, "p99_us").field == "p99_us"


def test_a_metric_that_was_not_measured_is_not_compared() -> None:
    assert compare_all(pair_up([record(cpu_percent=None)], [record(cpu_percent=5)]), "cpu_percent") == []


# ---- groups and warnings


def test_records_of_one_thing_are_one_group() -> None:
    pairs = pair_up([record(), record(), record(bytes=16)], [record(), record(via="staged")])
    assert [(len(p.before), len(p.after)) for p in pairs] == [(2, 1), (1, 0), (0, 1)]
    by_host = pair_up([record(), record(host="other")], [], by=["host"])
    assert [pair.key.get("host") for pair in by_host] == ["synthetic01", "other"]


def test_a_field_that_was_meant_to_change_does_not_split_groups() -> None:
    assert len(pair_up([record(via="staged")], [record(via="ucx")], factors=["via"])) == 1


def by_methods(*allowed: str, **fields: Any) -> list[Record]:
    """A record of a plan for each set of methods that the user allowed; "" allows all."""
    return [record(via="plan", extra={"allowed": one} if one else {}, **fields) for one in allowed]


def test_a_route_with_other_paths_to_choose_from_is_a_group_of_its_own() -> None:
    """Two methods of a halo were once samples of one group."""
    ways = ("", "plan/slots", "plan/straight")
    pairs = pair_up(by_methods(*ways), by_methods("plan/straight"))
    assert [pair.key.get("via") for pair in pairs] == ["plan", "plan (plan/slots)", "plan (plan/straight)"]
    assert [(len(pair.before), len(pair.after)) for pair in pairs] == [(1, 0), (1, 0), (1, 1)]
    assert len({name_of(one) for one in by_methods(*ways)}) == 3


def test_what_a_route_may_choose_from_can_be_the_factor(run: Run) -> None:
    (before,), (after,) = by_methods("plan/slots"), by_methods("plan/straight")
    (pair,) = pair_up([before], [after], factors=["allowed"])
    assert pair.key.get("via") == "plan"
    assert warned(before, after, "allowed") == []
    both = by_methods("plan/slots", "plan/straight")
    result = run(both, both, "--factor", "allowed=plan/slots:plan/straight")
    assert result.exit_code == 0, result.output
    assert "allowed: plan/slots -> plan/straight" in result.output
    rows = run(both, both, "--by", "via")
    assert "plan (plan/slots)" in rows.output
    assert "plan (plan/straight)" in rows.output


def test_ways_that_are_mixed_by_a_factor_are_warned_of() -> None:
    pairs = pair_up(by_methods("plan/slots", "plan/straight"), [record(via="openmpi")], factors=["via"])
    assert "several values of via (plan (plan/slots), plan (plan/straight))" in changes(pairs, ["via"])[-1]


def warned(before: Record, after: Record, *factors: str) -> list[str]:
    return changes([*pair_up([before], [after], factors=factors)], factors)


@pytest.mark.parametrize(("field", "old", "new"), [
    ("host", "node01", "node02"), ("device", "V100", "A100"), ("driver", "550", "580"),
    ("version", "0.1", "0.2"), ("extra", {"ucx": "1.13"}, {"ucx": "1.22"}),
    ("extra", {"governor": "performance"}, {"governor": "powersave"}),
    ("extra", {"slurm_job": "17"}, {"slurm_job": "18"}),
])  # fmt: skip
def test_everything_that_changed_is_warned_of(field: str, old: object, new: object) -> None:
    (line,) = warned(record(**{field: old}), record(**{field: new}))
    shown: tuple[object, object] = (old, new)
    if isinstance(old, dict) and isinstance(new, dict):
        ((field, first),) = old.items()
        shown = first, new[field]
    assert line.startswith(f"{field} changed: ")
    assert f"{shown[0]} -> {shown[1]}" in line


def test_the_stated_factor_is_not_warned_of_unless_it_stayed() -> None:
    assert warned(record(driver="550"), record(driver="580"), "driver") == []
    (line,) = warned(record(driver="550"), record(driver="550"), "driver")
    assert "driver was to change, but is 550" in line


def test_iterations_that_were_chosen_by_time_are_no_change() -> None:
    assert warned(record(iterations=100), record(iterations=1000)) == []
    fixed = {"iterations_fixed": True}
    (line,) = warned(record(iterations=100, extra=fixed), record(iterations=1000, extra=fixed))
    assert line == "iterations changed: 100 -> 1000"


def test_records_of_few_samples_against_many_are_warned_of() -> None:
    (line,) = warned(record(iterations=12), record(iterations=4000))
    assert line.startswith(
        "samples changed: a record is the median of 12 -> 4,000 (put_latency · peer/store ·"
    )
    (line,) = warned(record(iterations=12), record(iterations=4000), "iterations")
    assert line.startswith("iterations was to change")
    pairs = pair_up(
        [record(iterations=30, bytes=1), record(iterations=900, bytes=2), record(iterations=99, bytes=4)],
        [record(iterations=600, bytes=1), record(iterations=20, bytes=2), record(iterations=100, bytes=4)],
    )
    (line,) = changes(pairs)
    assert "900 -> 20 in 2 of 3 groups, most in (put_latency · peer/store · contiguous · 2 B" in line


def test_a_path_that_one_side_calls_by_its_group_is_told_with_how_to_compare_it(run: Run) -> None:
    both = times(2, via="route")
    result = run(times(1, via="peer") + both, times(1, via="peer/shm") + both)
    assert "peer is the choice among all paths peer/..., and no record of peer/shm" in result.output
    assert "write --factor via=peer:peer/shm" in " ".join(result.output.split())
    several = run(times(1, via="peer/shm") + times(1, via="peer/cma") + both, times(1, via="peer") + both)
    assert "no record of peer/cma or peer/shm;" in " ".join(several.output.split())
    assert several.output.count("is the choice among") == 1
    asked = run(times(1, via="peer"), times(1, via="peer/shm"), "--factor", "via=peer:peer/shm")
    assert asked.exit_code == 0, asked.output
    assert "via: peer -> peer/shm" in asked.output


def test_a_run_is_no_setting_and_other_work_is_warned_of_where_it_changed() -> None:
    extras = [{"run": "a.1", "load": 0.02}, {"run": "b.1", "load": 0.1}, {"run": "b.2", "load": 1.4}]
    assert warned(record(extra=extras[0]), record(extra=extras[1])) == []
    (line,) = warned(record(extra=extras[0]), record(extra=extras[2]))
    assert "other work kept 0.0 -> 1.4 CPUs busy" in line


def of_file(shape: str, extra: dict[str, str], rate: float = 1e3, run: str = "", **fields: Any) -> Record:
    return record(
        test="file_write_bw", shape=shape, bandwidth_MBps=rate, extra={**extra, "run": run}, **fields
    )


@pytest.mark.parametrize(
    ("factor", "before", "after"),
    [
        ("block", ("sequential 1 MiB direct", "1 MiB"), ("sequential 16 MiB direct", "16 MiB")),
        ("mode", ("shared 1 MiB", "buffered"), ("shared 1 MiB direct fsync", "direct+fsync")),
        ("size", ("random 4 KiB in 1 GiB fsync", "1 GiB"), ("random 4 KiB in 64 GiB fsync", "64 GiB")),
        ("threads", ("contiguous threads=4", "4"), ("contiguous threads=8", "8")),
    ],
)
def test_a_factor_that_the_shape_tells_does_not_keep_groups_apart(
    factor: str, before: tuple[str, str], after: tuple[str, str]
) -> None:
    one, other = (of_file(shape, {factor: value}) for shape, value in (before, after))
    assert len(pair_up([one], [other])) == 2
    assert len(pair_up([one], [other], factors=[factor])) == 1
    assert len(pair_up([one], [other], factors=["kernel"])) == 2


APART = {
    "block, which the shape tells": (
        [of_file("sequential 1 MiB direct", {"block": "1 MiB", "mode": "direct"})],
        [of_file("sequential 16 MiB direct", {"block": "16 MiB", "mode": "direct"})],
        "block is 1 MiB in the one and 16 MiB in the other; to compare across it, write --factor block",
    ),
    "size, which is shape and bytes": (
        [of_file("random 4 KiB in 1 GiB", {"size": "1 GiB"}, bytes=1 << 30)],
        [of_file("random 4 KiB in 4 GiB", {"size": "4 GiB"}, bytes=4 << 30)],
        "write --factor size",
    ),
    "streams, which are ranks": (
        [of_file("sequential", {"streams": "1"}, ranks=1)],
        [of_file("sequential", {"streams": "4"}, ranks=4)],
        "write --factor streams",
    ),
    "a campaign's own factor": (
        [of_file("contiguous threads=4", {"threads": "4"})],
        [of_file("contiguous threads=8", {"threads": "8"})],
        "write --factor threads",
    ),
    "only one side tells its block": (
        [of_file("sequential 1 MiB", {"block": "1 MiB"})],
        [of_file("sequential", {})],
        "shape is sequential 1 MiB in the one and sequential in the other; to compare across it, write "
        "--factor shape",
    ),
    "what a route may choose from": (
        by_methods("plan/slots"),
        by_methods("plan/straight"),
        "write --factor allowed",
    ),
    "only one side names what a route may choose from": (
        by_methods("plan/slots"),
        by_methods(""),
        "allowed is plan/slots in the one and none in the other; to compare across it, write --factor "
        "allowed",
    ),
    "a shape of no factor": (
        [record(shape="contiguous", extra={"kernel": "6.1"})],
        [record(shape="blocks", extra={"kernel": "6.8"})],
        "write --factor shape",
    ),
    "several fields, and a factor that is none of them": (
        [record(via="staged", host="a", op="put", extra={"block": "1 MiB"})],
        [record(via="ucx", host="b", op="get", extra={"block": "2 MiB"})],
        "must be the same, and more than one of them is not",
    ),
}


@pytest.mark.parametrize(("before", "after", "message"), APART.values(), ids=list(APART))
def test_the_advice_names_the_factor_that_keeps_two_sides_apart(
    before: list[Record], after: list[Record], message: str
) -> None:
    advice = why_apart(pair_up(before, after))
    assert message in advice
    factor = advice.partition("--factor ")[2] if advice.endswith(message) else ""
    assert not factor or len(pair_up(before, after, factors=[factor])) == 1


def test_streams_are_the_ranks_of_a_test_of_files() -> None:
    one, other = (replace(of_file("sequential", {"streams": str(n)}), ranks=n) for n in (1, 4))
    assert len(pair_up([one], [other])) == 2
    assert len(pair_up([one], [other], factors=["streams"])) == 1


def test_values_of_a_factor_choose_the_records_of_both_sides(run: Run) -> None:
    blocks = (("64 KiB", 1.0), ("1 MiB", 2.0), ("16 MiB", 8.0))
    both = [
        of_file(f"sequential {block}", {"block": block}, rate * 1e3 + i, str(i))
        for block, rate in blocks
        for i in range(8)
    ]
    result = run(both, both, "--factor", "block=64K:16M")
    assert result.exit_code == 0, result.output
    assert "block: 64 KiB -> 16 MiB" in result.output
    assert "+69" in result.output  # 8 times
    assert "has block=2M; its values there: 1 MiB, 16 MiB, 64 KiB" in (
        run(both, both, "--factor", "block=64K:2M").output
    )
    # A factor of a campaign is preferred to a field with its name.
    named = [
        replace(r, device="NVIDIA H100", extra={**r.extra, "device": device})
        for r in both
        for device in ("cuda", "host")
    ]
    crossed = run(named, named, "--factor", "device=cuda:host")
    assert crossed.exit_code == 0, crossed.output
    assert "as in block=1M:16M" in run(both, both, "--factor", "block=64K").output


def test_several_factors_are_all_crossed() -> None:
    before, after = record(via="staged", host="a", driver="1"), record(via="ucx", host="b", driver="2")
    assert warned(before, after, "via", "host") == ["driver changed: 1 -> 2"]
    assert warned(before, after, "via", "host", "driver") == []


def test_a_factor_with_several_values_on_one_side_is_warned_of() -> None:
    pairs = pair_up([record(via="a"), record(via="b")], [record(via="c")], factors=["via"])
    (line,) = changes(pairs, ["via"])
    assert "several values of via (a, b)" in line


def test_other_ranks_are_warned_of_though_no_group_matches() -> None:
    assert warned(record(ranks=2), record(ranks=4)) == ["ranks changed: 2 -> 4"]


def test_a_mixed_group_and_data_that_were_not_validated_are_warned_of() -> None:
    before = [record(), record(host="other", validated=False)]
    pairs = pair_up(before, [record(), record(host="other")])
    text = "\n".join(changes(pairs))
    assert "several values of host (other, synthetic01); add --by host" in text
    assert "1 records were not validated" in text


# ---- the command


def test_the_table_says_what_changed_and_how_sure_it_is(run: Run) -> None:
    result = run(noisy(1.1, 8, seed=1) + times(5, via="staged"), noisy(1.0, 8, seed=2) + times(4, via="ucx"))
    assert result.exit_code == 0, result.output
    assert "put_latency · peer/store · contiguous · host to host · 2 ranks · median time" in result.output
    row = next(line for line in result.output.splitlines() if line.startswith("  8 B"))
    assert "8/8" in row
    assert "+" in row
    assert "[+" in row
    assert "only before has:" in result.output
    assert "via ucx" in result.output
    assert "\x1b" not in result.output


def test_noise_is_called_no_difference(run: Run) -> None:
    assert "no difference" in run(noisy(1, 8, seed=1), noisy(1, 8, seed=2)).output


@pytest.mark.parametrize("pair", [1, 2])
def test_one_command_twice_under_load_is_no_difference(pair: int) -> None:
    folder = Path(__file__).resolve().parents[3] / "results" / "compare-aa"
    sides = [records.read(folder / f"{pair}.{side}.jsonl") for side in ("before", "after")]
    found = compare_all(pair_up(*sides))
    assert len(found) == 13
    assert {c.verdict for c in found} == {"no difference"}


def test_what_is_many_times_as_much_is_no_percentage(run: Run) -> None:
    """Runs that waited for a busy CPU were once shown as [-73, +39117725] and ±50456%."""
    waited = times(3, 3.1, 3.2, 3.3, 3000, 3100)
    output = run(waited, times(3, 3.1, 3.2, 3.3, 3.4, 3.5)).output
    assert re.search(r"±\d{3}×.*\[-8.6, ×\d{3,4}\]", output), output
    assert "  ×100  " in run(times(*[100] * 4), times(*[1] * 4)).output


def test_a_single_record_is_told_how_to_get_an_interval(run: Run) -> None:
    output = run(times(2), times(1)).output
    assert "+100 %" in output
    assert "fewer than 4 runs" in output
    assert "--repeat" in output


def test_rows_by_host_name_the_device(run: Run) -> None:
    sides = [noisy(m, 5, seed=s) + times(m, m, host="node41", device="8 x A100")
             for m, s in ((2.0, 1), (1.0, 2))]  # fmt: skip
    output = run(*sides, "--by", "host").output
    assert "node41 (8 x A100)" in output
    assert "several values" not in output


def test_json_has_every_number(run: Run) -> None:
    result = run(times(2, 2.1, 2.1, 2.2), times(1, 1.1, 1.1, 1.2) + times(1, via="ucx"), "--format", "json")
    found = json.loads(result.output)
    (group,) = found["groups"]
    assert group["p"] == group["p_adjusted"] == pytest.approx(2 / 70)
    assert group["via"] == "peer/store"
    assert group["before"] == {"runs": 4, "median": 2.1, "spread": pytest.approx(0.025 / 2.1)}
    assert group["speedup_percent"] == pytest.approx((2.1 / 1.1 - 1) * 100)
    assert group["interval_percent"][0] > 0
    assert group["verdict"] == "faster"
    assert found["only_after"][0]["via"] == "ucx"
    assert found["only_before"] == []


@pytest.mark.parametrize(("after", "limit", "status"), [
    ((1.2, 1.21, 1.22), "10", 1), ((1.2, 1.21, 1.22), "50", 0), ((0.8, 0.81, 0.82), "0", 0),
    ((0.7, 1.0, 1.9), "0", 0), ((1.5,), "10", 1),
])  # fmt: skip
def test_a_slowdown_beyond_noise_fails_when_asked(
    run: Run, after: tuple[float, ...], limit: str, status: int
) -> None:
    before = times(1, 1.01, 1.02)
    assert run(before, times(*after)).exit_code == 0
    result = run(before, times(*after), "--fail-on-slowdown", limit)
    assert result.exit_code == status, result.output
    assert ("got slower" in result.output) == bool(status)


def test_sides_with_nothing_in_common_are_an_error(run: Run) -> None:
    result = run([record(via="staged")], [record(via="ucx")])
    assert result.exit_code == 2
    assert "no group in common" in result.output
    assert "via is staged in the one and ucx in the other; to compare across it, write --factor via" in (
        " ".join(result.output.split())
    )
    assert run([record(via="staged")], [record(via="ucx")], "--factor", "via").exit_code == 0


def test_the_same_file_on_both_sides_is_told(run: Run, tmp_path: Path) -> None:
    """Unless values of a factor select different records of it for each side."""
    some = [*times(1, 2, 3, host="a"), *times(1, 2, 3, host="b")]
    assert "same file" not in run(some, some).stderr
    file, link = tmp_path / "before.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(file)
    for other in (file, link):
        told = CliRunner().invoke(peerway, ["compare", str(file), str(other)])
        assert told.exit_code == 0
        assert f"both sides are the same file, {file}: nothing can differ" in told.stderr
    chosen = CliRunner().invoke(peerway, ["compare", str(file), str(file), "--factor", "host=a:b"])
    assert chosen.exit_code == 0
    assert "same file" not in chosen.stderr


def test_rows_by_host_of_two_hosts_say_how_to_compare_across(run: Run) -> None:
    sides = [record(host="a")], [record(host="b")]
    result = run(*sides, "--by", "host")
    assert result.exit_code == 2
    assert "write --factor host in place of --by host" in result.output
    result = run(*sides, "--factor", "host")
    assert result.exit_code == 0
    assert "host: a -> b" in result.output


def test_no_factor_replaces_another(run: Run) -> None:
    sides = [record(host="a", via="staged")], [record(host="b", via="ucx")]
    result = run(*sides)
    assert result.exit_code == 2
    assert "--factor via" in result.output
    result = run(*sides, "--factor", "via", "--factor", "host")
    assert result.exit_code == 0
    assert "via: staged -> ucx; host: a -> b" in result.output
    assert "warning" not in result.output


@pytest.mark.parametrize(("content", "why"), [
    (None, "cannot read"), ("", "has no records"), ("{}\n", ":1: field 'test' is missing"),
    ('{"te', "--skip-truncated"),
])  # fmt: skip
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None, why: str) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    records.write(good, [record()])
    if content is not None:
        bad.write_text(content)
    result = CliRunner().invoke(peerway, ["compare", str(good), str(bad)])
    assert result.exit_code == 2
    assert str(bad) in result.output
    assert why in result.output


def test_a_cut_off_line_is_skipped_when_asked(run: Run, tmp_path: Path) -> None:
    run([record()], [record()])
    after = tmp_path / "after.jsonl"
    after.write_text(after.read_text() + '{"test"')
    result = CliRunner().invoke(
        peerway, ["compare", str(tmp_path / "before.jsonl"), str(after), "--skip-truncated"]
    )
    assert result.exit_code == 0, result.output
    assert "after.jsonl:2: the last line is cut off" in result.output


def test_markup_in_a_name_is_printed_as_it_is(run: Run) -> None:
    assert "[red]x[/red]" in run(times(1, via="[red]x[/red]"), times(1, via="[red]x[/red]")).output


def test_a_title_counts_the_streams_of_files_and_the_ranks_of_all_else() -> None:
    assert [ranks_text(*each) for each in (("file_write_bw", 1), ("file_write_bw", 4), ("put_bw", 1))] == [
        "1 stream",
        "4 streams",
        "1 rank",
    ]
