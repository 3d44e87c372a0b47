"""A virtual copy of a cluster, to rehearse an upgrade on: docs/measure/rehearsal.md.

cluster/       Slurm and file servers in namespaces of one machine
disk.py        the root of the copy's hosts: layers over this machine's root, kept in one file
copy.py        disk and cluster together: start, snapshot, roll back, stop
scenario.py    reads the file with the steps of an upgrade
upgrade.py     carries out the steps, and rolls back if one fails
user_files.py  lists the files of users, to find out whether an upgrade changed any
holder.py      the process in which a copy lives, and how commands reach it
"""
