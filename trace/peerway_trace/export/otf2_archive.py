"""OTF2, the format of Score-P, Scalasca and Vampir: regions, messages and collectives of MPI, one-sided
operations.

A communicator has as members the ranks that the trace saw in it, in the order of the world. Puts and gets of
Peerway are those of a window of all ranks, named as their path.
"""

from __future__ import annotations

import heapq
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from peerway_trace.export.completions import completions
from peerway_trace.export.otf2_definitions import Groups, define_locations, number_requests
from peerway_trace.export.timeline import Step, SystemThread, in_flight, steps, threads
from peerway_trace.lanes import OF_GPU
from peerway_trace.messages import match, match_signals, messages
from peerway_trace.rings import Kind
from peerway_trace.store import Trace

COLLECTIVES = (
    ("allreduce", "ALLREDUCE"), ("reduce_scatter_block", "REDUCE_SCATTER_BLOCK"),
    ("reduce_scatter", "REDUCE_SCATTER"),
    ("reduce", "REDUCE"), ("allgatherv", "ALLGATHERV"), ("allgather", "ALLGATHER"), ("gatherv", "GATHERV"),
    ("gather", "GATHER"), ("scatterv", "SCATTERV"), ("scatter", "SCATTER"), ("alltoallw", "ALLTOALLW"),
    ("alltoallv", "ALLTOALLV"), ("alltoall", "ALLTOALL"), ("bcast", "BCAST"), ("exscan", "EXSCAN"),
    ("scan", "SCAN"),
)  # fmt: skip
# OTF2's events for communicators and windows that the program makes and frees.
LIVES = {
    Kind.COMM_MADE: "comm_create", Kind.COMM_FREED: "comm_destroy", Kind.WINDOW_MADE: "rma_win_create",
    Kind.WINDOW_FREED: "rma_win_destroy",
}  # fmt: skip
ONE_SIDED = (Kind.PUT, Kind.GET, Kind.RMA_PUT, Kind.RMA_GET)


def export(trace: Trace, target: Path) -> None:
    """Write a trace as an archive, a folder. Raises OSError, and BadTrace before there is a folder."""
    import _otf2
    import otf2

    completed_by = completions(trace)
    archive: Any = None
    try:
        with otf2.writer.open(str(target), timer_resolution=10**9) as archive:
            _Exporter(trace, archive, completed_by).write()
    except (_otf2.Error, otf2.error.Error) as error:
        if archive is not None:
            archive.close = lambda: None  # otherwise its destructor would try again, and print a traceback
        raise OSError(
            f"the library of OTF2 failed ({error}); the lines before say why. Is the disk full?"
        ) from error


class _Exporter:
    def __init__(self, trace: Trace, archive: Any, completed_by: dict[int, list[int]]) -> None:
        import otf2

        self._otf2, self._trace, self._archive = otf2, trace, archive
        self._definitions = archive.definitions
        self._threads = threads(trace)
        self._locations = define_locations(self._definitions, self._threads)
        self._regions: dict[tuple[int, int], Any] = {}
        groups = Groups(trace, self._definitions, self._threads, self._locations)
        self._comms, self._windows, self._path_windows = groups.comms, groups.windows, groups.path_windows
        self._requests = number_requests(trace)
        self._signals = match_signals(trace)
        self._completed_by = completed_by
        self._later = {event for several in self._completed_by.values() for event in several}

    def write(self) -> None:
        """All events of all threads, the arrival of their puts, and in the first thread of each rank its
        bytes in flight.
        """
        trace, otf2 = self._trace, self._otf2
        sent = messages(trace, match(trace), self._signals)
        metric = self._definitions.metric("bytes in flight", unit="bytes", value_type=otf2.Type.UINT64)
        announced: set[int] = set()
        ends = self._program_begins()
        for thread, location in zip(self._threads, self._locations, strict=True):
            writer = self._archive.event_writer_from_location(location)
            rank = thread.first.rank
            times, level = in_flight(trace, sent, rank) if rank not in announced else ([], [])
            announced.add(rank)
            in_time = ((time, -1, value) for time, value in zip(times, level, strict=True))
            beside = iter(heapq.merge(in_time, self._arrived(thread)))
            last, following = 0, next(beside, None)
            for step in chain(steps(trace, thread.events), [None]):
                while following is not None and (step is None or following[0] <= step.time):
                    last, event, value = following
                    if event < 0:
                        writer.metric(last, metric, value)
                    else:
                        window, _ = self._windows[int(trace["where"][event])]
                        writer.rma_op_complete_remote(last, window, event)
                    following = next(beside, None)
                if step is not None:
                    self._step(writer, step)
            if location in ends:
                for window in self._path_windows:
                    writer.rma_win_destroy(max(last, ends[location]), window)
                writer.program_end(max(last, ends[location]), int(trace.about.get("status", 0)))
        # The package has no other way to set when the trace began; it would use the time of the export.
        if began := trace.about.get("began"):
            self._archive._realtime_timestamp = datetime.fromisoformat(began).timestamp()

    def _arrived(self, thread: SystemThread) -> list[tuple[int, int, int]]:
        """When a wait for their signal saw the puts of a thread, if that was after their calls."""
        trace, signals = self._trace, self._signals
        own = np.isin(signals.first, thread.events) & (trace["kind"][signals.first] == Kind.PUT)
        put, wait = signals.first[own], signals.second[own]
        seen = trace["begin"][wait] + trace["duration"][wait]
        later = seen > trace["begin"][put] + trace["duration"][put]
        return sorted((int(time), int(event), 0) for time, event in zip(seen[later], put[later], strict=True))

    def _program_begins(self) -> dict[Any, int]:
        """Write the beginning of each process into its first thread; return when it ends there."""
        trace, command = self._trace, [str(word) for word in self._trace.about.get("command", [])]
        spans: dict[Any, tuple[Any, int, int]] = {}
        ends = trace["begin"] + trace["duration"]
        for thread, location in zip(self._threads, self._locations, strict=True):
            if not len(thread.events) or location.type != self._otf2.LocationType.CPU_THREAD:
                continue
            first, begin, end = spans.get(location.group, (location, 1 << 62, 0))
            begin = min(begin, int(trace["begin"][thread.events].min()))
            late = max((time for time, _, _ in self._arrived(thread)), default=0)
            spans[location.group] = (first, begin, max(end, late, int(ends[thread.events].max())))
        for first, begin, _ in spans.values():
            writer = self._archive.event_writer_from_location(first)
            writer.program_begin(begin, command[0] if command else "unknown", command[1:])
            for window in self._path_windows:
                writer.rma_win_create(begin, window)
        return {first: end for first, _, end in spans.values()}

    def _region(self, event: int) -> Any:
        trace, otf2 = self._trace, self._otf2
        kind, name = int(trace["kind"][event]), int(trace["name"][event])
        if (kind, name) not in self._regions:
            paradigm = otf2.Paradigm.MPI if trace.names[name].startswith("MPI_") else otf2.Paradigm.SHMEM
            if kind in (Kind.REGION, Kind.MARK):
                paradigm = otf2.Paradigm.USER
            elif kind in OF_GPU:
                paradigm = otf2.Paradigm.CUDA
            role = otf2.RegionRole.FUNCTION
            self._regions[kind, name] = self._definitions.region(
                trace.names[name] or "unnamed", region_role=role, paradigm=paradigm
            )
        return self._regions[kind, name]

    def _step(self, writer: Any, step: Step) -> None:
        event = step.event
        if step.kind == "begin":
            writer.enter(step.time, self._region(event))
            self._at_begin(writer, step.time, event)
        elif step.kind == "end":
            self._at_end(writer, step.time, event)
            writer.leave(step.time, self._region(event))
        else:
            self._at_end(writer, step.time, event)

    def _message(self, event: int) -> tuple[int, Any, int, int] | None:
        """Peer in the communicator, the communicator, tag and bytes; None if the peer is unknown."""
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
        elif kind == Kind.COLLECTIVE and event in self._requests:
            writer.non_blocking_collective_request(time, self._requests[event])
        elif kind == Kind.COLLECTIVE:
            writer.mpi_collective_begin(time)
        elif kind in (*ONE_SIDED, Kind.NOTIFY):
            window, places = self._windows[int(trace["where"][event])]
            peer = places.get(int(trace["peer"][event]))
            if peer is None:
                return
            if kind == Kind.NOTIFY:
                add = self._otf2.RmaAtomicType.ACCUMULATE
                writer.rma_atomic(time, window, peer, add, 8, 0, event)
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
        elif kind == Kind.CANCELLED and event in self._requests:
            writer.mpi_request_cancelled(time, self._requests[event])
        elif kind == Kind.COLLECTIVE and event not in self._requests:
            writer.mpi_collective_end(time, *self._collective(event))
        elif kind == Kind.COLLECTIVE_DONE and event in self._requests:
            writer.non_blocking_collective_complete(time, *self._collective(event), self._requests[event])
        elif kind in LIVES:
            known = self._comms if kind in (Kind.COMM_MADE, Kind.COMM_FREED) else self._windows
            getattr(writer, LIVES[Kind(kind)])(time, known[int(trace["where"][event])][0])
        elif kind in (*ONE_SIDED, Kind.NOTIFY) and event not in self._later:
            window, places = self._windows[int(trace["where"][event])]
            if int(trace["peer"][event]) in places:
                writer.rma_op_complete_blocking(time, window, event)
        self._complete(writer, time, event)
        if kind == Kind.RMA_SYNC:
            window, places = self._windows[int(trace["where"][event])]
            peer = places.get(int(trace["peer"][event]))
            if peer is not None:  # OTF2 has no record for a synchronisation with all ranks
                writer.rma_sync(time, window, peer, self._otf2.RmaSyncType.MEMORY)

    def _complete(self, writer: Any, time: int, event: int) -> None:
        """Write the completion of operations that went on after their call and that this event found
        complete.
        """
        for completed in self._completed_by.get(event, ()):
            window, places = self._windows[int(self._trace["where"][completed])]
            if int(self._trace["peer"][completed]) in places:
                writer.rma_op_complete_non_blocking(time, window, completed)

    def _collective(self, event: int) -> tuple[Any, ...]:
        """The operation, the communicator, the root, and the bytes sent and received."""
        otf2, trace = self._otf2, self._trace
        comm, places = self._comms[int(trace["where"][event])]
        short = trace.names[trace["name"][event]].removeprefix("start of ").removeprefix("MPI_").lower()
        short = short.removeprefix("i").removeprefix("neighbor_").replace("all_gather", "allgather")
        operation = next((to for name, to in COLLECTIVES if short.startswith(name)), "BARRIER")
        root = places.get(int(trace["peer"][event]), int(otf2.Undefined.UINT32.value))
        size = int(trace["bytes"][event])
        return getattr(otf2.CollectiveOp, operation), comm, root, size, size
