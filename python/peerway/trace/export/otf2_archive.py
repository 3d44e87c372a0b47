"""OTF2, the format of Score-P, Scalasca and Vampir: regions, messages and collectives of MPI, one-sided
operations.

A communicator has as members the ranks that the trace saw in it, in the order of the world. Puts and gets of
Peerway are those of a window of all ranks, named as their path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from peerway.trace.export.timeline import Step, steps, threads
from peerway.trace.rings import Kind
from peerway.trace.store import Trace

COLLECTIVES = (
    ("allreduce", "ALLREDUCE"), ("reduce_scatter_block", "REDUCE_SCATTER_BLOCK"),
    ("reduce_scatter", "REDUCE_SCATTER"),
    ("reduce", "REDUCE"), ("allgatherv", "ALLGATHERV"), ("allgather", "ALLGATHER"), ("gatherv", "GATHERV"),
    ("gather", "GATHER"), ("scatterv", "SCATTERV"), ("scatter", "SCATTER"), ("alltoallw", "ALLTOALLW"),
    ("alltoallv", "ALLTOALLV"), ("alltoall", "ALLTOALL"), ("bcast", "BCAST"), ("exscan", "EXSCAN"),
    ("scan", "SCAN"),
)  # fmt: skip
OF_COMM = (Kind.SEND, Kind.RECV, Kind.ISEND, Kind.SENT, Kind.RECEIVED, Kind.COLLECTIVE)
OF_WINDOW = (Kind.PUT, Kind.GET, Kind.RMA_PUT, Kind.RMA_GET)


def export(trace: Trace, target: Path) -> None:
    """Write a trace as an archive, a folder. Raises OSError and otf2's errors."""
    import otf2

    with otf2.writer.open(str(target), timer_resolution=10**9) as archive:
        _Exporter(trace, archive).write()


class _Exporter:
    def __init__(self, trace: Trace, archive: Any) -> None:
        import otf2

        self._otf2, self._trace, self._archive = otf2, trace, archive
        self._definitions = archive.definitions
        self._threads = threads(trace)
        self._locations = self._define_locations()
        self._regions: dict[tuple[int, int], Any] = {}
        self._comms: dict[int, tuple[Any, dict[int, int]]] = {}
        self._windows: dict[int, tuple[Any, dict[int, int]]] = {}
        self._define_groups()
        self._requests = self._number_requests()

    def write(self) -> None:
        """All events of all threads."""
        for thread, location in zip(self._threads, self._locations, strict=True):
            writer = self._archive.event_writer_from_location(location)
            for step in steps(self._trace, thread.events):
                self._step(writer, step)

    def _define_locations(self) -> list[Any]:
        otf2, define = self._otf2, self._definitions
        root = define.system_tree_node("job", class_name="machine")
        nodes: dict[str, Any] = {}
        groups: dict[tuple[str, int], Any] = {}
        found = []
        for thread in self._threads:
            one = thread.first
            if one.host not in nodes:
                nodes[one.host] = define.system_tree_node(one.host, class_name="node", parent=root)
            key = (one.host, one.pid)
            if key not in groups:
                name = f"rank {one.rank}" if one.rank >= 0 else f"process {one.pid}"
                groups[key] = define.location_group(
                    name,
                    location_group_type=otf2.LocationGroupType.PROCESS,
                    system_tree_parent=nodes[one.host],
                )
            name = f"{one.thread or 'thread'} {one.tid}"
            found.append(define.location(name, type=otf2.LocationType.CPU_THREAD, group=groups[key]))
        return found

    def _define_groups(self) -> None:
        """A location stands for each rank: the first of its threads."""
        otf2, trace = self._otf2, self._trace
        of_rank: dict[int, Any] = {}
        for thread, location in zip(self._threads, self._locations, strict=True):
            if thread.first.rank >= 0:
                of_rank.setdefault(thread.first.rank, location)
        members = _members(trace)
        for kinds, paradigm, known in (
            (OF_COMM, otf2.Paradigm.MPI, self._comms), (OF_WINDOW, otf2.Paradigm.SHMEM, self._windows),
        ):  # fmt: skip
            which = np.isin(trace["kind"], kinds)
            if not which.any():
                continue
            define = self._definitions
            ordered = sorted(of_rank)
            define.group(
                "all ranks", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=paradigm,
                members=[of_rank[rank] for rank in ordered],
            )  # fmt: skip
            for where in np.unique(trace["where"][which]):
                name = trace.names[where] or "unknown"
                own = [rank for rank in sorted(members[int(where)]) if rank in of_rank]
                ranks = own if kinds is OF_COMM else ordered
                group = define.group(
                    name, group_type=otf2.GroupType.COMM_GROUP, paradigm=paradigm,
                    members=[of_rank[rank] for rank in ranks],
                )  # fmt: skip
                made = define.comm(name, group=group)
                if kinds is OF_WINDOW:
                    made = define.rma_win(name, comm=made)
                known[int(where)] = (made, {rank: place for place, rank in enumerate(ranks)})

    def _number_requests(self) -> dict[int, int]:
        """A number for each request: both of its events begin at one time in one thread."""
        trace = self._trace
        numbers: dict[tuple[bool, int, int], list[int]] = {}
        result: dict[int, int] = {}
        for kinds, fresh in (((Kind.ISEND, Kind.IRECV), True), ((Kind.SENT, Kind.RECEIVED), False)):
            for event in np.flatnonzero(np.isin(trace["kind"], kinds)).tolist():
                sends = trace["kind"][event] in (Kind.ISEND, Kind.SENT)
                process = trace.threads[trace["thread"][event]].pid
                key = (sends, process, int(trace["begin"][event]))
                if fresh:
                    result[event] = len(result) + 1
                    numbers.setdefault(key, []).append(result[event])
                elif numbers.get(key):
                    result[event] = numbers[key].pop(0)
        return result

    def _region(self, event: int) -> Any:
        trace, otf2 = self._trace, self._otf2
        kind, name = int(trace["kind"][event]), int(trace["name"][event])
        if (kind, name) not in self._regions:
            paradigm = otf2.Paradigm.MPI if trace.names[name].startswith("MPI_") else otf2.Paradigm.SHMEM
            if kind == Kind.REGION:
                paradigm = otf2.Paradigm.USER
            role = otf2.RegionRole.FUNCTION
            self._regions[kind, name] = self._definitions.region(
                trace.names[name] or "unnamed", region_role=role, paradigm=paradigm
            )
        return self._regions[kind, name]

    def _step(self, writer: Any, step: Step) -> None:
        event = step.event
        if step.what == "begin":
            writer.enter(step.time, self._region(event))
            self._at_begin(writer, step.time, event)
        elif step.what == "end":
            self._at_end(writer, step.time, event)
            writer.leave(step.time, self._region(event))
        else:
            self._at_end(writer, step.time, event)

    def _message(self, event: int) -> tuple[int, Any, int, int] | None:
        """Peer in the communicator, the communicator, tag and bytes; None where the peer is unknown."""
        trace = self._trace
        comm, places = self._comms[int(trace["where"][event])]
        peer = places.get(int(trace["peer"][event]))
        if peer is None:
            return None
        return peer, comm, max(0, int(trace["tag"][event])), int(trace["bytes"][event])

    def _at_begin(self, writer: Any, time: int, event: int) -> None:
        trace, kind = self._trace, int(self._trace["kind"][event])
        if kind in (Kind.SEND, Kind.ISEND):
            message = self._message(event)
            if message is None:
                return
            if kind == Kind.SEND:
                writer.mpi_send(time, *message)
            else:
                writer.mpi_isend(time, *message, self._requests[event])
        elif kind == Kind.IRECV:
            writer.mpi_irecv_request(time, self._requests[event])
        elif kind == Kind.COLLECTIVE:
            writer.mpi_collective_begin(time)
        elif kind in OF_WINDOW:
            window, places = self._windows[int(trace["where"][event])]
            peer = places.get(int(trace["peer"][event]))
            if peer is None:
                return
            put = kind in (Kind.PUT, Kind.RMA_PUT)
            (writer.rma_put if put else writer.rma_get)(time, window, peer, int(trace["bytes"][event]), event)

    def _at_end(self, writer: Any, time: int, event: int) -> None:
        trace, kind = self._trace, int(self._trace["kind"][event])
        if kind in (Kind.RECV, Kind.RECEIVED):
            message = self._message(event)
            if message is not None and event in self._requests:
                writer.mpi_irecv(time, *message, self._requests[event])
            elif message is not None:
                writer.mpi_recv(time, *message)
        elif kind == Kind.SENT and event in self._requests:
            writer.mpi_isend_complete(time, self._requests[event])
        elif kind == Kind.COLLECTIVE:
            self._collective(writer, time, event)
        elif kind in OF_WINDOW:
            window, places = self._windows[int(trace["where"][event])]
            if int(trace["peer"][event]) in places:
                writer.rma_op_complete_blocking(time, window, event)

    def _collective(self, writer: Any, time: int, event: int) -> None:
        otf2, trace = self._otf2, self._trace
        comm, places = self._comms[int(trace["where"][event])]
        short = trace.names[trace["name"][event]].removeprefix("MPI_").lower()
        operation = next(
            (to for name, to in COLLECTIVES if short.removeprefix("i").startswith(name)), "BARRIER"
        )
        root = places.get(int(trace["peer"][event]), int(otf2.Undefined.UINT32.value))
        size = int(trace["bytes"][event])
        writer.mpi_collective_end(time, getattr(otf2.CollectiveOp, operation), comm, root, size, size)


def _members(trace: Trace) -> dict[int, set[int]]:
    """The ranks that were seen with each name of a communicator or window."""
    found: dict[int, set[int]] = {}
    for ranks in (trace.rank, trace["peer"]):
        keys = np.unique(trace["where"].astype(np.int64) << 32 | ranks.astype(np.int64) & 0xFFFFFFFF)
        for key in keys.tolist():
            found.setdefault(key >> 32, set()).add(key & 0xFFFFFFFF)
    return found
