"""What the tests of `peerway.jax` run on the ranks of programs/jax_plans.py, on CPUs and on GPUs."""

from __future__ import annotations

import json

from ranks import Ranks

# By number of ranks: extents of the whole array, process grid, (lower, upper) layers, corners.
HALOS: dict[int, list[tuple[list[int], list[int], list[list[int]], bool]]] = {
    1: [([6, 5], [1], [[1, 1], [0, 0]], False)],
    2: [
        ([8, 5], [2], [[1, 1], [0, 0]], False),
        ([8, 6], [2, 1], [[2, 1], [1, 2]], True),
        ([6, 4, 3], [1, 2], [[1, 0], [0, 1], [0, 0]], False),
    ],
    4: [([8, 6], [2, 2], [[1, 1], [1, 1]], True), ([8, 6, 2], [2, 2], [[1, 2], [2, 1], [0, 0]], False)],
}
MISTAKES: dict[str, list[str]] = {
    "shape": ["InvalidArgument", "array 0 is float64 of shape (5,)", "made for float64 of shape (4,)"],
    "type": ["InvalidArgument", "array 0 is float32"],
    "count": ["InvalidArgument", "0 arrays; the exchange takes 1"],
    "halo": ["InvalidArgument", "an array of float32 of shape (4,); the halo was made for float64"],
    "other exchange": ["InvalidArgument", "`started` is not from a start of this exchange"],
    "other halo": ["InvalidArgument", "`started` is not from a start of this halo"],
    "grid": ["InvalidArgument", "a process grid of"],
    "narrow": ["InvalidArgument", "4 elements in dimension 0 with a shadow of 2:2 leave 0"],
    "closed": ["a compiled function uses an exchange, a halo or a collective that was closed"],
    "collective": ["InvalidArgument", "array 0 is int32", "the collective was made for float32"],
    "twice": ["was started before and is not finished"],
    "parts": ["InvalidArgument", "reduce_scatter: `source` has", "the elements of all parts"],
}


def expect_right_halos(ranks: int, **settings: str) -> None:
    """Run all jobs on so many ranks: each halo and each array that comes must be right."""
    names = ("extents", "grid", "layers", "corners")
    words = [json.dumps(["differing", dict(zip(names, case, strict=True))]) for case in HALOS[ranks]]
    words += ['["ring"]', '["mistakes"]']
    with Ranks("jax_plans.py", ranks, *words, **settings) as running:
        for case in HALOS[ranks]:
            assert running.read_all() == [0] * ranks, case
        for rank, answer in enumerate(running.read_all()):
            left = (rank - 1) % ranks
            assert answer == [[left, left, left + 10]] * 2
        for answer in running.read_all():
            for mistake, words_of_it in MISTAKES.items():
                assert all(word in answer[mistake] for word in words_of_it), answer[mistake]
        running.end()


def expect_right_collectives(ranks: int, **settings: str) -> None:
    """Run collectives of several types on so many ranks, and on some of four."""
    cases: list[list[object]] = [
        ["differing_results", dtype, None] for dtype in ("float32", "bfloat16", "int64")
    ]
    if ranks == 4:
        cases.append(["differing_results", "float64", [3, 1]])
    with Ranks("jax_plans.py", ranks, *map(json.dumps, cases), **settings) as running:
        for case in cases:
            assert running.read_all() == [[]] * ranks, case
        running.end()


def expect_loss_is_told(plan: str, **settings: str) -> None:
    """Kill a rank while both are in a compiled loop: the other's loop ends with the error."""
    with Ranks("jax_plans.py", 2, json.dumps(["lost", plan]), **settings) as running:
        assert running.read_all() == ["begun"] * 2
        running.kill(1)
        assert "rank 1" in (answer := running.read(0)), answer
