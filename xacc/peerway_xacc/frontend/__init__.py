"""The front end turns the text of a program into plain objects, and returns directives and a syntax.

It reads the preprocessor's output, tokens, directives by the grammars of XcalableMP and OpenACC, and what
libclang says of functions, types and uses.
"""
