"""Layouts of Lustre as data: what a user may ask for, and what `lfs getstripe` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from peerway_measure.storage import stripes
from peerway_measure.storage.request import Request

PLAIN = "stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\n"
OF_A_FILE = """/scratch/f
lmm_stripe_count:  2
lmm_stripe_size:   65536
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 1
\tobdidx\t\t objid\t\t objid\t\t group
\t     1\t         12345\t       0x3039\t             0
"""
COMPONENTS = """/scratch/d
  lcm_layout_gen:    0
  lcm_mirror_count:  1
  lcm_entry_count:   2
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   67108864
      stripe_count:  1       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1

    lcme_id:             N/A
    lcme_flags:          0
    lcme_extent.e_start: 67108864
    lcme_extent.e_end:   EOF
      stripe_count:  -1       stripe_size:   4194304       pattern:       raid0       stripe_offset: -1
"""


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (PLAIN, {"stripe_count": "4", "stripe_size": "1048576", "pattern": "raid0"}),
        (OF_A_FILE, {"stripe_count": "2", "stripe_size": "65536", "pattern": "raid0"}),
        (COMPONENTS, {"stripe_layout": "1 of 1048576 to 64 MiB, -1 of 4194304 to the end"}),
        ("not a lustre file system", {}),
        ("/scratch/f has no stripe info\n", {}),
    ],
)
def test_layouts_are_read_as_lfs_prints_them(text: str, layout: dict[str, str]) -> None:
    assert stripes.read(text) == layout


@pytest.mark.parametrize(
    ("text", "name"),
    [("4", "stripes 4"), ("-1", "stripes all"), ("2:16M", "stripes 2 of 16 MiB"), ("", "")],
)
def test_a_record_names_the_layout_that_was_asked_for(text: str, name: str) -> None:
    assert stripes.name(text) == name


@pytest.mark.parametrize("text", ["0", "-2", "x", "4:", "4:1000", "4:0", "4:16Q", "4;rm", "99999"])
def test_what_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a stripe layout; write a count such as 4"):
        stripes.parse(text)


def test_only_lfs_looks_at_a_path_because_its_mount_may_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(stripes, "_lfs", lambda *words, limit_s: calls.append(words) or PLAIN)
    for folder in (True, False):
        assert stripes.layout_of(Path("/nowhere/on/a/mount"), 5, folder=folder)["stripe_count"] == "4"
    assert calls == [("getstripe", "-d", "/nowhere/on/a/mount"), ("getstripe", "/nowhere/on/a/mount")]


def test_another_layout_than_was_asked_for_is_told() -> None:
    got = {"stripe_count": "4", "stripe_size": "1048576"}
    assert stripes.differs("8", got) == "stripes 8 were asked for, and its files have 4 of 1 MiB"
    assert (
        stripes.differs("4:16M", got) == "stripes 4 of 16 MiB were asked for, and its files have 4 of 1 MiB"
    )
    assert stripes.differs("4:1M", got) == stripes.differs("-1", got) == stripes.differs("8", {}) == ""


def test_each_layout_is_a_case_and_a_shape_of_its_own() -> None:
    request = Request(place=Path("/x"), tests=("write",), streams=(1, 2), stripes=("", "4:16M"))
    assert [(f.streams, f.shape("write")) for f in request.files()] == [
        (1, "sequential 1 MiB"),
        (1, "sequential 1 MiB stripes 4 of 16 MiB"),
        (2, "sequential 1 MiB"),
        (2, "sequential 1 MiB stripes 4 of 16 MiB"),
    ]
