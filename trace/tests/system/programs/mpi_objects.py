"""What mpi4py sends as Python objects: its receives probe for a message, and take that one."""

from mpi4py import MPI

world = MPI.COMM_WORLD
other = 1 - world.rank
for turn in range(5):
    if world.rank == 0:
        world.send({"turn": turn}, dest=other, tag=turn)
        assert world.recv(source=MPI.ANY_SOURCE, tag=turn) == turn
    else:
        assert world.recv(source=0, tag=turn)["turn"] == turn
        world.send(turn, dest=other, tag=turn)
assert world.sendrecv("x" * 1000, dest=other, source=other) == "x" * 1000
