"""Compare two sets of records: groups, statistics, and what else differs between the sides."""
