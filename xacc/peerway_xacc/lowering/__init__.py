"""Turns each directive into C: the declarations of distributed arrays, the bounds of loops, subscripts,
halos, gmove, coarrays and the data directives.

It hands on edits of the program's text: what no edit names stays the user's.
"""
