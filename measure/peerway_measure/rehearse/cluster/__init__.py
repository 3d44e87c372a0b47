"""A real Slurm of several virtual nodes on one machine, with file servers on request. It is a library, and a
program: `python -m peerway_measure.rehearse.cluster` (see __main__.py).

    description.py    the description of the cluster, read from TOML
    configuration.py  the texts of slurm.conf and similar files
    spaces.py         the namespaces in which a host lives; all processes in them die with this process
    accounting.py     MariaDB and slurmdbd, if they are installed
    servers.py        scripts that start file servers and mount them; glusterfs.py and ganesha.py have the
                      parts of each kind
    gpus.py           the fake GPUs: device files for Slurm, figures for the agent
    cgroups.py        the cgroups of the nodes
    files.py          writes the files that the hosts read
    user_data.py      writes files of users
    needs.py          checks whether this machine can run the cluster
    virtual.py        the whole cluster: start, run a command on a host as a user, kill a node, stop

It needs root, Linux namespaces, and Debian's munge, slurmctld, slurmd and slurm-client. `why_not` says what
is missing.
"""

from __future__ import annotations

from peerway_measure.rehearse.cluster.description import Description, read
from peerway_measure.rehearse.cluster.needs import check_folder, why_not
from peerway_measure.rehearse.cluster.virtual import VirtualCluster

__all__ = ["Description", "VirtualCluster", "check_folder", "read", "why_not"]
