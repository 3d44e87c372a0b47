"""Turns each directive into C: the declarations of distributed arrays, the bounds of loops, subscripts, halos,
gmove, coarrays and the data directives. What it makes are edits of the program's text: unchanged text stays.
"""
