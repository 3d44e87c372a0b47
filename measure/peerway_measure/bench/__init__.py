"""`peerway bench`: timed transfers between ranks over every path, compared with MPI, UCX, NCCL and NVSHMEM.

The command (cli/bench.py) makes a list of cases. A session starts the ranks, and each rank runs the worker.
The results come back as records while the ranks still run.
"""
