"""A copy of a cluster whose file system is NFS: NFS-Ganesha, and libnfs, a client outside the kernel, so that
this runs where the kernel has no NFS. Nothing is mounted: the script for that does nothing here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_rehearse import EXAMPLE, LIMIT_S, Rehearsed

from peerway_measure.rehearse import holder
from peerway_measure.rehearse.cluster import read, why_not
from peerway_measure.rehearse.cluster.needs import PATH

pytestmark = pytest.mark.cluster
HOLDER = """
import sys
from pathlib import Path
from peerway_measure.rehearse import holder
from peerway_measure.rehearse.cluster import ganesha
ganesha.MOUNT = "#!/bin/sh\\n"
sys.exit(holder.main(Path(sys.argv[1])))
"""
AT = "version=4&uid=0&gid=0"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    if why := why_not(read(EXAMPLE / "cluster.toml")):
        pytest.skip(why)
    if lacking := [name for name in ("ganesha.nfsd", "nfs-cp") if not shutil.which(name, path=PATH)]:
        pytest.skip(f"{', '.join(lacking)} not installed (apt-get install nfs-ganesha-vfs libnfs-utils)")
    folder = tmp_path_factory.mktemp("rehearsal") / "copy"
    shutil.copytree(EXAMPLE, folder)
    file = folder / "cluster.toml"
    text = file.read_text().replace('name = "scratch"', 'name = "scratch"\nkind = "nfs"')
    file.write_text(text.replace("threads = 1 ", "threads = 4 "))
    rehearsed = Rehearsed(folder)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=log, stderr=log)
    try:
        until = time.monotonic() + LIMIT_S
        while not (folder / holder.SOCKET).exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
        yield rehearsed
    finally:
        rehearsed.verb("remove")
        process.wait(LIMIT_S)


def address(copy: Rehearsed) -> str:
    text = copy.on("head", "cat /usr/local/sbin/mount-scratch /usr/local/sbin/drop-scratch", "--root")
    return text.partition('create_connection(("')[2].partition('"')[0]


def test_a_node_reads_over_nfs_what_another_one_wrote(copy: Rehearsed) -> None:
    url = f"nfs://{address(copy)}/scratch/FILE?{AT}"
    copy.on(
        "cpu-1", f"head -c 1000 /dev/urandom >/tmp/f; nfs-cp /tmp/f '{url.replace('FILE', 'f')}'", "--root"
    )
    theirs = copy.on("cpu-2", f"nfs-cat '{url.replace('FILE', 'f')}' | sha256sum", "--root")
    assert theirs == copy.on("cpu-1", "sha256sum </tmp/f", "--root")


def test_the_server_drops_its_cache_when_a_client_asks(copy: Rehearsed) -> None:
    assert copy.verb("shell", "--host", "cpu-2", "drop-scratch").returncode == 0


def test_a_rollback_brings_back_what_the_server_had(copy: Rehearsed) -> None:
    url = f"nfs://{address(copy)}/scratch/kept?{AT}"
    copy.on("cpu-1", f"echo kept >/tmp/kept; nfs-cp /tmp/kept '{url}'", "--root")
    assert copy.verb("snapshot", "clean").returncode == 0
    copy.on(
        "scratch-server", "rm $(sed -n 's/ *Path = \\(.*\\);/\\1/p' /etc/ganesha/scratch.conf)/kept", "--root"
    )
    assert copy.verb("shell", "--host", "cpu-2", "--root", "nfs-cat", url).stdout == ""
    back = copy.verb("rollback", "clean")
    assert back.returncode == 0, back.stdout
    assert copy.on("cpu-2", f"nfs-cat '{url}'", "--root") == "kept\n"


def test_start_says_where_the_kernel_has_no_nfs(copy: Rehearsed, tmp_path: Path) -> None:
    why = why_not(read(copy.folder / "cluster.toml"))
    if not why:
        pytest.skip("this kernel can mount NFS")
    shutil.copy(copy.folder / "cluster.toml", tmp_path)
    started = Rehearsed(tmp_path).verb("start")
    assert started.returncode == 1
    assert "/scratch is of the kind nfs, which this kernel cannot mount: /proc/filesystems has no nfs4" in (
        started.stderr.replace("\n", " ")
    )
    assert not (tmp_path / "disk.img").exists()
