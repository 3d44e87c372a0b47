"""The ranges of sizes in which one method of a collective is cheapest."""

from __future__ import annotations

import math

from peerway_measure.bench.collective_choice import Collective, rows

ESTIMATES = [
    (8, [("one-shot", 1.0), ("two-shot", 2.0), ("ring", 3.0)]),
    (16, [("one-shot", 1.0), ("two-shot", 1.5), ("ring", 3.0)]),
    (32, [("two-shot", 2.0), ("ring", 2.5), ("one-shot", 4.0)]),
]


def test_sizes_with_one_cheapest_method_are_a_row() -> None:
    small, large = rows(ESTIMATES)
    assert (small["from"], small["to"], small["shown_to"], small["via"]) == (8, 32, 16, "one-shot")
    assert (small["us_from"], small["us_to"]) == (1.0, 1.0)
    assert small["next"] == {"via": "two-shot", "us_from": 2.0, "us_to": 1.5, "margin": [0.5, 1.0]}
    assert (large["from"], large["to"], large["via"]) == (32, None, "two-shot")
    assert large["next"] == {"via": "ring", "us_from": 2.5, "us_to": 2.5, "margin": [0.25, 0.25]}


def test_without_costs_a_row_has_none() -> None:
    (row,) = rows([(8, [("two-shot", math.inf), ("one-shot", math.inf)])])
    assert (row["us_from"], row["next"], row["why"]) == (None, None, "fewest bytes; costs are not known")


def test_a_collective_with_one_method_has_no_next_best() -> None:
    (row,) = rows([(8, [("one-shot", 1.0)])])
    assert (row["via"], row["next"]) == ("one-shot", None)


def test_only_what_combines_has_an_order() -> None:
    assert Collective("all_reduce", 8, "any").title == "all_reduce in any order among 8 ranks"
    assert Collective("broadcast", 8, "any").title == "broadcast among 8 ranks"
