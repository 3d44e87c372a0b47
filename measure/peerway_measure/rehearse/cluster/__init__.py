"""A real Slurm of several virtual nodes on one machine, with file servers where asked for: a library, and
`python -m peerway_measure.rehearse.cluster` (see __main__.py).

    description.py   what the cluster is, read from TOML
    configuration.py the texts of slurm.conf and its siblings
    spaces.py        namespaces in which a node, or the head, lives; all in them dies with this process
    accounting.py    MariaDB and slurmdbd, where they are installed
    servers.py       file servers and their clients: the scripts that start them, made of the description,
                     in glusterfs.py and ganesha.py those of a kind
    gpus.py          the fake GPUs: device files for Slurm, figures for the agent
    cgroups.py       the parts of cgroups that the nodes get
    files.py         what is written for the hosts to read
    needs.py         what the cluster needs of this machine
    virtual.py       the cluster as a whole: start, run something as somebody somewhere, kill a node, stop

Needs root, Linux namespaces, and Debian's munge, slurmctld, slurmd, slurm-client; `why_not` says what lacks.
"""

from __future__ import annotations

from peerway_measure.rehearse.cluster.description import Description, read
from peerway_measure.rehearse.cluster.needs import check_folder, why_not
from peerway_measure.rehearse.cluster.virtual import VirtualCluster

__all__ = ["Description", "VirtualCluster", "check_folder", "read", "why_not"]
