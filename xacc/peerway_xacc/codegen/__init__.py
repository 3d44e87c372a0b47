"""Compute constructs of OpenACC: loops for CPU cores, and the text of a kernel for a GPU with what launches it."""
