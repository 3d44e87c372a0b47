"""The texts of slurm.conf, gres.conf, cgroup.conf and slurmdbd.conf: pure functions of the description."""

from __future__ import annotations

from pathlib import Path

from peerway_measure.rehearse.cluster.description import Description, NodeType

HEAD = "head"
HEAD_ADDRESS = "10.77.0.1"

SLURM = """
ClusterName=virtual
SlurmctldHost={head}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/log/slurmctld.pid
SlurmdPidFile={folder}/log/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
SlurmdTimeout=10
ProctrackType={proctrack}
TaskPlugin={task}
JobAcctGatherType={gather}
JobAcctGatherFrequency=task=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MpiDefault=none
MailProg=/bin/true
JobCompType=jobcomp/none
GresTypes=gpu
DefMemPerCPU=1000
PrologFlags=Alloc
"""

CGROUP = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainCores=no
ConstrainRAMSpace=yes
ConstrainSwapSpace=no
ConstrainDevices=yes
"""

DBD = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={head}
DbdAddr=127.0.0.1
SlurmUser=root
DebugLevel=info
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/log/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
"""


def addresses(description: Description) -> dict[str, str]:
    """The address of each node and file server; HEAD_ADDRESS is the head's."""
    return {
        name: f"10.77.{(place + 10) // 250}.{(place + 10) % 250 + 1}"
        for place, name in enumerate(description.hosts())
    }


def slurm_conf(description: Description, folder: Path, cgroups: bool) -> str:
    """The whole slurm.conf. With `cgroups` jobs are put into cgroups of version 1; otherwise Slurm follows
    /proc.
    """
    text = SLURM.format(
        head=HEAD, address=HEAD_ADDRESS, folder=folder,
        proctrack="proctrack/cgroup" if cgroups else "proctrack/linuxproc",
        task="task/cgroup" if cgroups else "task/none",
        gather="jobacct_gather/cgroup" if cgroups else "jobacct_gather/linux",
    )  # fmt: skip
    settings = dict(description.settings)
    if description.accounting:
        settings |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePass": f"{folder}/munge.socket",  # for auth/munge the path of munged's socket
            "AccountingStorageTRES": "gres/gpu",
            "AccountingStoreFlags": "job_comment,job_script",
        }
    lines = [f"{name}={value}" for name, value in settings.items()]
    at = addresses(description)
    lines += [_node(name, type_, at[name]) for name, type_ in description.types().items()]
    by_type = {type_.name: type_.names() for type_ in description.nodes}
    for place, partition in enumerate(description.partitions):
        nodes = ",".join(name for type_ in partition.nodes for name in by_type[type_])
        default = " Default=YES" if place == 0 else ""
        lines.append(f"PartitionName={partition.name} Nodes={nodes}{default} MaxTime=1-0 State=UP")
    return text + "\n".join(lines) + "\n"


def _node(name: str, type_: NodeType, address: str) -> str:
    words = [
        f"NodeName={name} NodeAddr={address} Sockets={type_.sockets} CoresPerSocket={type_.cores}",
        f"ThreadsPerCore={type_.threads} RealMemory={type_.memory_mb} State=UNKNOWN",
    ]
    if type_.features:
        words.append(f"Feature={','.join(type_.features)}")
    if type_.gpus:
        words.append(f"Gres=gpu:{type_.name}:{type_.gpus}")
    return " ".join(words)


def gres_conf(description: Description, folder: Path) -> str:
    """The device files of the fake GPUs of each node."""
    lines = ["AutoDetect=off"]
    for name, type_ in description.types().items():
        if type_.gpus:
            files = f"{folder}/dev/nvidia[0-{type_.gpus - 1}]" if type_.gpus > 1 else f"{folder}/dev/nvidia0"
            lines.append(f"NodeName={name} Name=gpu Type={type_.name} File={files}")
    return "\n".join(lines) + "\n"
