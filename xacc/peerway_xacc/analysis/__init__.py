"""From directives and syntax to what is known of the program: node arrays, templates, distributed arrays,
loop nests, values and ranges.

It hands on a Unit whose directives are checked.
"""
