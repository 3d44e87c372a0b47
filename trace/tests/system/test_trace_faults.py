"""What a report says of real programs in which something is wrong on purpose: the place, the rank and the
cause.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from launching import Run, peerway
from mpi_stacks import STACKS, environment

from peerway_trace.analysis import analyse
from peerway_trace.store import load

# Rank 0 computes for 20 ms before every message; rank 1 waits for it.
LATE = """
    import sys, time, peerway, peerway_trace
    with peerway.Context() as ctx:
        region, signal = ctx.allocate("host", 1 << 16), ctx.signal()
        regions, signals = ctx.team.all_gather(region.key()), ctx.team.all_gather(signal.key())
        remote, theirs = ctx.import_key(regions[1 - ctx.rank]), ctx.import_key(signals[1 - ctx.rank])
        for i in range(10):
            if ctx.rank == 0:
                with peerway.trace.region("long work"):
                    time.sleep(float(sys.argv[1]))
                ctx.put(remote[0:4096], region[0:4096], notify=theirs)
            else:
                with peerway.trace.region("pick up"):
                    signal.wait(i + 1)
        ctx.flush()
        ctx.team.barrier()
"""

# The receive is posted first, and its rank checks for the message late; the send is too large for a buffer.
RENDEZVOUS = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static void sleep_ms(long ms) {
  const struct timespec pause = {0, 1000000 * ms};
  nanosleep(&pause, 0);
}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  volatile int* told = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[1], O_RDWR), 0);
  const int count = 1 << 24;
  char* data = calloc(count, 1);
  for (int i = 1; i <= 5; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      while (told[0] < i) sleep_ms(1);
      told[1] = i;
      MPI_Send(data, count, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    }
    if (rank == 1) {
      MPI_Request request;
      MPI_Irecv(data, count, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
      told[0] = i;
      while (told[1] < i) sleep_ms(1);
      sleep_ms(80);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  free(data);
  MPI_Finalize();
}
"""


def test_the_work_that_others_wait_for_is_what_to_shorten(tmp_path: Path, run: Run) -> None:
    folder, page = tmp_path / "trace", tmp_path / "page.html"
    program = [sys.executable, "-c", textwrap.dedent(LATE), "0.02"]
    words = peerway("trace", "-o", str(folder), "--", *peerway("run", "-n", "2", "--", *program))
    done = run(words)
    assert done.returncode == 0, done.stderr
    done = run(peerway("trace", "report", str(folder), "-o", str(page)))
    assert done.returncode == 0, done.stderr
    output = " ".join(done.stdout.split())
    assert "Wait at <module> at <string>:14 lost" in output
    assert "a signal that was notified late. Rank 0 caused all of it." in output
    assert "To end earlier, shorten computing in long work" in output
    text = page.read_text()
    assert "show it</a>" in text
    assert f"All {len(load(folder)):,} events" in text


@pytest.mark.parametrize("stack", ["openmpi-debian", pytest.param("mpich-debian", marks=pytest.mark.long)])
def test_a_receiver_that_looks_late_is_a_rendezvous_wait(
    stack: str, shared_cache: str, tmp_path: Path, run: Run
) -> None:
    launcher, compiler = STACKS[stack]
    if not (launcher.exists() and compiler.exists()):
        pytest.skip(f"{launcher} is not here: make setup as root")
    (tmp_path / "held.c").write_text(RENDEZVOUS)
    (tmp_path / "told").write_bytes(bytes(8))
    subprocess.run([compiler, "-O1", "-g", tmp_path / "held.c", "-o", tmp_path / "held"], check=True)
    more = ["--oversubscribe"] if stack.startswith("openmpi") else []
    folder = tmp_path / "trace"
    words = ["trace", "-o", str(folder), "--", str(launcher), *more, "-n", "2", str(tmp_path / "held")]
    words.append(str(tmp_path / "told"))
    done = run(peerway(*words), env=environment(PEERWAY_CACHE=shared_cache))
    assert done.returncode == 0, done.stderr
    (table,) = [each for each in analyse(load(folder), []).tables if each.title == "Lost time"]
    (row,) = [row for row in table.rows if row[0] == "rendezvous wait"]
    assert row[1] == "MPI_Send"
    assert row[2].startswith("main at held.c:")
    assert row[3] == "5"
    assert row[-2:] == ["0", "1"]
