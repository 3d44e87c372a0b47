"""The agent of one node: it samples every 10 s, spools the batches and sends them (docs/jobs/agent.md).

settings.py   what an administrator may set      loop.py      one round after another
system.py     the node, its cores, NICs, disks   fabric.py    InfiniBand and Lustre
processes.py  the table of processes, from /proc steps.py     the processes and cgroup of each step
cgroups.py    figures of a cgroup, v1 and v2     gpus.py      NVIDIA's GPUs, through NVML
amd.py        AMD's GPUs, from files of amdgpu   node_gpus.py both as one list
ledger.py     open intervals and steps' slots    records.py   the files that prolog and epilog wrote
slurm.py      asks scontrol about a job          strangers.py foreign and left-over processes
spool.py      batches on disk                    sender.py    the thread that sends them
page.py       the OpenMetrics page               privileges.py drops root's privileges
"""
