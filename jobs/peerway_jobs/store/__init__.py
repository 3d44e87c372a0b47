"""The stored data: jobs, allocations and verdicts in SQLite; samples in sealed chunks or in a time-series
database.
"""
