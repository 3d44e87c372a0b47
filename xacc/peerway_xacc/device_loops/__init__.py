"""Writes loops of the host whose scalars can live on the GPU a second time, in directives of their own.

The copy is C with directives, which the phases after this one translate like the program's own text: scalars
that the loop writes become variables on the device, arithmetic with them becomes `acc serial`, and the loop's
condition a state that the run-time library reads, or that a CUDA graph tests. `loops.py` begins.
"""
