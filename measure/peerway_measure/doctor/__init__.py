"""`peerway doctor`: find out which GPUDirect technologies work on this node, and why others do not.

Probes gather facts (facts/). They reach the machine only through system.py. Checks are pure functions from
facts to findings. page.py shows findings on a terminal, report.py as JSON.
"""
