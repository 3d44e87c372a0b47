"""Wrappers around an MPI's functions, as C: what each notes before the call and after it. mpi.c is what they
share.
"""

from __future__ import annotations

from peerway.trace.mpi_functions import Function, functions, table


def source(header: str) -> str:
    """The wrappers of an MPI, as C."""
    known = table()
    # Open MPI's Fortran calls PMPI, as does MPICH's mpi_f08: so each wrapper stands for both names.
    texts = []
    for function in functions(header):
        kind, roles = known.get(function.name.removesuffix("_c"), ("CALL", []))
        named = dict(zip(roles, function.arguments, strict=False))
        texts.append(_wrapper(function, kind, named))
        name, types = function.name, function.declared
        texts.append(f'int PMPI_{name}({types}) __attribute__((alias("MPI_{name}")));\n')
    return '#include "mpi.c"\n\n' + "\n".join(texts)


def _wrapper(function: Function, kind: str, of: dict[str, str]) -> str:
    """One wrapper: what it notes before, the call, and what it notes after."""
    name, given = function.name, function.arguments
    comm = of.get("comm") or function.of_type("MPI_Comm")
    group = f"pw_group_of({comm})" if comm else None
    if win := function.of_type("MPI_Win"):
        group = f"pw_group_of_win({win})"
    event = {
        "SEND": "SEND", "RECV": "RECV", "ISEND": "ISEND", "IRECV": "IRECV", "SENDRECV": "SEND",
        "COLLECTIVE": "COLLECTIVE", "RMA_PUT": "RMA_PUT", "RMA_GET": "RMA_GET", "RMA_SYNC": "RMA_SYNC",
    }.get(kind, "WAIT" if kind.startswith(("WAIT", "TEST")) else "CALL")  # fmt: skip
    before, after, found = [], [], "1"
    if kind in ("SEND", "ISEND", "RECV", "IRECV", "SENDRECV", "SEND_INIT", "RECV_INIT"):
        before.append(f"pw_message(&call, {comm}, {of['peer']}, {of['tag']}, {of['count']}, {of['type']});")
    elif kind in ("CALL", "PROBE", "COLLECTIVE", "RMA_PUT", "RMA_GET", "RMA_SYNC"):
        if group:
            before.append(f"if (call.writer != NULL) pw_where(&call, {group});")
        if group and "peer" in of:
            before.append(f"if (call.writer != NULL) call.event.peer = pw_world_of({group}, {of['peer']});")
        before += _bytes(of, group)
    if kind in ("RECV", "SENDRECV") or kind in ("WAIT", "WAITANY", "TEST", "TESTANY"):
        before.append("MPI_Status own;")
        before.append(
            f"MPI_Status* const status = {of['status']} != MPI_STATUS_IGNORE ? {of['status']} : &own;"
        )
        given = ["status" if argument == of["status"] else argument for argument in given]
    if kind == "RECV":
        after.append(f"pw_arrived(&call, {comm}, status);")
    if kind in ("ISEND", "IRECV", "SEND_INIT", "RECV_INIT"):
        what = "PW_TRACE_RECEIVED" if "RECV" in kind else "PW_TRACE_SENT"
        after.append(
            f"if (result == MPI_SUCCESS) "
            f"pw_started(&call, {comm}, *{of['request']}, {what}, {int('INIT' in kind)});"
        )
    if kind == "SENDRECV":
        peer = of["rpeer"]
        after += [
            "if (call.writer != NULL) {",
            "  pw_call half = call;",
            '  pw_rename(&half, "receive of MPI_Sendrecv");',
            f"  half.event.kind = {peer} == MPI_PROC_NULL ? PW_TRACE_CALL : PW_TRACE_RECV;",
            f"  pw_arrived(&half, {comm}, status);",
            f"  if ({peer} != MPI_PROC_NULL) pw_trace_add(half.writer, &half.event);",
            "}",
        ]
    if kind == "START":
        after.append(f"if (result == MPI_SUCCESS) pw_restarted(&call, *{of['request']});")
    if kind == "STARTALL":
        after.append(
            f"for (int i = 0; result == MPI_SUCCESS && i < {of['count']}; ++i) "
            f"pw_restarted(&call, {of['requests']}[i]);"
        )
    if kind in ("WAIT", "TEST"):
        before.append(f"const pw_request known = pw_look(&call, *{of['request']});")
    if kind == "FREE":
        before.append(f"pw_forgotten(*{of['request']});")
    if kind == "WAIT":
        after.append("pw_completed(&call, known, status);")
    if kind == "TEST":
        found = f"*{of['flag']}"
        after.append(f"if (*{of['flag']}) pw_completed(&call, known, status);")
    if kind == "PROBE":
        found = f"*{of['flag']}"
    if kind in ("WAITALL", "TESTALL", "WAITSOME", "WAITANY", "TESTANY"):
        several, completed = _several(kind, of)
        before += several
        after += completed
        found = {
            "TESTALL": f"*{of.get('flag')}",
            "TESTANY": f"*{of.get('flag')}",
            "WAITSOME": f"*{of.get('found')} > 0",
        }.get(kind, "1")
        given = ["kept.statuses" if argument == of.get("statuses") else argument for argument in given]
    if kind == "BIRTH":
        child = function.of_type("MPI_Comm *") or function.of_type("MPI_Comm*")
        after.append(f"if (result == MPI_SUCCESS) pw_born({comm}, {child});")
    if kind == "DEATH":
        after.append("__atomic_add_fetch(&pw_freed, 1, __ATOMIC_RELEASE);")
    first = "  pw_mpi_end();\n" if kind == "FINALIZE" else ""
    last = "  if (result == MPI_SUCCESS) pw_mpi_begin();\n" if kind == "INIT" else ""
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
        f"  pw_end(&call);\n{ends}  pw_leave(&call, {found});\n{last}  return result;\n}}\n"
    )


def _bytes(of: dict[str, str], group: str | None) -> list[str]:
    """How many bytes this rank contributes."""
    if "count" in of:
        return [f"pw_bytes(&call, {of['count']}, {of['type']});"]
    if "type_one" in of:
        return [f"pw_bytes(&call, 1, {of['type_one']});"]
    size = f"(call.writer != NULL ? {group}->size : 0)"
    if "count_each" in of:
        return [f"pw_bytes(&call, (long long){of['count_each']} * {size}, {of['type']});"]
    if "counts" in of:
        return [
            "long long sum = 0;",
            f"for (int i = 0; {of['counts']} != NULL && i < {size}; ++i) sum += {of['counts']}[i];",
            f"pw_bytes(&call, sum, {of['type']});",
        ]
    return []


def _several(kind: str, of: dict[str, str]) -> tuple[list[str], list[str]]:
    """What a call with several requests keeps before, and says after."""
    statuses = of.get("statuses", "MPI_STATUSES_IGNORE")
    before = [f"pw_many kept = pw_keep(&call, {of['count']}, {of['requests']}, {statuses});"]
    if kind in ("WAITANY", "TESTANY"):
        flag = f"*{of['flag']} && " if kind == "TESTANY" else ""
        index = f"*{of['index']}"
        body = (
            f"if ({flag}kept.known != NULL && {index} != MPI_UNDEFINED) "
            f"pw_completed(&call, kept.known[{index}], status);"
        )
    elif kind == "WAITSOME":
        count = f"*{of['found']}"
        body = (
            f"for (int i = 0; kept.known != NULL && {count} != MPI_UNDEFINED && i < {count}; ++i) "
            f"pw_completed(&call, kept.known[{of['indices']}[i]], &kept.statuses[i]);"
        )
    else:
        flag = f"*{of['flag']} && " if kind == "TESTALL" else ""
        body = (
            f"for (int i = 0; {flag}kept.known != NULL && i < {of['count']}; ++i) "
            f"pw_completed(&call, kept.known[i], &kept.statuses[i]);"
        )
    return before, [body, "free(kept.memory);"]
