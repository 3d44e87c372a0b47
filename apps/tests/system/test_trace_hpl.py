"""Traces of Linpack: Debian's hpcc and apps/hpl over a NIC, and apps/hpl over Peerway.

Over the NIC, the trace and the NIC's counters agree to the byte.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launching import ROOT, Run, peerway
from mpi_stacks import STACKS, Carried, environment, over
from test_hpcc import INPUT

from peerway_trace.messages import match, match_signals
from peerway_trace.rings import Kind
from peerway_trace.store import Trace, load

LONG = pytest.mark.long
# Read here, because the tests remove these variables: a tarball, and a file of records.
SOURCE, KEPT = (os.environ.get(name) for name in ("PEERWAY_TEST_HPCC_SOURCE", "PEERWAY_TRACED_BYTES"))
RANKS = [2, pytest.param(4, marks=LONG), pytest.param(8, marks=LONG)]


def posted(trace: Trace) -> dict[str, tuple[int, int]]:
    """The number of the NIC's operations in the trace, and of the bytes that they moved."""
    nic = trace["kind"] == Kind.NIC
    names = np.array(trace.names)[trace["name"]]
    found = {name: nic & (names == f"NIC {name}") for name in ("put", "get")}
    return {name: (int(own.sum()), int(trace["bytes"][own].sum())) for name, own in found.items()}


def counted(carried: Carried) -> dict[str, tuple[int, int]]:
    """The same from the NIC's own counters."""
    ends = [line for line in carried.lines() if "put_bytes" in line]
    return {
        name: tuple(sum(int(str(end[key])) for end in ends) for key in (f"{name}s", f"{name}_bytes"))
        for name in ("put", "get")
    }  # type: ignore[return-value]


def traced(command: list[str], folder: Path, run: Run, cwd: Path, cache: str) -> Trace:
    words = ["trace", "-o", str(folder), "--events", str(1 << 20), "--"]
    done = run(
        peerway(*words, str(Path(sys.executable).parent / "peerway"), *command[3:]),
        cwd=cwd,
        env=environment(OPENBLAS_NUM_THREADS="1", PEERWAY_CACHE=cache),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    trace = load(folder)
    assert trace.dropped == 0
    return trace


# For HPL's build by another MPI than Debian's: the settings that its Make.UNKNOWN needs.
MAKE = """\
SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -sf
MKDIR = mkdir -p
RM = /bin/rm -f
TOUCH = touch
ARCH = here
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
HPL_DEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) {blas} -lm
CC = {compiler}
CCNOOPT = $(HPL_DEFS) -w
CCFLAGS = $(HPL_DEFS) -O2 -w
LINKER = {compiler}
LINKFLAGS = -O2
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
"""


def hpcc_of_mpich(folder: Path) -> str:
    """Compile the same unmodified source for MPICH, because Debian's hpcc is built for Open MPI."""
    compiler = STACKS["mpich-debian"][1]
    if SOURCE is None:
        pytest.skip(
            "PEERWAY_TEST_HPCC_SOURCE names no hpcc_1.5.0.orig.tar.gz: apt-get source --download-only hpcc"
        )
    if not compiler.exists():
        pytest.skip(f"{compiler} is not here: make setup as root")
    (blas,) = Path("/usr/lib").glob("*/libblas.so.3")
    subprocess.run(["tar", "xf", SOURCE, "-C", str(folder), "--strip-components", "1"], check=True)
    (folder / "hpl" / "Make.here").write_text(MAKE.format(compiler=compiler, blas=blas))
    made = subprocess.run(["make", "arch=here"], cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return str(folder / "hpcc")


@pytest.fixture(scope="module")
def hpcc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The name of an MPI, and the program for it."""
    if request.param == "mpich-debian":
        return request.param, hpcc_of_mpich(tmp_path_factory.mktemp("hpcc"))
    program = shutil.which("hpcc")
    if program is None:
        pytest.skip("hpcc is not here: make setup as root")
    return request.param, program


def keep(**counts: object) -> None:
    """Append a line to results/hpl/traced-bytes.jsonl, if requested."""
    if KEPT is not None:
        with Path(KEPT).open("a") as out:
            out.write(json.dumps({"record": "hpl_traced_bytes", **counts}) + "\n")


@pytest.mark.parametrize("hpcc", ["openmpi-debian", pytest.param("mpich-debian", marks=LONG)], indirect=True)
@pytest.mark.parametrize("ranks", RANKS)
def test_of_hpcc_every_byte_is_in_the_trace_and_in_the_nics_counters(
    ranks: int, hpcc: tuple[str, str], run: Run, shared_cache: str, tmp_path: Path
) -> None:
    stack, program = hpcc
    p, q = {2: (1, 2), 4: (2, 2), 8: (2, 4)}[ranks]
    (tmp_path / "hpccinf.txt").write_text(INPUT.format(n=200, p=p, q=q))
    carried = Carried(tmp_path)
    trace = traced(over(stack, carried.nic, ranks, program), tmp_path / "trace", run, tmp_path, shared_cache)
    printed = (tmp_path / "hpccoutf.txt").read_text()
    residual = re.search(r"^\|\|Ax-b\|\|_oo/\(eps.*\)= +(\S+) \.{6} PASSED$", printed, re.MULTILINE)
    assert residual is not None
    assert trace.ranks == list(range(ranks))
    assert posted(trace) == counted(carried)
    pairs = match(trace)
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    assert np.array_equal(trace["bytes"][pairs.first], trace["bytes"][pairs.second])
    keep(mpi=stack, program="hpcc 1.5.0", ranks=ranks, n=200, p=p, q=q, residual=float(residual[1]),
         trace=posted(trace), counters=counted(carried), messages=len(pairs.first),
         message_bytes=int(trace["bytes"][pairs.first].sum()))  # fmt: skip


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("stack", ["mpich-debian", pytest.param("openmpi-debian", marks=LONG)])
def test_of_our_hpl_over_mpi_every_byte_is_in_both(
    stack: str, ranks: int, run: Run, shared_cache: str, tmp_path: Path
) -> None:
    launcher, compiler = STACKS[stack]
    if not (launcher.exists() and compiler.exists()):
        pytest.skip(f"{launcher} is not here: make setup as root")
    from test_hpl import blas, build

    program = build("program", "peerway")
    module = tmp_path / "comm_mpi.so"
    flags = ["-std=c++20", "-O2", "-fPIC", "-shared", f"-I{ROOT / 'library' / 'include'}"]
    source = ROOT / "apps" / "hpl" / "comm_mpi.cpp"
    cxx = compiler.with_name(compiler.name.replace("mpicc", "mpicxx"))
    made = run([str(cxx), *flags, str(source), "-o", str(module)], env=environment())
    assert made.returncode == 0, made.stderr
    carried = Carried(tmp_path)
    grid = {2: ("1", "2"), 4: ("2", "2"), 8: ("2", "4")}[ranks]
    options = ["--grid", "x".join(grid), "--blas", blas(), "--threads", "1", "--n", "200", "--nb", "16"]
    own = tmp_path / "hpl"
    shutil.copy(program, own)  # it looks for its modules in its own folder
    command = over(stack, carried.nic, ranks, own, "--comm", "mpi", *options)
    trace = traced(command, tmp_path / "trace", run, tmp_path, shared_cache)
    assert trace.ranks == list(range(ranks))
    assert posted(trace) == counted(carried)


def test_of_our_hpl_over_peerway_all_waits_have_their_notifications(
    run: Run, shared_cache: str, tmp_path: Path
) -> None:
    from test_hpl import build, hpl

    folder = tmp_path / "trace"
    command = hpl(build("program", "peerway"), "2x2", "--n", "300", "--nb", "16")
    trace = traced(command, folder, run, tmp_path, shared_cache)
    assert trace.ranks == [0, 1, 2, 3]
    pairs = match_signals(trace)
    assert len(pairs.first) > 100
    assert len(pairs.alone_second) == 0
    ends = trace["begin"] + trace["duration"]
    assert np.all(trace["begin"][pairs.first] <= ends[pairs.second])
