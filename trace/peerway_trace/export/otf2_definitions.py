"""The definitions of an OTF2 archive: locations, communicators and windows with their ranks; and the numbers
of requests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerway_trace.collectives import starts
from peerway_trace.export.timeline import SystemThread
from peerway_trace.messages import of_kind
from peerway_trace.rings import Kind
from peerway_trace.store import FIRST_STREAM, Trace

OF_COMM = (
    Kind.SEND, Kind.RECV, Kind.ISEND, Kind.SENT, Kind.CANCELLED, Kind.RECEIVED, Kind.COLLECTIVE,
    Kind.COLLECTIVE_DONE,
    Kind.COMM_MADE, Kind.COMM_FREED,
)  # fmt: skip
OF_PATH = (Kind.PUT, Kind.GET, Kind.NOTIFY)  # operations of Peerway, in a window of all ranks
OF_WINDOW = (Kind.RMA_PUT, Kind.RMA_GET, Kind.RMA_SYNC, Kind.WINDOW_MADE, Kind.WINDOW_FREED)


def define_locations(definitions: Any, threads: list[SystemThread]) -> list[Any]:
    """Define a location for each thread and stream, within its process and its host."""
    import otf2

    root = definitions.system_tree_node("job", class_name="machine")
    nodes: dict[str, Any] = {}
    groups: dict[tuple[str, int], Any] = {}
    result = []
    for thread in threads:
        first = thread.first
        if first.host not in nodes:
            nodes[first.host] = definitions.system_tree_node(first.host, class_name="node", parent=root)
        key = (first.host, first.pid)
        if key not in groups:
            name = f"rank {first.rank}" if first.rank >= 0 else f"process {first.pid}"
            groups[key] = definitions.location_group(
                name,
                location_group_type=otf2.LocationGroupType.PROCESS,
                system_tree_parent=nodes[first.host],
            )
        name = f"{first.thread or 'thread'} {first.tid}"
        kind = otf2.LocationType.CPU_THREAD
        if first.tid >= FIRST_STREAM:
            name, kind = first.thread, otf2.LocationType.ACCELERATOR_STREAM
        result.append(definitions.location(name, type=kind, group=groups[key]))
    return result


class Groups:
    """The communicators and windows of a trace by their names, each with the place of its ranks. The first
    thread of a rank is the location that stands for the rank.
    """

    def __init__(
        self, trace: Trace, definitions: Any, threads: list[SystemThread], locations: list[Any]
    ) -> None:
        import otf2

        self.comms: dict[int, tuple[Any, dict[int, int]]] = {}
        self.windows: dict[int, tuple[Any, dict[int, int]]] = {}
        self.path_windows: list[Any] = []  # windows that exist from the beginning of each process to its end
        of_rank: dict[int, Any] = {}
        for thread, location in zip(threads, locations, strict=True):
            if thread.first.rank >= 0:
                of_rank.setdefault(thread.first.rank, location)
        kind, where, ordered = trace["kind"], trace["where"], sorted(of_rank)
        members = _members(trace)
        team = np.array([name.split(" ")[0] == "team" for name in trace.names])[where]
        for paradigm, of_comm, of_window in (
            (otf2.Paradigm.MPI, np.isin(kind, OF_COMM) & ~team, np.isin(kind, OF_WINDOW)),
            (otf2.Paradigm.SHMEM, np.isin(kind, OF_COMM) & team, np.isin(kind, OF_PATH)),
        ):
            if not (of_comm | of_window).any():
                continue
            definitions.group(
                "all ranks", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=paradigm,
                members=[of_rank[rank] for rank in ordered],
            )  # fmt: skip
            for chosen, known in ((of_comm, self.comms), (of_window, self.windows)):
                for number in np.unique(where[chosen]).tolist():
                    of_path = chosen is of_window and paradigm == otf2.Paradigm.SHMEM
                    name = trace.names[number] or ("signals" if of_path else "unknown")
                    own = [rank for rank in sorted(members[number]) if rank in of_rank]
                    ranks = own if chosen is of_comm else ordered
                    group = definitions.group(
                        name, group_type=otf2.GroupType.COMM_GROUP, paradigm=paradigm,
                        members=[of_rank[rank] for rank in ranks],
                    )  # fmt: skip
                    result = definitions.comm(name, group=group)
                    if chosen is of_window:
                        result = definitions.rma_win(name, comm=result)
                    if of_path:
                        self.path_windows.append(result)
                    known[number] = (result, {rank: place for place, rank in enumerate(ranks)})


def number_requests(trace: Trace) -> dict[int, int]:
    """Give each request a number: both of its events begin at the same time in the same thread."""
    collectives = of_kind(trace, (Kind.COLLECTIVE,))
    started = collectives[starts(trace, collectives)]
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
            numbers.setdefault(_beginning(trace, event), []).append(result[event])
        for event in ended.tolist():
            if numbers.get(_beginning(trace, event)):
                result[event] = numbers[_beginning(trace, event)].pop(0)
    return result


def _beginning(trace: Trace, event: int) -> tuple[int, int]:
    return trace.threads[trace["thread"][event]].pid, int(trace["begin"][event])


def _members(trace: Trace) -> dict[int, set[int]]:
    """The ranks that were seen with each name of a communicator or window."""
    result: dict[int, set[int]] = {}
    for ranks in (trace.rank, trace["peer"]):
        keys = np.unique(trace["where"].astype(np.int64) << 32 | ranks.astype(np.int64) & 0xFFFFFFFF)
        for key in keys.tolist():
            result.setdefault(key >> 32, set()).add(key & 0xFFFFFFFF)
    return result
