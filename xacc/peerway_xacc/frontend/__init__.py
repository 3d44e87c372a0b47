"""From the text of a program to plain objects: the preprocessor's output, tokens, directives by the grammars
of XcalableMP and OpenACC, and what libclang says of functions, types and uses.

It hands on directives and a syntax.
"""
