"""Compute constructs of OpenACC: loops for CPU cores, and the text of a kernel with what launches it."""
