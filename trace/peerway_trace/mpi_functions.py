"""The functions of an MPI that its mpi.h declares, and what is recorded for each."""

from __future__ import annotations

import re
from dataclasses import dataclass

# What is recorded besides a call's time: functions | kind of wrapper | roles of the parameters, in the order
# of the standard. `count` and `type` give the number of bytes; `peer`, `tag` and `comm` identify a message.
# The row of a collective also applies to its non-blocking form, whose last parameter is a request, and to its
# persistent form.
TABLE = """
Send Bsend Ssend Rsend              | SEND       | _ count type peer tag comm
Isend Ibsend Issend Irsend          | ISEND      | _ count type peer tag comm request
Recv                                | RECV       | _ count type peer tag comm status
Irecv                               | IRECV      | _ count type peer tag comm request
Send_init Bsend_init Ssend_init Rsend_init | SEND_INIT | _ count type peer tag comm request
Recv_init                           | RECV_INIT  | _ count type peer tag comm request
Psend_init                          | SEND_INIT  | _ partitions count type peer tag comm _ request
Precv_init                          | RECV_INIT  | _ partitions count type peer tag comm _ request
Start                               | START      | request
Startall                            | STARTALL   | count requests
Sendrecv                            | SENDRECV   | _ count type peer tag _ rcount rtype rpeer rtag comm status
Sendrecv_replace                    | SENDRECV   | _ count type peer tag rpeer rtag comm status
Isendrecv                           | ISENDRECV | _ count type peer tag _ rcount rtype rpeer rtag comm request
Isendrecv_replace                   | ISENDRECV | _ count type peer tag rpeer rtag comm request
Wait                                | WAIT       | request status
Waitall                             | WAITALL    | count requests statuses
Waitany                             | WAITANY    | count requests index status
Waitsome                            | WAITSOME   | count requests found indices statuses
Test                                | TEST       | request flag status
Testall                             | TESTALL    | count requests flag statuses
Testany                             | TESTANY    | count requests index flag status
Testsome                            | WAITSOME   | count requests found indices statuses
Request_free                        | FREE       | request
Probe                               | CALL       | peer tag comm _
Iprobe                              | PROBE      | peer tag comm flag _
Mprobe                              | MPROBE     | peer tag comm message status
Improbe                             | MPROBE     | peer tag comm flag message status
Mrecv                               | MRECV      | _ count type message status
Imrecv                              | IMRECV     | _ count type message request
Barrier                             | COLLECTIVE | comm
Bcast                               | COLLECTIVE | _ count type peer comm
Reduce                              | COLLECTIVE | _ _ count type _ peer comm
Allreduce Scan Exscan               | COLLECTIVE | _ _ count type _ comm
Reduce_scatter_block                | COLLECTIVE | _ _ count type _ comm
Gather                              | COLLECTIVE | _ count type _ _ _ peer comm
Gatherv                             | COLLECTIVE | _ count type _ _ _ _ peer comm
Scatter                             | COLLECTIVE | _ _ _ _ count type peer comm
Scatterv                            | COLLECTIVE | _ _ _ _ _ count type peer comm
Allgather Neighbor_allgather        | COLLECTIVE | _ count type _ _ _ comm
Allgatherv Neighbor_allgatherv      | COLLECTIVE | _ count type _ _ _ _ comm
Alltoall Neighbor_alltoall          | COLLECTIVE | _ count_each type _ _ _ comm
Alltoallv Neighbor_alltoallv        | COLLECTIVE | _ counts _ type _ _ _ _ comm
Alltoallw Neighbor_alltoallw        | COLLECTIVE | _ _ _ _ _ _ _ _ comm
Reduce_scatter                      | COLLECTIVE | _ _ counts type _ comm
Put Accumulate                      | RMA_PUT    | _ count type peer _ _ _
Rput Raccumulate                    | RMA_PUT    | _ count type peer _ _ _
Get Rget                            | RMA_GET    | _ count type peer _ _ _
Get_accumulate Rget_accumulate      | RMA_GET    | _ _ _ _ count type peer
Fetch_and_op                        | RMA_GET    | _ _ type_one peer
Compare_and_swap                    | RMA_GET    | _ _ _ type_one peer
Win_lock                            | RMA_SYNC   | _ peer
Win_unlock Win_flush Win_flush_local| RMA_SYNC   | peer
Win_fence Win_start Win_complete Win_post Win_wait Win_lock_all  | RMA_SYNC |
Win_unlock_all Win_flush_all Win_flush_local_all Win_sync        | RMA_SYNC |
Comm_dup Comm_dup_with_info Comm_create Comm_split Comm_split_type | BIRTH |
Cart_create Cart_sub Graph_create Dist_graph_create Dist_graph_create_adjacent | BIRTH |
Intercomm_merge                     | BIRTH      |
Comm_idup Comm_idup_with_info       | IBIRTH     | _ _
Comm_create_group                   | BIRTH_APART | _ _ tag
Comm_create_from_group              | BIRTH_APART | _ name
Intercomm_create                    | BIRTH_APART | _ _ _ _ tag
Intercomm_create_from_groups        | BIRTH_APART | _ _ _ _ name
Comm_free Comm_disconnect           | DEATH      |
Win_create Win_create_dynamic Win_allocate Win_allocate_shared | WINDOW_BIRTH |
Win_free                            | WINDOW_DEATH |
Init Init_thread Session_init       | INIT       |
Finalize Session_finalize           | FINALIZE   |
"""
# Calls that neither communicate nor wait.
LOCAL = re.compile(
    r"(T|Type|Group|Info|Errhandler|Op|Status|Attr|Keyval|Error|Grequest|Aint|Pack|Unpack|Buffer|Abi)(_|$)"
    r"|Session_(?!init$|finalize$)"
    r"|Get_(?!accumulate)|Add_error|Remove_error|Address$|Alloc_mem|Free_mem|Initialized|Finalized|Pcontrol|Is_thread|Query_thread"
    r"|Pack|Unpack|Wtime|Wtick|Cart_(coords|get|map|rank|shift)|Cartdim|Graph_(get|map|neighbors)|Graphdims"
    r"|Dist_graph_neighbors|Topo_test|Dims_create|Register|Close_port|Test_cancelled|Request_get"
    r"|Comm_(rank|size|compare|group|remote|test_inter|get|set|call|create_(keyval|errhandler)|free_keyval|delete_attr)"
    r"|(Win|File)_(get|set|call|create_(keyval|errhandler)|free_keyval|delete_attr|shared_query)"
)
PROTOTYPE = re.compile(r"\bint\s+PMPI_(\w+)\s*\(([^;{]*?)\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*;", re.S)


@dataclass(frozen=True)
class Function:
    """One of an MPI's functions, as its header declares it."""

    name: str  # "Send"
    parameters: list[tuple[str, str]]  # the type, and the text after the name: ("MPI_Request", "[]")

    @property
    def declared(self) -> str:
        """The list of parameters; the first is a0."""
        return ", ".join(f"{kind} a{i}{rest}" for i, (kind, rest) in enumerate(self.parameters)) or "void"

    @property
    def arguments(self) -> list[str]:
        """The arguments with which the wrapper was called."""
        return [f"a{i}" for i in range(len(self.parameters))]

    def of_type(self, kind: str) -> str | None:
        """The first argument of a type."""
        return next((f"a{i}" for i, (parameter, _) in enumerate(self.parameters) if parameter == kind), None)


def functions(header: str) -> list[Function]:
    """The functions of a preprocessed mpi.h that get wrappers."""
    result = {}
    for name, inside in PROTOTYPE.findall(header):
        words = [" ".join(word.split()) for word in inside.split(",")]
        if LOCAL.match(name) or "..." in inside or "(" in inside:
            continue
        result[name] = Function(
            name, [] if words in (["void"], [""]) else [_parameter(word) for word in words]
        )
    return list(result.values())


def _parameter(text: str) -> tuple[str, str]:
    if text.endswith("*"):  # the parameter has no name
        return text, ""
    match = re.fullmatch(r"(.*?)(\w+)\s*((?:\[[^]]*\])*)", text)
    assert match, text
    kind = match[1].strip()
    return (kind, match[3]) if kind else (match[2], "")


def table() -> dict[str, tuple[str, list[str]]]:
    """What is recorded for each function: the kind of wrapper, and the roles of its parameters."""
    rows = [[part.strip() for part in line.split("|")] for line in TABLE.strip().splitlines()]
    result = {}
    for names, kind, roles in rows:
        for name in names.split():
            result[name] = (kind, roles.split())
            if kind == "COLLECTIVE":
                result[f"I{name.lower()}"] = ("ICOLLECTIVE", roles.split())
                result[f"{name}_init"] = ("COLLECTIVE_INIT", roles.split())
    return result
