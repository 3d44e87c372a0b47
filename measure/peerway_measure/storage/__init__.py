"""Measuring a mounted file system from its clients: docs/measure/storage.md says what is measured and how it
is proved.

`request` says what was asked, `cases` makes cases of it, `measure` goes through them on each node with an
engine of `engines`, `states` judges what the caches held, and `results` makes records. Whatever touches the
mount is done by `operation`, within a time limit.
"""
