"""Start a program as several ranks: decide where each rank runs, start it, pass on its output, and end the
job.
"""
