"""`peerway doctor`: which GPUDirect technology this node has, and what keeps the rest off.

Probes gather facts (facts.py) through one door to the machine (system.py); checks are pure functions from
facts to findings; page.py shows them on a terminal, report.py as JSON.
"""
