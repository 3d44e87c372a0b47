"""Imports jobs of the past, before any agent was there.

sacct.py       reads the output of sacct, as text or JSON
jobstats.py    reads the totals that Jobstats keeps in AdminComment
totals.py      makes measurements of totals
prometheus.py  asks a Prometheus what its exporters measured on a node
exporters.py   makes measurements of that, and finds out which GPUs a job had
importing.py   stores and judges what was read
"""
