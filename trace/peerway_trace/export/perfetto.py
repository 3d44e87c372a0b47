"""Perfetto's native format: a track for each process and thread, slices, an arrow for each message (a flow),
a track for requests under way and a counter of bytes in flight for each rank.
"""

from __future__ import annotations

import heapq
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from peerway_trace.export.timeline import SystemThread, in_flight, steps, threads
from peerway_trace.messages import Messages, match, match_signals, messages
from peerway_trace.rings import Kind
from peerway_trace.store import Trace

SEQUENCE = 1
CLEARED, NEEDED = 1, 2  # SequenceFlags: the packet begins the interned names; it needs them
FIRST_FREE = 1 << 22  # above all process and thread numbers of Linux

Lanes = list[tuple[int, int]]  # a heap of (end of the track's last request, track)


class _Writer:
    """Appends packets to a file: each is field 1 of the message Trace."""

    def __init__(self, file: BinaryIO, names: list[str]) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent

        self._file, self._packet, self.kinds = file, TracePacket, TrackEvent
        self._tracks = count(1)
        self._numbers: dict[tuple[str, int, int], int] = {}  # (host, process, thread) -> number
        self._taken: set[int] = set()
        self._free = count(FIRST_FREE)
        first = self.packet(0)
        first.sequence_flags = CLEARED
        for number, name in enumerate(names):
            first.interned_data.event_names.add(iid=number + 1, name=name or "unnamed")
        for number, name in enumerate(("peer", "bytes", "tag", "where", "site"), 1):
            first.interned_data.debug_annotation_names.add(iid=number, name=name)
        self.write(first)

    def track(self) -> tuple[int, Any]:
        """Make a new track, and the packet that describes it."""
        number, packet = next(self._tracks), self.packet(0)
        packet.track_descriptor.uuid = number
        return number, packet

    def number(self, host: str, pid: int, tid: int) -> int:
        """A number of 31 bits for a thread, or for the process of a first thread: its own, unless another
        host has that as well.
        """
        key = (host, pid, tid)
        if key not in self._numbers:
            own = tid < FIRST_FREE and tid not in self._taken
            self._numbers[key] = tid if own else next(self._free)
            self._taken.add(self._numbers[key])
        return self._numbers[key]

    def packet(self, time: int) -> Any:
        """A new packet of the only sequence."""
        packet = self._packet(timestamp=time, trusted_packet_sequence_id=SEQUENCE)
        packet.sequence_flags = NEEDED
        return packet

    def write(self, packet: Any) -> None:
        """Append the packet to the file."""
        data = packet.SerializeToString()
        self._file.write(b"\x0a" + _varint(len(data)) + data)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def export(trace: Trace, target: Path) -> None:
    """Write a trace to a file. Raises OSError."""
    matched, signals = match(trace), match_signals(trace)
    sent = messages(trace, matched, signals)
    # The arrow of a message is numbered as its send.
    flow_from = np.zeros(len(trace), np.int64)
    flow_to = np.zeros(len(trace), np.int64)
    for pairs in (matched, signals):
        flow_from[pairs.first] = pairs.first + 1
        flow_to[pairs.second] = pairs.first + 1
    with target.open("wb") as file:
        writer = _Writer(file, trace.names)
        processes: set[int] = set()
        for thread in threads(trace):
            _thread(writer, trace, thread, processes, (flow_from, flow_to))
        for rank in trace.ranks:
            _in_flight(writer, trace, sent, rank)


def _thread(
    writer: _Writer, trace: Trace, thread: SystemThread, processes: set[int], flows: tuple[Any, Any]
) -> None:
    """Write the tracks of a thread, and its slices. `processes` have a track already."""
    first = thread.first
    pid = writer.number(first.host, first.pid, first.pid)
    if pid not in processes:
        processes.add(pid)
        _, described = writer.track()
        described.track_descriptor.process.pid = pid
        described.track_descriptor.process.process_name = (
            f"rank {first.rank}" if first.rank >= 0 else first.host
        )
        writer.write(described)
    track, described = writer.track()
    described.track_descriptor.thread.pid = pid
    described.track_descriptor.thread.tid = writer.number(first.host, first.pid, first.tid)
    described.track_descriptor.thread.thread_name = first.thread
    writer.write(described)
    lanes: Lanes = []
    for step in steps(trace, thread.events):
        if step.kind == "point":
            lane = _lane(writer, lanes, int(trace["begin"][step.event]), step.time, track)
            _begin(writer, trace, step.event, int(trace["begin"][step.event]), lane, flows)
            _end(writer, step.time, lane)
        elif step.kind == "begin":
            _begin(writer, trace, step.event, step.time, track, flows)
        else:
            _end(writer, step.time, track)


def _lane(writer: _Writer, lanes: Lanes, begin: int, end: int, thread: int) -> int:
    """A track in which a request overlaps no other; requests come in the order of their ends."""
    if lanes and lanes[0][0] <= begin:
        track = lanes[0][1]
        heapq.heapreplace(lanes, (end, track))
        return track
    track, described = writer.track()
    described.track_descriptor.parent_uuid = thread
    described.track_descriptor.name = "requests"
    writer.write(described)
    heapq.heappush(lanes, (end, track))
    return track


def _begin(writer: _Writer, trace: Trace, event: int, time: int, track: int, flows: tuple[Any, Any]) -> None:
    packet = writer.packet(time)
    slice_ = packet.track_event
    slice_.type = writer.kinds.TYPE_SLICE_BEGIN
    slice_.track_uuid = track
    slice_.name_iid = int(trace["name"][event]) + 1
    if trace["kind"][event] != Kind.REGION:
        for number, column in ((1, "peer"), (2, "bytes"), (3, "tag")):
            slice_.debug_annotations.add(name_iid=number, int_value=int(trace[column][event]))
        for number, column in ((4, "where"), (5, "site")):
            if text := trace.names[trace[column][event]]:
                slice_.debug_annotations.add(name_iid=number, string_value=text)
    if flows[0][event]:
        slice_.flow_ids.append(int(flows[0][event]))
    if flows[1][event]:
        slice_.terminating_flow_ids.append(int(flows[1][event]))
    writer.write(packet)


def _end(writer: _Writer, time: int, track: int) -> None:
    packet = writer.packet(time)
    packet.track_event.type = writer.kinds.TYPE_SLICE_END
    packet.track_event.track_uuid = track
    writer.write(packet)


def _in_flight(writer: _Writer, trace: Trace, sent: Messages, rank: int) -> None:
    """A counter of the bytes that a rank has sent and that have not arrived."""
    times, level = in_flight(trace, sent, rank)
    if not times:
        return
    track, described = writer.track()
    described.track_descriptor.name = f"bytes in flight from rank {rank}"
    described.track_descriptor.counter.unit_name = "bytes"
    writer.write(described)
    for time, value in zip(times, level, strict=True):
        packet = writer.packet(time)
        packet.track_event.type = writer.kinds.TYPE_COUNTER
        packet.track_event.track_uuid = track
        packet.track_event.counter_value = value
        writer.write(packet)
