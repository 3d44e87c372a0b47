"""The XcalableACC compiler: it translates C with `xmp` and `acc` directives to C that calls a library.

driver           runs the compiler from command line to program: translates files and calls the C compiler
translate        runs the phases of one source file, and passes each result to the next phase
reading          runs the front end: preprocessor, directives, syntax
lower_directives lowers the executable directives of a file, in their order
surroundings     writes the text before and after that of a file

xacc/README.md describes the folders.
"""
