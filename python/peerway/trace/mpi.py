"""Makes the library that records the calls of an MPI: a wrapper for each function that its mpi.h declares,
around the PMPI function of the same name, compiled once for each MPI and kept in the cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# What more is recorded than a call's time. The parameters are those of the standard, in its order: `count`
# and `type` say how many bytes, `peer`, `tag` and `comm` what a message is told by.
TABLE = """
Send Bsend Ssend Rsend              | SEND       | _ count type peer tag comm
Isend Ibsend Issend Irsend          | ISEND      | _ count type peer tag comm request
Recv                                | RECV       | _ count type peer tag comm status
Irecv                               | IRECV      | _ count type peer tag comm request
Send_init Bsend_init Ssend_init Rsend_init | SEND_INIT | _ count type peer tag comm request
Recv_init                           | RECV_INIT  | _ count type peer tag comm request
Start                               | START      | request
Startall                            | STARTALL   | count requests
Sendrecv                            | SENDRECV   | _ count type peer tag _ rcount rtype rpeer rtag comm status
Sendrecv_replace                    | SENDRECV   | _ count type peer tag rpeer rtag comm status
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
Barrier Ibarrier                    | COLLECTIVE | comm
Bcast Ibcast                        | COLLECTIVE | _ count type peer comm
Reduce Ireduce                      | COLLECTIVE | _ _ count type _ peer comm
Allreduce Iallreduce Scan Exscan Iscan Iexscan | COLLECTIVE | _ _ count type _ comm
Reduce_scatter_block Ireduce_scatter_block | COLLECTIVE | _ _ count type _ comm
Gather Igather                      | COLLECTIVE | _ count type _ _ _ peer comm
Gatherv Igatherv                    | COLLECTIVE | _ count type _ _ _ _ peer comm
Scatter Iscatter                    | COLLECTIVE | _ _ _ _ count type peer comm
Scatterv Iscatterv                  | COLLECTIVE | _ _ _ _ _ count type peer comm
Allgather Iallgather                | COLLECTIVE | _ count type _ _ _ comm
Allgatherv Iallgatherv              | COLLECTIVE | _ count type _ _ _ _ comm
Alltoall Ialltoall                  | COLLECTIVE | _ count_each type _ _ _ comm
Alltoallv Ialltoallv                | COLLECTIVE | _ counts _ type _ _ _ _ comm
Alltoallw Ialltoallw                | COLLECTIVE | _ _ _ _ _ _ _ _ comm
Reduce_scatter Ireduce_scatter      | COLLECTIVE | _ _ counts type _ comm
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
Comm_dup Comm_dup_with_info Comm_create Comm_create_group        | BIRTH |
Comm_split Comm_split_type Cart_create Cart_sub Graph_create     | BIRTH |
Dist_graph_create Dist_graph_create_adjacent                     | BIRTH |
Intercomm_create Intercomm_merge                                 | BIRTH |
Comm_free Comm_disconnect           | DEATH      |
Init Init_thread                    | INIT       |
Finalize                            | FINALIZE   |
"""
# Calls that neither communicate nor wait.
LOCAL = re.compile(
    r"(T|Type|Group|Info|Errhandler|Op|Status|Attr|Keyval|Error|Grequest|Session|Aint|Pack|Unpack|Buffer|Abi)(_|$)"
    r"|Get_(?!accumulate)|Add_error|Remove_error|Address$|Alloc_mem|Free_mem|Initialized|Finalized|Pcontrol|Is_thread|Query_thread"
    r"|Pack|Unpack|Wtime|Wtick|Cart_(coords|get|map|rank|shift)|Cartdim|Graph_(get|map|neighbors)|Graphdims"
    r"|Dist_graph_neighbors|Topo_test|Dims_create|Register|Close_port|Test_cancelled|Request_get"
    r"|Comm_(rank|size|compare|group|remote|test_inter|get|set|call|create_(keyval|errhandler)|free_keyval|delete_attr)"
    r"|(Win|File)_(get|set|call|create_(keyval|errhandler)|free_keyval|delete_attr|shared_query)"
)
PROTOTYPE = re.compile(r"\bint\s+PMPI_(\w+)\s*\(([^;{]*?)\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*;", re.S)


class MpiError(Exception):
    """What keeps an MPI's calls from being recorded, for people."""


@dataclass(frozen=True)
class Function:
    """One of an MPI's functions, as its header declares it."""

    name: str  # "Send"
    parameters: list[tuple[str, str]]  # type and what follows the name: ("MPI_Request", "[]")

    @property
    def declared(self) -> str:
        """The list of parameters, a0 the first."""
        return ", ".join(f"{kind} a{i}{rest}" for i, (kind, rest) in enumerate(self.parameters)) or "void"

    @property
    def arguments(self) -> list[str]:
        """What the wrapper has been given."""
        return [f"a{i}" for i in range(len(self.parameters))]

    def of_type(self, kind: str) -> str | None:
        """The first argument of a type."""
        return next((f"a{i}" for i, (found, _) in enumerate(self.parameters) if found == kind), None)


def functions(header: str) -> list[Function]:
    """Find the functions of a preprocessed mpi.h that are to be wrapped."""
    found = {}
    for name, inside in PROTOTYPE.findall(header):
        words = [" ".join(word.split()) for word in inside.split(",")]
        if LOCAL.match(name) or "..." in inside or "(" in inside:
            continue
        found[name] = Function(
            name, [] if words in (["void"], [""]) else [_parameter(word) for word in words]
        )
    return list(found.values())


def _parameter(text: str) -> tuple[str, str]:
    if text.endswith("*"):  # it has no name
        return text, ""
    match = re.fullmatch(r"(.*?)(\w+)\s*((?:\[[^]]*\])*)", text)
    assert match, text
    kind = match[1].strip()
    return (kind, match[3]) if kind else (match[2], "")


def table() -> dict[str, tuple[str, list[str]]]:
    """What is recorded of each function: the kind of wrapper, and the roles of its parameters."""
    rows = [[part.strip() for part in line.split("|")] for line in TABLE.strip().splitlines()]
    return {name: (kind, roles.split()) for names, kind, roles in rows for name in names.split()}


def source(header: str) -> str:
    """The wrappers of an MPI, as C."""
    known = table()
    texts = []
    for function in functions(header):
        kind, roles = known.get(function.name.removesuffix("_c"), ("CALL", []))
        named = dict(zip(roles, function.arguments, strict=False))
        texts.append(_wrapper(function, kind, named))
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
        f"int MPI_{name}({function.declared}) {{\n"
        f"{first}  pw_call call;\n"
        f'  pw_enter(&call, PW_TRACE_{event}, "MPI_{name}", __builtin_return_address(0));\n'
        f"{lines}  pw_begin(&call);\n"
        f"  const int result = PMPI_{name}({', '.join(given)});\n"
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


def library(mpicc: str) -> Path:
    """Give the library for the MPI of a compiler, made now unless it is in the cache. Raises MpiError."""
    from peerway import _core

    here = Path(__file__).parent
    include = Path(_core.__file__).parent / "include"
    header = _run([mpicc, "-E", "-x", "c", "-include", "mpi.h", "/dev/null"], "has no mpi.h")
    text = source(header)
    parts = (text, header, (here / "mpi.c").read_text(), (include / "peerway" / "trace.h").read_text(), mpicc)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    folder = _cache() / "trace"
    target = folder / f"mpi-{digest}.so"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{secrets.token_hex(8)}"
    draft.with_suffix(".c").write_text(text)
    try:
        words = ["-O2", "-w", "-fPIC", "-shared", "-std=gnu11", "-pthread", f"-I{here}", f"-I{include}"]
        _run(
            [mpicc, *words, str(draft.with_suffix(".c")), "-o", f"{draft}.so", "-ldl"],
            "cannot compile the wrappers",
        )
        Path(f"{draft}.so").replace(target)
    finally:
        draft.with_suffix(".c").unlink(missing_ok=True)
        Path(f"{draft}.so").unlink(missing_ok=True)
    return target


def _cache() -> Path:
    from peerway import _core

    setting = next(one for one in _core.settings() if one.name == "cache")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(setting.value) if setting.value else Path(base) / "peerway"


def _run(command: list[str], what: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MpiError(
            f"{command[0]} cannot be run: {error.strerror}; --mpicc names the compiler of the MPI"
        ) from error
    if done.returncode != 0:
        raise MpiError(f"{command[0]} {what}:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def compiler_of(command: list[str]) -> str | None:
    """The mpicc beside the mpirun that a command names; None where it names none. Raises MpiError."""
    name = Path(command[0]).name
    launcher = command[0] if re.match(r"mpi(run|exec)", name) else None
    if name == "peerway" and command[1:2] == ["mpirun"]:
        options = command[2 : command.index("--")] if "--" in command else command[2:]
        launcher = next(
            (options[i + 1] for i, word in enumerate(options[:-1]) if word == "--mpirun"), "mpirun"
        )
    if launcher is None:
        return None
    path = shutil.which(launcher)
    if path is None:
        return None  # which will be said when it is run
    suffix = re.sub(r"^mpi(run|exec)", "", Path(path).name).replace(".hydra", "")
    for folder in dict.fromkeys([Path(path).parent, Path(path).resolve().parent]):
        if (mpicc := folder / f"mpicc{suffix}").exists():
            return str(mpicc)
    raise MpiError(
        f"there is no mpicc{suffix} beside {path}: what it compiles records the calls of MPI. Install "
        "the MPI's development package, name its compiler with --mpicc, or trace without MPI: --mpicc none"
    )
