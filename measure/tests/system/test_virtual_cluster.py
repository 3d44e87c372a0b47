"""The virtual cluster: what a description may say, and accounting. test_jobs_agents.py uses the rest."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from peerway_measure.rehearse.cluster import VirtualCluster, read, why_not
from peerway_measure.rehearse.cluster.configuration import addresses, gres_conf, slurm_conf
from peerway_measure.rehearse.cluster.description import BadDescription

PARTITION = '[[partitions]]\nname = "p"\nnodes = ["n"]\n'
WRONG = {
    "no nodes": PARTITION,
    "no partition": '[[nodes]]\nname = "n"\n',
    "a name with a slash": f'[[nodes]]\nname = "n/../x"\n{PARTITION}',
    "a setting that is none": f'[[nodes]]\nname = "n"\ncolour = 1\n{PARTITION}',
    "a partition of unknown nodes": f'[[nodes]]\nname = "m"\n{PARTITION}',
    "two types of one name": f'[[nodes]]\nname = "n"\n[[nodes]]\nname = "n"\n{PARTITION}',
    "no TOML": "[[nodes",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_a_wrong_description_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(text)
    with pytest.raises(BadDescription, match=r"cluster\.toml"):
        read(file)


def test_what_slurm_is_told() -> None:
    small = read()
    text = slurm_conf(small, Path("/f"), cgroups=True)
    assert "NodeName=h100-1 " in text
    assert "Gres=gpu:h100:8" in text
    assert "PartitionName=cpu Nodes=cpu-1,cpu-2 Default=YES" in text
    assert "ProctrackType=proctrack/linuxproc" in slurm_conf(small, Path("/f"), cgroups=False)
    assert "NodeName=a100-1 Name=gpu Type=a100 File=/f/dev/nvidia[0-3]" in gres_conf(small, Path("/f"))
    many = dataclasses.replace(small, nodes=(dataclasses.replace(small.nodes[0], count=600),))
    assert len(set(addresses(many).values())) == 600


@pytest.mark.long
def test_sacct_knows_a_job_and_its_account() -> None:
    description = dataclasses.replace(read(), accounting=True)
    if why := why_not(description):
        pytest.skip(why)
    with VirtualCluster(description) as cluster:
        job = cluster.sbatch("ann", script="true")
        deadline = time.monotonic() + 60
        accounts = ""
        while "COMPLETED" not in accounts and time.monotonic() < deadline:
            accounts = cluster.run("sacct", "-a", "-n", "-X", "-P", "-o", "JobID,User,Account,State").stdout
            time.sleep(0.2)
    assert accounts.strip() == f"{job}|ann|project-ann|COMPLETED"
