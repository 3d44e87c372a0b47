"""Notices by mail to the owners of inefficient jobs: off unless the server is given their settings.

settings.py   the file of settings, read and checked
digest.py     whom to write to now, and what: pure reading of the database
post.py       SMTP, or a sendmail command
notices.py    at most so many, so often, and each kept
"""
