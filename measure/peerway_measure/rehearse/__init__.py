"""A virtual copy of a cluster, to rehearse an upgrade on: docs/measure/rehearsal.md.

cluster/     Slurm and file servers in namespaces of one machine
disk.py      what the copy's hosts have for a root: layers over this machine's, kept in one file
copy.py      both together: start, snapshot, roll back, stop
scenario.py  the steps of an upgrade, as their file says
upgrade.py   does them, with a way back
holder.py    the process in which a copy lives, and how commands reach it
"""
