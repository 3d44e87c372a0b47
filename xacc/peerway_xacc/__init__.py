"""The XcalableACC compiler: a C program with `xmp` and `acc` directives becomes C with calls of a library.

driver       from command line to program: which files are translated, and how the C compiler is called
translate    the phases of one source file, and what each hands on
reading      the front end: preprocessor, directives, syntax
executable   which function lowers which directive, and in which order
surroundings what stands before and behind the text of a file

xacc/README.md describes the folders.
"""
