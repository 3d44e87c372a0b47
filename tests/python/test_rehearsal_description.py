"""What a description of a cluster asks for that a rehearsal cannot give is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from peerway.rehearse.cluster import description
from peerway.rehearse.cluster.description import BadDescription

TEXT = """
[[nodes]]
name = "thin"
[[partitions]]
name = "all"
nodes = ["thin"]
[[file_systems]]
name = "scratch14"
kind = "KIND"
"""


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        ("nodev\tproc\n\text4\n", "has neither nfs nor nfs4"),
        ("nodev\tproc\nnodev\tnfs4\n", "This kernel can mount NFS"),
    ],
)
def test_one_who_asks_for_nfs_hears_whether_the_kernel_could(kernel: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "filesystems").write_text(kernel)
    assert says in description._of_nfs("nfs", tmp_path / "filesystems")


def test_a_kind_that_is_not_served_is_refused_with_the_one_that_is(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(TEXT.replace("KIND", "lustre"))
    with pytest.raises(BadDescription, match=r"kind 'lustre'; only glusterfs is supported$"):
        description.read(tmp_path / "cluster.toml")
    (tmp_path / "cluster.toml").write_text(TEXT.replace("KIND", "nfs"))
    with pytest.raises(BadDescription, match=r"only glusterfs is supported\. This kernel"):
        description.read(tmp_path / "cluster.toml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "KIND"', "  threads = 0", r":9:3: scratch14 needs 1 to 64 threads"),
        ('kind = "KIND"', "cache_mb = 5000", r":9:1: scratch14 needs 1 to 64 threads and a cache"),
        ('kind = "KIND"', 'threads = "4"', r":9:1: threads is '4', but must be a whole number"),
        ('kind = "KIND"', "cach_mb = 1", r":9:1: FileSystem has no 'cach_mb'; there are name, kind"),
        ('name = "thin"', 'name = "a/b"', r":3:1: 'a/b' is not a valid name"),
        ('nodes = ["thin"]', 'nodes = ["fat"]', ":6:1: partition all names fat, which is not in "),
        ('nodes = ["thin"]', "", r":4:1: Partition needs nodes"),
        ("[[partitions]]", '[[nodes]]\nname = "thin"\n[[partitions]]', r":5:1: two types .* 'thin'"),
        ("[[nodes]]", "[nodes]", r":2:1: nodes are tables: \[\[nodes\]\]"),
        ("[[nodes]]", "[[nodes]", r":2:"),
        ("[[nodes]]", 'users = ["A"]\n[[nodes]]', r":2:1: 'A' is not a valid name"),
        ("[[nodes]]", "fabric = 3\n[[nodes]]", r":2:1: fabric is a table"),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, says: str, tmp_path: Path) -> None:
    good = TEXT.replace("KIND", "glusterfs").replace('kind = "glusterfs"', 'kind = "KIND"')
    text = good.replace(old, new, 1).replace("KIND", "glusterfs")
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(BadDescription, match=rf"cluster\.toml{says}"):
        description.read(tmp_path / "cluster.toml")
