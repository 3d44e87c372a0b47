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

from peerway_trace import waits
from peerway_trace.export.completions import completions
from peerway_trace.export.timeline import Step, SystemThread, in_flight, steps, threads
from peerway_trace.lanes import OF_GPU
from peerway_trace.messages import match, match_signals, messages, of_kind
from peerway_trace.rings import Kind
from peerway_trace.store import FIRST_STREAM, Trace

COLLECTIVES = (
    ("allreduce", "ALLREDUCE"), ("reduce_scatter_block", "REDUCE_SCATTER_BLOCK"),
    ("reduce_scatter", "REDUCE_SCATTER"),
    ("reduce", "REDUCE"), ("allgatherv", "ALLGATHERV"), ("allgather", "ALLGATHER"), ("gatherv", "GATHERV"),
    ("gather", "GATHER"), ("scatterv", "SCATTERV"), ("scatter", "SCATTER"), ("alltoallw", "ALLTOALLW"),
    ("alltoallv", "ALLTOALLV"), ("alltoall", "ALLTOALL"), ("bcast", "BCAST"), ("exscan", "EXSCAN"),
    ("scan", "SCAN"),
)  # fmt: skip
OF_COMM = (
    Kind.SEND, Kind.RECV, Kind.ISEND, Kind.SENT, Kind.CANCELLED, Kind.RECEIVED, Kind.COLLECTIVE,
    Kind.COLLECTIVE_DONE,
    Kind.COMM_MADE, Kind.COMM_FREED,
)  # fmt: skip
OF_PATH = (Kind.PUT, Kind.GET, Kind.NOTIFY)  # operations of Peerway, in a window of all ranks
OF_WINDOW = (Kind.RMA_PUT, Kind.RMA_GET, Kind.RMA_SYNC, Kind.WINDOW_MADE, Kind.WINDOW_FREED)
# What OTF2 says of communicators and windows that the program makes and frees.
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
            archive.close = lambda: None  # its destructor would try again, and print a traceback
        raise OSError(
            f"the library of OTF2 failed ({error}); the lines before say why. Is the disk full?"
        ) from error


class _Exporter:
    def __init__(self, trace: Trace, archive: Any, completed_by: dict[int, list[int]]) -> None:
        import otf2

        self._otf2, self._trace, self._archive = otf2, trace, archive
        self._definitions = archive.definitions
        self._threads = threads(trace)
        self._locations = self._define_locations()
        self._regions: dict[tuple[int, int], Any] = {}
        self._comms: dict[int, tuple[Any, dict[int, int]]] = {}
        self._windows: dict[int, tuple[Any, dict[int, int]]] = {}
        self._path_windows: list[Any] = []  # there from the beginning of each process to its end
        self._define_groups()
        self._requests = self._number_requests()
        self._signals = match_signals(trace)
        self._completed_by = completed_by
        self._later = {event for several in self._completed_by.values() for event in several}

    def write(self) -> None:
        """All events of all threads, when their puts arrived, and in the first of each rank its bytes in
        flight.
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
        # The package has no other way to say when the trace began; it would say when it is exported.
        if began := trace.about.get("began"):
            self._archive._realtime_timestamp = datetime.fromisoformat(began).timestamp()

    def _arrived(self, thread: SystemThread) -> list[tuple[int, int, int]]:
        """When the puts of a thread were seen by a wait for their signal, if that was after their calls."""
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

    def _define_locations(self) -> list[Any]:
        otf2, define = self._otf2, self._definitions
        root = define.system_tree_node("job", class_name="machine")
        nodes: dict[str, Any] = {}
        groups: dict[tuple[str, int], Any] = {}
        result = []
        for thread in self._threads:
            first = thread.first
            if first.host not in nodes:
                nodes[first.host] = define.system_tree_node(first.host, class_name="node", parent=root)
            key = (first.host, first.pid)
            if key not in groups:
                name = f"rank {first.rank}" if first.rank >= 0 else f"process {first.pid}"
                groups[key] = define.location_group(
                    name,
                    location_group_type=otf2.LocationGroupType.PROCESS,
                    system_tree_parent=nodes[first.host],
                )
            name = f"{first.thread or 'thread'} {first.tid}"
            kind = otf2.LocationType.CPU_THREAD
            if first.tid >= FIRST_STREAM:
                name, kind = first.thread, otf2.LocationType.ACCELERATOR_STREAM
            result.append(define.location(name, type=kind, group=groups[key]))
        return result

    def _define_groups(self) -> None:
        """Define groups of ranks; the location of a rank is the first of its threads."""
        otf2, trace = self._otf2, self._trace
        of_rank: dict[int, Any] = {}
        for thread, location in zip(self._threads, self._locations, strict=True):
            if thread.first.rank >= 0:
                of_rank.setdefault(thread.first.rank, location)
        kind, where, ordered = trace["kind"], trace["where"], sorted(of_rank)
        members, define = _members(trace), self._definitions
        team = np.array([name.split(" ")[0] == "team" for name in trace.names])[where]
        for paradigm, of_comm, of_window in (
            (otf2.Paradigm.MPI, np.isin(kind, OF_COMM) & ~team, np.isin(kind, OF_WINDOW)),
            (otf2.Paradigm.SHMEM, np.isin(kind, OF_COMM) & team, np.isin(kind, OF_PATH)),
        ):
            if not (of_comm | of_window).any():
                continue
            define.group(
                "all ranks", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=paradigm,
                members=[of_rank[rank] for rank in ordered],
            )  # fmt: skip
            for chosen, known in ((of_comm, self._comms), (of_window, self._windows)):
                for number in np.unique(where[chosen]).tolist():
                    of_path = chosen is of_window and paradigm == otf2.Paradigm.SHMEM
                    name = trace.names[number] or ("signals" if of_path else "unknown")
                    own = [rank for rank in sorted(members[number]) if rank in of_rank]
                    ranks = own if chosen is of_comm else ordered
                    group = define.group(
                        name, group_type=otf2.GroupType.COMM_GROUP, paradigm=paradigm,
                        members=[of_rank[rank] for rank in ranks],
                    )  # fmt: skip
                    result = define.comm(name, group=group)
                    if chosen is of_window:
                        result = define.rma_win(name, comm=result)
                    if of_path:
                        self._path_windows.append(result)
                    known[number] = (result, {rank: place for place, rank in enumerate(ranks)})

    def _number_requests(self) -> dict[int, int]:
        """Give each request a number: both of its events begin at the same time in the same thread."""
        trace = self._trace
        collectives = of_kind(trace, (Kind.COLLECTIVE,))
        started = collectives[waits.starts(trace, collectives)]
        groups = (
            (of_kind(trace, (Kind.ISEND,)), of_kind(trace, (Kind.SENT, Kind.CANCELLED))),
            (of_kind(trace, (Kind.IRECV,)), of_kind(trace, (Kind.RECEIVED,))),
            (started, of_kind(trace, (Kind.COLLECTIVE_DONE,))),
        )
        result: dict[int, int] = {}
        for fresh, ended in groups:
            numbers: dict[tuple[int, int], list[int]] = {}
            for event in fresh.tolist():
                result[event] = len(result) + 1
                numbers.setdefault(self._beginning(event), []).append(result[event])
            for event in ended.tolist():
                if numbers.get(self._beginning(event)):
                    result[event] = numbers[self._beginning(event)].pop(0)
        return result

    def _beginning(self, event: int) -> tuple[int, int]:
        trace = self._trace
        return trace.threads[trace["thread"][event]].pid, int(trace["begin"][event])

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
            if peer is not None:  # of all that it synchronises with where none is named, OTF2 has no record
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


def _members(trace: Trace) -> dict[int, set[int]]:
    """The ranks that were seen with each name of a communicator or window."""
    result: dict[int, set[int]] = {}
    for ranks in (trace.rank, trace["peer"]):
        keys = np.unique(trace["where"].astype(np.int64) << 32 | ranks.astype(np.int64) & 0xFFFFFFFF)
        for key in keys.tolist():
            result.setdefault(key >> 32, set()).add(key & 0xFFFFFFFF)
    return result
