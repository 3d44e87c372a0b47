"""What changed between two sets of records: groups, statistics, and what else was not the same."""
