"""Mismatches in an MPI program: messages that only one side has, or whose bytes differ, and collectives that
ranks call in different orders.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peerway_common.units import about_text
from peerway_trace.collectives import match_collectives
from peerway_trace.messages import Pairs
from peerway_trace.store import Trace
from peerway_trace.tables import Analysis, Finding, count_text, ns_text

WINDOW = "If events are lost, or recording began late, the report may compare the wrong ones."


def tell(trace: Trace, matched: Pairs, result: Analysis) -> None:
    """The findings about mismatches."""
    _unmatched(trace, matched, result)
    _unlike_bytes(trace, matched, result)
    _unlike_collectives(trace, result)


def _unmatched(trace: Trace, matched: Pairs, result: Analysis) -> None:
    for alone, kind, other in (
        (matched.alone_first, "sends", "no receive"), (matched.alone_second, "receives", "no send"),
    ):  # fmt: skip
        # Messages whose other end is at a rank that did not record are left out.
        which = alone[np.isin(trace["peer"][alone], trace.ranks)]
        if len(which):
            first = int(which[0])
            have = "has" if len(which) == 1 else "have"
            result.findings.append(
                Finding(
                    f"{count_text(len(which), kind[:-1], kind)} {have} {other} in the trace.",
                    f"The first is rank {trace.rank[first]}'s, with rank {trace['peer'][first]}, tag "
                    f"{trace['tag'][first]}, in {trace.names[trace['where'][first]]}, at "
                    f"{ns_text(float(trace['begin'][first]))}.",
                    "If no events are lost, look for a message that is never received.",
                    *_place(trace, first),
                )
            )


def _unlike_bytes(trace: Trace, matched: Pairs, result: Analysis) -> None:
    sent, received = trace["bytes"][matched.first], trace["bytes"][matched.second]
    unlike = np.flatnonzero(sent != received)
    if not len(unlike):
        return
    first = int(unlike[0])
    send, receive = int(matched.first[first]), int(matched.second[first])
    result.findings.append(
        Finding(
            f"{count_text(len(unlike), 'message has', 'messages have')} a different size at the receive "
            "than at the send.",
            f"The first was sent by rank {trace.rank[send]} at {ns_text(float(trace['begin'][send]))} with "
            f"{about_text(float(sent[first]))}, and received by rank {trace.rank[receive]} with "
            f"{about_text(float(received[first]))}, tag {trace['tag'][send]}, in "
            f"{trace.names[trace['where'][send]]}.",
            f"Look for types or counts that differ between the two calls. {WINDOW}",
            *_place(trace, send),
        )
    )


def _unlike_collectives(trace: Trace, result: Analysis) -> None:
    """Check that the k-th collective of each rank in a communicator is the same on all ranks."""
    matches = match_collectives(trace)
    if not len(matches.event):
        return
    short = {name: number for number, name in enumerate({_same(operation) for operation in trace.names})}
    of_name = np.array([short[_same(operation)] for operation in trace.names])
    name = of_name[trace["name"][matches.event]]
    order = np.argsort(matches.instance, kind="stable")
    instance, name, event = matches.instance[order], name[order], matches.event[order]
    start = np.searchsorted(instance, instance)
    unlike = np.flatnonzero(name != name[start])
    if not len(unlike):
        return
    first = unlike[np.argmin(trace["begin"][event[unlike]])]
    operation, other = int(event[start[first]]), int(event[first])
    count = len(np.unique(instance[unlike]))
    many = count_text(count, "collective is", "collectives are")
    result.findings.append(
        Finding(
            f"{many} not the same call on all ranks, if each rank's calls on a communicator are counted in "
            "order.",
            f"The first are {_call(trace, operation)}, and {_call(trace, other)}, in "
            f"{trace.names[trace['where'][other]]}.",
            f"All ranks of a communicator must call the same collectives in the same order. {WINDOW}",
            *_place(trace, other),
        )
    )


def _same(name: str) -> str:
    return name.removesuffix("_c")


def _call(trace: Trace, event: int) -> str:
    begin = ns_text(float(trace["begin"][event]))
    return f"{trace.names[trace['name'][event]]} of rank {trace.rank[event]}, at {begin}"


def _place(trace: Trace, event: int) -> tuple[tuple[int, int], int]:
    """The place in the timeline."""
    begin: NDArray[np.int64] = trace["begin"]
    return (int(begin[event]), int(begin[event] + trace["duration"][event])), int(trace.rank[event])
