"""Mails to the owners of inefficient jobs. No mail is sent unless the server is given mail settings.

settings.py   reads and checks the file of settings
digest.py     whom to write to now, and what; only reads the database
post.py       sends a mail, by SMTP or a sendmail command
notices.py    limits how many mails go out and how often, and records each
"""
