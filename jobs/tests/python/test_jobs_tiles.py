"""Which nodes the cluster's page shows, and in which groups."""

from __future__ import annotations

from typing import Any

import pytest
from jobs_cluster import large_cluster

from peerway_jobs.serve.squares import squares
from peerway_jobs.serve.tiles import (
    RACKS,
    BadPattern,
    Choice,
    choices,
    chosen,
    grouped,
    rack_of,
    rack_pattern,
    use_of,
)


def nodes(count: int = 1000, racks: str = RACKS) -> list[dict[str, Any]]:
    pattern = rack_pattern(racks)
    several: list[dict[str, Any]] = large_cluster(count)["nodes"]
    return [{**node, "rack": rack_of(node["name"], pattern)} for node in several]


@pytest.mark.parametrize(
    ("name", "pattern", "rack"),
    [
        ("r12n03", RACKS, "r12"),
        ("rack1-node2", RACKS, "rack1"),
        ("x1000c0s0b0n0", RACKS, "x1000c0s0b0"),
        ("node0123", RACKS, ""),
        ("login", RACKS, ""),
        ("cn0412", r"^(cn\d{2})", "cn04"),
        ("gpu7", r"^(cn\d{2})", ""),
        ("r12n03", "", ""),
        ("n3", r"^n3(x)?", ""),
    ],
)
def test_the_rack_is_in_the_name(name: str, pattern: str, rack: str) -> None:
    assert rack_of(name, rack_pattern(pattern)) == rack


@pytest.mark.parametrize("pattern", ["(", "r1", "(a)(b)"])
def test_a_pattern_of_racks_is_an_expression_with_one_group(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"regular expression|groups"):
        rack_pattern(pattern)


ON = {"r02n01": [{"user": "alice", "job": "4242", "array": "4200_7"}]}


@pytest.mark.parametrize(
    ("choice", "count"),
    [
        (Choice(), 1000),
        (Choice("R02N"), 20),
        (Choice("disk"), 11),  # in the reason
        (Choice("alice"), 1),
        (Choice("4200_7"), 1),
        (Choice("bob"), 0),
        (Choice(rack="r50"), 20),
        (Choice(node_type="milan"), 340),
        (Choice(partition="gpu"), 660),
        (Choice(state="off"), 10),
        (Choice("r02", state="busy", node_type="h100"), 12),
    ],
)
def test_nodes_are_chosen_by_what_the_page_offers(choice: Choice, count: int) -> None:
    assert len(chosen(nodes(), choice, ON)) == count


def test_groups_are_racks_where_names_have_them_else_types() -> None:
    assert [(each.by, each.name) for each in grouped(nodes(), "")][:2] == [("rack", "r01"), ("rack", "r02")]
    assert [each.name for each in grouped(nodes(racks=""), "")] == ["milan", "h100", "a100"]
    assert [(each.by, len(each.nodes)) for each in grouped(nodes(12, racks=""), "")] == [("none", 12)]
    alone = [{**node, "rack": node["name"]} for node in nodes(12)]  # a rack of each node helps nobody
    assert [each.by for each in grouped(alone, "")] == ["none"]
    assert {each.name for each in grouped(nodes(), "state")} == {
        "busy", "partly busy", "free", "blocked", "off", "reserved",
    }  # fmt: skip


def test_a_group_sums_what_is_not_off() -> None:
    (group,) = [each for each in grouped(nodes(), "") if each.name == "r03"]
    assert group.count("gpus") == 8 * 19  # one of its nodes is off
    assert choices(nodes()) == {"type": ["a100", "h100", "milan"], "partition": ["cpu", "gpu"]}


def test_a_square_obeys_nothing_in_a_name() -> None:
    (node,) = nodes(1)
    evil = {**node, "name": "\"'><script>\x1b[31m&x=1"}
    html = str(squares([evil], str, lambda use: f"{use:.0%}", "/cluster?size=tiles"))
    assert html.count("<") == 2  # of the square alone
    assert "script&gt;" in html
    assert "\x1b" not in html
    assert 'href="/cluster?size=tiles&amp;text=%22%27%3E%3Cscript%3E%1B%5B31m%26x%3D1"' in html
    assert "href" not in str(squares([evil], str, str))


def test_a_square_shows_the_gpus_of_a_node_or_its_cores() -> None:
    now = {"cpu": 0.5, "memory": 0.1, "gpus": [["a", 1.0], ["b", 0.5], ["", None]]}
    assert use_of({"gpus": 2, "now": now}) == 0.75
    assert use_of({"gpus": 0, "now": {**now, "gpus": []}}) == 0.5
    assert use_of({"gpus": 2, "now": {**now, "gpus": []}}) is None  # its GPUs do not answer
    assert use_of({"gpus": 2}) is None
