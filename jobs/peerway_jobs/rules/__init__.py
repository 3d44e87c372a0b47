"""Job rules: the language in which an administrator writes them, how they are read, and how they judge a
job.
"""
