"""`peerway bench`: timed transfers between ranks over every path, compared with MPI, UCX, NCCL and NVSHMEM.

The verb (cli/bench.py) makes a plan, a session starts the ranks, the worker is what each rank runs, and the
results come back as records while the ranks still run.
"""
