"""Generates the C code of wrappers around an MPI's functions: what each records before and after the call.
mpi.c is the code that they share.
"""

from __future__ import annotations

from peerway_trace.mpi_functions import Function, functions, table

# Kinds with a communicator or a window, bytes, and perhaps a peer.
CALLS = (
    "CALL", "PROBE", "MPROBE", "COLLECTIVE", "ICOLLECTIVE", "COLLECTIVE_INIT",
    "RMA_PUT", "RMA_GET", "RMA_SYNC",
)  # fmt: skip


def source(header: str) -> str:
    """The C code of all wrappers of an MPI."""
    known = table()
    # Open MPI's Fortran and MPICH's mpi_f08 call PMPI functions, so each wrapper has both names.
    texts = []
    for function in functions(header):
        kind, roles = known.get(function.name.removesuffix("_c"), ("CALL", []))
        named = dict(zip(roles, function.arguments, strict=False))
        texts.append(_wrapper(function, kind, named))
        name, types = function.name, function.declared
        texts.append(f'int PMPI_{name}({types}) __attribute__((alias("MPI_{name}")));\n')
    return '#include "mpi.c"\n\n' + "\n".join(texts)


EVENTS = {
    "SEND": "SEND", "RECV": "RECV", "ISEND": "ISEND", "IRECV": "IRECV", "SENDRECV": "SEND",
    "ISENDRECV": "ISEND", "MPROBE": "WAIT", "MRECV": "WAIT",
    "COLLECTIVE": "COLLECTIVE", "ICOLLECTIVE": "COLLECTIVE",
    "RMA_PUT": "RMA_PUT", "RMA_GET": "RMA_GET", "RMA_SYNC": "RMA_SYNC",
}  # fmt: skip
WITH_STATUS = ("RECV", "SENDRECV", "MRECV", "WAIT", "WAITANY", "TEST", "TESTANY")
# These take requests, or describe their requests themselves.
WITHOUT_NEW_REQUEST = (
    *WITH_STATUS,
    "WAITALL",
    "TESTALL",
    "WAITSOME",
    "START",
    "STARTALL",
    "FREE",
    "IMRECV",
    "IBIRTH",
)
OF_MANY = ("WAITALL", "TESTALL", "WAITSOME", "WAITANY", "TESTANY")


def _wrapper(function: Function, kind: str, of: dict[str, str]) -> str:
    """One wrapper: what it records before the call, the call, and what it records after."""
    name, comm = function.name, of.get("comm") or function.of_type("MPI_Comm")
    event = EVENTS.get(kind, "WAIT" if kind.startswith(("WAIT", "TEST")) else "CALL")
    before, after = _message(function, kind, of, comm), []
    given = function.arguments
    if kind in WITH_STATUS:
        status = of["status"]
        before.append("MPI_Status own;")
        before.append(f"MPI_Status* const status = {status} != MPI_STATUS_IGNORE ? {status} : &own;")
        given = ["status" if argument == status else argument for argument in given]
    if kind in OF_MANY:
        given = ["kept.statuses" if argument == of.get("statuses") else argument for argument in given]
    for notes in (
        _received(kind, of, comm), _started(function, kind, of, comm), _completed(kind, of),
        _probed(kind, of, comm), _several(kind, of), _made_or_freed(function, kind, of),
    ):  # fmt: skip
        before += notes[0]
        after += notes[1]
    first = "  pw_mpi_end();\n" if kind == "FINALIZE" else ""
    session = int(name == "Session_init")
    last = f"  if (result == MPI_SUCCESS) pw_mpi_begin({session});\n" if kind == "INIT" else ""
    lines = "".join(f"  {line}\n" for line in before)
    ends = "".join(f"  {line}\n" for line in after)
    return (
        f"static int (*real_{name})({function.declared});\n"
        f"int MPI_{name}({function.declared}) {{\n"
        f"{first}  pw_call call;\n"
        f'  pw_enter(&call, PW_TRACE_{event}, "MPI_{name}", __builtin_return_address(0));\n'
        f'  if (real_{name} == NULL) *(void**)&real_{name} = dlsym(RTLD_NEXT, "PMPI_{name}");\n'
        f"{lines}  pw_begin(&call);\n"
        f"  const int result = real_{name}({', '.join(given)});\n"
        f"  pw_end(&call);\n{ends}  pw_leave(&call, {_completes(kind, of)});\n{last}  return result;\n}}\n"
    )


Notes = tuple[list[str], list[str]]  # before the call, and after it


def _message(function: Function, kind: str, of: dict[str, str], comm: str | None) -> list[str]:
    """Before the call: the receiver, the communicator, and the number of bytes."""
    group = f"pw_group_of({comm})" if comm else None
    if win := function.of_type("MPI_Win"):
        group = f"pw_group_of_win({win})"
    if kind in ("SEND", "ISEND", "RECV", "IRECV", "SENDRECV", "ISENDRECV", "SEND_INIT", "RECV_INIT"):
        count = of["count"]
        if "partitions" in of:
            count = f"(long long){of['partitions']} * {count}"
        return [f"pw_message(&call, {comm}, {of['peer']}, {of['tag']}, {count}, {of['type']});"]
    if kind not in CALLS:
        return []
    lines = []
    if group:
        lines.append(f"if (call.writer != NULL) pw_where(&call, {group});")
    if group and "peer" in of:
        lines.append(f"if (call.writer != NULL) call.event.peer = pw_world_of({group}, {of['peer']});")
    return lines + _bytes(of, _ranks(function.name, comm, group))


def _received(kind: str, of: dict[str, str], comm: str | None) -> Notes:
    """After the call: what a blocking receive received."""
    if kind == "RECV":
        return [], [f"pw_arrived(&call, {comm}, status);"]
    if kind != "SENDRECV":
        return [], []
    peer = of["rpeer"]
    return [], [
        "if (call.writer != NULL) {",
        "  pw_call half = call;",
        '  pw_rename(&half, "receive of MPI_Sendrecv");',
        f"  half.event.kind = {peer} == MPI_PROC_NULL ? PW_TRACE_CALL : PW_TRACE_RECV;",
        f"  pw_arrived(&half, {comm}, status);",
        f"  if ({peer} != MPI_PROC_NULL) pw_trace_add(half.writer, &half.event);",
        "}",
    ]


def _started(function: Function, kind: str, of: dict[str, str], comm: str | None) -> Notes:
    """The requests that the call makes, starts again or frees."""
    handle = of.get("request") or function.of_type("MPI_Request *") or function.of_type("MPI_Request*")
    if handle and function.name != "Cancel" and (request := _request(function.name, kind, of)):
        group = f".group = pw_group_of({comm}), " if comm else ""
        text = f"(pw_request){{{group}{request}}}"
        return [], [
            f"if (result == MPI_SUCCESS && call.writer != NULL) pw_started(&call, *{handle}, {text});"
        ]
    if kind == "START":
        return [], [f"if (result == MPI_SUCCESS) pw_restarted(&call, *{of['request']});"]
    if kind == "STARTALL":
        return [], [
            f"for (int i = 0; result == MPI_SUCCESS && i < {of['count']}; ++i) "
            f"pw_restarted(&call, {of['requests']}[i]);"
        ]
    return ([f"pw_forgotten(*{of['request']});"] if kind == "FREE" else []), []


def _completed(kind: str, of: dict[str, str]) -> Notes:
    """The request that the call waits for or tests."""
    if kind not in ("WAIT", "TEST"):
        return [], []
    flag = f"if (*{of['flag']}) " if kind == "TEST" else ""
    return (
        [f"pw_request* const known = pw_look(*{of['request']});"],
        [f"{flag}pw_completed(&call, known, status);", *(["else pw_put_back(known);"] if flag else [])],
    )


def _probed(kind: str, of: dict[str, str], comm: str | None) -> Notes:
    """The message that a matched probe found, or that is received after one."""
    if kind == "MPROBE":
        result = _completes(kind, of)
        return [], [f"if (result == MPI_SUCCESS && {result}) pw_probed(&call, {comm}, *{of['message']});"]
    if kind not in ("MRECV", "IMRECV"):
        return [], []
    before = [f"pw_request* const known = pw_look_at_message(*{of['message']});"]
    if kind == "MRECV":
        return before, ["pw_completed(&call, known, status);"]
    return before, [f"if (result == MPI_SUCCESS) pw_message_started(&call, known, *{of['request']});"]


def _made_or_freed(function: Function, kind: str, of: dict[str, str]) -> Notes:
    """Communicators and windows."""
    if "BIRTH" in kind:
        return [], [f"if (result == MPI_SUCCESS) {_birth(function, kind, of)}"]
    if kind == "DEATH":
        handle = function.of_type("MPI_Comm *") or function.of_type("MPI_Comm*")
        return [f"const pw_group* gone = call.writer != NULL ? pw_group_of(*{handle}) : NULL;"], [
            "__atomic_add_fetch(&pw_freed, 1, __ATOMIC_RELEASE);",
            'pw_moment(&call, PW_TRACE_COMM_FREED, "communicator freed", gone);',
        ]
    if kind == "WINDOW_DEATH":
        handle = function.of_type("MPI_Win *") or function.of_type("MPI_Win*")
        return [f"const pw_group* gone = call.writer != NULL ? pw_group_of_win(*{handle}) : NULL;"], [
            'pw_moment(&call, PW_TRACE_WINDOW_FREED, "window freed", gone);'
        ]
    return [], []


def _completes(kind: str, of: dict[str, str]) -> str:
    """Whether the call found what it tests for; always true for a call that waits."""
    if kind in ("TEST", "TESTALL", "TESTANY") or (kind in ("PROBE", "MPROBE") and "flag" in of):
        return f"*{of.get('flag')}"
    return f"*{of.get('found')} > 0" if kind == "WAITSOME" else "1"


def _request(name: str, kind: str, of: dict[str, str]) -> str:
    """The description of the request that a call makes, as fields of pw_request; empty if it makes none."""
    persistent = f".persistent = {int(kind.endswith('_INIT'))}"
    silent = f".silent = {of['peer']} == MPI_PROC_NULL" if "peer" in of else ".silent = 0"
    if kind in ("ISEND", "SEND_INIT"):
        names = '.start = "start of a send", .whole = "send, until complete"'
        return f"{persistent}, {silent}, .kind = PW_TRACE_SENT, {names}"
    if kind in ("IRECV", "RECV_INIT"):
        return f'{persistent}, {silent}, .kind = PW_TRACE_RECEIVED, .start = "start of a receive"'
    if kind == "ISENDRECV":
        count, datatype = of.get("rcount", of["count"]), of.get("rtype", of["type"])
        return (
            f".kind = PW_TRACE_RECEIVED, .both = 1, .from = {of['rpeer']}, .from_tag = {of['rtag']}, "
            f".room = (uint64_t){count} * pw_size({datatype})"
        )
    if kind in ("ICOLLECTIVE", "COLLECTIVE_INIT"):
        base = name.removesuffix("_c").removesuffix("_init")
        start, whole = f'"start of MPI_{base}"', f'"MPI_{base}, until complete"'
        return f"{persistent}, .kind = PW_TRACE_COLLECTIVE_DONE, .start = {start}, .whole = {whole}"
    # Other requests, such as those of files and windows, are not recorded.
    return "" if kind in WITHOUT_NEW_REQUEST else ".silent = 1"


def _birth(function: Function, kind: str, of: dict[str, str]) -> str:
    """What is recorded about a new communicator or window."""
    parent = function.of_type("MPI_Comm")
    if kind == "WINDOW_BIRTH":
        window = function.of_type("MPI_Win *") or function.of_type("MPI_Win*")
        return f"pw_window_born(&call, {parent}, {window});"
    child = function.of_type("MPI_Comm *") or function.of_type("MPI_Comm*")
    if kind == "IBIRTH":
        request = function.of_type("MPI_Request *") or function.of_type("MPI_Request*")
        return f"pw_born_later({parent}, {child}, *{request});"
    if kind == "BIRTH_APART":
        return f"pw_born_apart(&call, {child}, {of.get('name', 'NULL')}, {of.get('tag', '0')});"
    return f"pw_born(&call, {parent}, {child});"


def _ranks(name: str, comm: str | None, group: str | None) -> str:
    """The number of ranks to which this rank sends in a collective."""
    if "eighbor_" in name:
        return f"(call.writer != NULL ? pw_neighbours({comm}) : 0)"
    return f"(call.writer != NULL ? {group}->size : 0)"


def _bytes(of: dict[str, str], size: str) -> list[str]:
    """The bytes that this rank contributes; `size` is the number of ranks that it sends to."""
    if "count" in of:
        return [f"pw_bytes(&call, {of['count']}, {of['type']});"]
    if "type_one" in of:
        return [f"pw_bytes(&call, 1, {of['type_one']});"]
    if "count_each" in of:
        return [f"pw_bytes(&call, (long long){of['count_each']} * {size}, {of['type']});"]
    if "counts" in of:
        return [
            "long long sum = 0;",
            f"const int size = {size};",
            f"for (int i = 0; {of['counts']} != NULL && i < size; ++i) sum += {of['counts']}[i];",
            f"pw_bytes(&call, sum, {of['type']});",
        ]
    return []


def _several(kind: str, of: dict[str, str]) -> Notes:
    """What a call with several requests keeps before the call and reports after it."""
    if kind not in OF_MANY:
        return [], []
    statuses = of.get("statuses", "MPI_STATUSES_IGNORE")
    before = [f"pw_many kept = pw_keep({of['count']}, {of['requests']}, {statuses});"]
    flag = f"if (*{of['flag']}) " if "flag" in of else ""
    if kind in ("WAITANY", "TESTANY"):
        ends = f"{flag}pw_one_completed(&call, &kept, *{of['index']}, status);"
    elif kind == "WAITSOME":
        ends = f"pw_some_completed(&call, &kept, *{of['found']}, {of['indices']});"
    else:
        ends = f"{flag}pw_all_completed(&call, &kept, result);"
    return before, [ends, "pw_end_many(&kept);"]
