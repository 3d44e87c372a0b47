"""`peerway doctor`: find out which GPUDirect technologies work on this node, and why others do not.

Probes gather facts (facts/) through one door to the machine (system.py); checks are pure functions from
facts to findings; page.py shows them on a terminal, report.py as JSON.
"""
