"""The agent of one node: measures every 10 s, spools, sends (docs/jobs/agent.md).

settings.py   what an administrator may set      loop.py      one round after another
system.py     the node, its cores, NICs, disks   fabric.py    InfiniBand and Lustre
processes.py  /proc as a table                   steps.py     which processes and cgroups are which step
cgroups.py    figures of a cgroup, v1 and v2     gpus.py      NVML
ledger.py     intervals and slots                records.py   what prolog and epilog left
slurm.py      what scontrol says of a job        strangers.py foreign and left-over processes
spool.py      batches on disk                    sender.py    the thread that sends them
page.py       the OpenMetrics page               privileges.py what is dropped
"""
