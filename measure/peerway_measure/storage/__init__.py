"""Measures a mounted file system from its clients: docs/measure/storage.md says what is measured and how it
is proved.

`request` is the request and its cases. `measure` goes through them on each node with an engine of `engines`.
`states` judges what the caches held, and `results` makes records. Everything that touches the mount is done
by `operation`, within a time limit.
"""
