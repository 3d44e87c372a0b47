"""Analysis finds out what directives and syntax say of the program.

It knows node arrays, templates, distributed arrays, loop nests, values and ranges. It works on a Mapped,
whose declarations are checked.
"""
