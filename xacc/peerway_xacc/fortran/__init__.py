"""`peerway fc`: directives in Fortran.

`source.py` joins lines, `structure.py` finds program units, and `grammar.py` reads directives by the grammars
of C. `arrays.py`, `loops.py`, `gmove.py`, `array_on.py` and `coarrays.py` lower what is Fortran's own, and
`lowering/` the rest. `generated.py` writes the Fortran text and the C beside it.
"""
