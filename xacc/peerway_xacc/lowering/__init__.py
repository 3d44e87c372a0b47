"""Lowering turns each directive into C.

It writes the declarations of distributed arrays, the bounds of loops, subscripts, halos, gmove, coarrays and
the data directives, as edits of the program's text. Text that no edit names stays as the user wrote it.
"""
