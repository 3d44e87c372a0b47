"""The monitor of a cluster's jobs: agents on the nodes, a server, rules and pages (docs/jobs/design.md)."""
