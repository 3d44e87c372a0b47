"""The XcalableACC compiler: a C program with `xmp` and `acc` directives becomes C with calls of a library.

driver       the command line: which files are translated, and how the site's compiler is called
preprocess   which directives are active, with their macros expanded, by the C compiler itself
tokens, parser, xmp, acc       a directive's text becomes one of the classes of directives.py
syntax, uses, source           types, scopes and statements, from libclang, as plain objects
structs, members               arrays and pointers that are members of structs
fixing       templates that are fixed while the program runs: where their arrays are made, and reached
written      which constructs may write which array, so that reflects of others are free
kernel, left                   a construct's code for a GPU; or its directive for an OpenACC compiler
paths        what each communication sends, and by which path, for --explain
unit         one source file: its directives are checked against its syntax, and its text is edited
"""
