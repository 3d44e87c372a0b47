"""What a description of a cluster asks for that a rehearsal cannot give is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from peerway_measure.rehearse.cluster import VirtualCluster, description, servers
from peerway_measure.rehearse.cluster.description import BadDescription, FileSystem

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
    ("kind", "kernel", "says"),
    [
        ("nfs", "nodev\tproc\n\text4\n", "/scratch14 is of the kind nfs, which this kernel cannot mount: "),
        ("nfs", "nodev\tproc\nnodev\tnfs4\n", ""),
        ("glusterfs", "nodev\tproc\n\text4\n", ""),
    ],
)
def test_a_file_system_is_refused_where_the_kernel_cannot_mount_it(
    kind: str, kernel: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "filesystems").write_text(kernel)
    (tmp_path / "cluster.toml").write_text(TEXT.replace("KIND", kind))
    file_systems = description.read(tmp_path / "cluster.toml").file_systems
    assert servers.why_not(file_systems, tmp_path / "filesystems").startswith(says)
    assert bool(servers.why_not(file_systems, tmp_path / "filesystems")) == bool(says)


def test_each_kind_needs_its_own_programs() -> None:
    both = [FileSystem("a", "nfs"), FileSystem("b"), FileSystem("c")]
    assert servers.programs(both)[0] == ["ganesha.nfsd", "mount.nfs4", "glusterfsd", "glusterfs"]
    assert servers.programs(both[1:])[1] == "glusterfs-server glusterfs-client"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "KIND"', "  threads = 0", r":9:3: scratch14 needs 1 to 64 threads"),
        ('kind = "KIND"', "cache_mb = 5000", r":9:1: scratch14 needs 1 to 64 threads and a cache"),
        ('kind = "KIND"', 'threads = "4"', r":9:1: threads is '4', but must be a whole number"),
        (
            'kind = "KIND"',
            'kind = "lustre"',
            r":9:1: scratch14 has the kind 'lustre'; there are glusterfs, nfs",
        ),
        ('kind = "KIND"', 'kind = "nfs"\ncache_mb = 1', r":10:1: scratch14 is NFS, whose clients cache in"),
        ('kind = "KIND"', 'kind = "nfs"\nthreads = 1', r":10:1: scratch14 needs 2 to 64 threads"),
        ('kind = "KIND"', "cach_mb = 1", r":9:1: a file system has no 'cach_mb'; there are name, kind"),
        ('name = "thin"', 'name = "a/b"', r":3:1: 'a/b' is not a valid name"),
        ('nodes = ["thin"]', 'nodes = ["fat"]', ":6:1: partition all names fat, which is not in "),
        ('nodes = ["thin"]', "", r":4:1: a partition needs nodes"),
        ("[[partitions]]", '[[nodes]]\nname = "thin"\n[[partitions]]', r":5:1: two types .* 'thin'"),
        ("[[nodes]]", "[nodes]", r":2:1: nodes must be tables: \[\[nodes\]\]"),
        ("[[nodes]]", "[[nodes]", r":2:"),
        ("[[nodes]]", 'users = ["A"]\n[[nodes]]', r":2:1: 'A' is not a valid name"),
        ('name = "thin"', 'name = "thin"\ncount = 0', r":4:1: count is 0, but must be 1 or more"),
        ('name = "thin"', 'name = "thin"\ngpus = -1', r":4:1: gpus is -1, but must be 0 or more"),
        ('name = "thin"', 'name = "thin"\ncount = 5000', r":4:1: that makes 5,001 hosts; a copy has at most"),
        ("[[nodes]]", "users = []\n[[nodes]]", r":2:1: a copy needs a user; write for example"),
        ("[[nodes]]", 'users = ["ann", "ann"]\n[[nodes]]', r":2:1: ann is there already; name each user"),
        ("[[nodes]]", 'users = ["root"]\n[[nodes]]', r":2:1: root is there already; name each user"),
        (
            "[[nodes]]",
            "fabric.bandwidth = '10 Gbit'\n[[nodes]]",
            r":2:1: '10 Gbit' is not a bandwidth; write",
        ),
        ("[[nodes]]", "fabric = 3\n[[nodes]]", r":2:1: fabric must be a table"),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, says: str, tmp_path: Path) -> None:
    good = TEXT.replace("KIND", "glusterfs").replace('kind = "glusterfs"', 'kind = "KIND"')
    text = good.replace(old, new, 1).replace("KIND", "glusterfs")
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(BadDescription, match=rf"cluster\.toml{says}"):
        description.read(tmp_path / "cluster.toml")


def test_a_folder_that_slurms_files_cannot_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(TEXT.replace("KIND", "nfs"))
    with pytest.raises(BadDescription, match=r"cannot be in '/a home/copy'.*name a folder without one"):
        VirtualCluster(description.read(tmp_path / "cluster.toml"), Path("/a home/copy"))
