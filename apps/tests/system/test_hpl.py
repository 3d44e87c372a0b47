"""apps/hpl: its solutions against SciPy's, over Peerway and over MPI; its table; and what it must refuse."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy
import scipy.linalg
from launching import BUILD, ROOT, Run, built, library_folder, peerway, source_of
from mpi_stacks import STACKS, environment
from nics import torus_file
from test_hpcc import INPUT

from peerway_measure.bench.peers import gpus
from peerway_trace.rings import Kind
from peerway_trace.store import load

APP = ROOT / "apps" / "hpl"
# The line by which parsers find a test in HPL's output: the encoded variant, N, NB, P, Q, time, Gflops.
LINE = re.compile(r"^(W[RC]\d\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.e+-]+)\s*$", re.MULTILINE)
RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo/\(eps.*\)= +(\S+) \.\.\.\.\.\. (PASSED|FAILED)$", re.MULTILINE)


def build(*parts: str) -> str:
    """The program, after building it and these parts with Debian's MPI."""
    command = [sys.executable, str(APP / "build.py"), *(word for part in parts for word in ("--only", part))]
    env = {**os.environ, "PEERWAY_BUILD": str(BUILD), "PATH": f"/usr/bin:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


@pytest.fixture(scope="module")
def program() -> str:
    library_folder()
    return build("program", "peerway")


@pytest.fixture(scope="module")
def with_mpi(program: str) -> str:
    if not STACKS["openmpi-debian"][1].exists():
        pytest.skip("Open MPI is not here: make setup as root")
    build("mpi")
    return program


@functools.cache
def blas() -> str:
    """The OpenBLAS in SciPy's package."""
    (found,) = (Path(scipy.__file__).parents[1] / "scipy.libs").glob("libscipy_openblas*.so")
    return str(found)


def hpl(program: str, grid: str, *options: str, comm: str = "peerway", library: str = "") -> list[str]:
    rows, _, columns = grid.partition("x")
    ranks = str(int(rows) * int(columns))
    words = [program, "--grid", grid, "--blas", library or blas(), "--threads", "1", *options]
    if comm == "mpi":
        return [str(STACKS["openmpi-debian"][0]), "--oversubscribe", "-n", ranks, *words, "--comm", "mpi"]
    return [*peerway("run", "-n", ranks, "--"), *words]


@functools.cache
def system(n: int) -> np.ndarray:
    """[A b] by the definition of HPL's generator, one element at a time."""
    elements, x = np.empty(n * (n + 1)), 100
    for i in range(elements.size):
        elements[i] = x / (2**64 - 1) - 0.5
        x = (6364136223846793005 * x + 1) % 2**64
    return elements.reshape(n + 1, n).T


@functools.cache
def expected(n: int) -> np.ndarray:
    factors = scipy.linalg.lu_factor(system(n)[:, :n])
    return scipy.linalg.lu_solve(factors, system(n)[:, n])


def solution(file: Path, n: int) -> np.ndarray:
    found = np.fromfile(file)
    assert found.shape == (n,)
    return found


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("grid", "n", "nb", "more"),
    [
        pytest.param("1x1", 203, 16, [], marks=LONG),
        pytest.param("1x2", 203, 16, [], marks=LONG),
        pytest.param("2x2", 203, 16, [], marks=LONG),
        pytest.param("2x4", 203, 16, [], marks=LONG),
        ("3x1", 192, 32, ["--nbmin", "3", "--pmap", "columns"]),
        pytest.param("2x2", 203, 300, [], marks=LONG),
        ("1x1", 1, 8, []),
        pytest.param("1x1", 203, 16, ["--pfact", "left", "--rfact", "crout", "--nbmin", "5"], marks=LONG),
        ("2x2", 203, 48, ["--pfact", "crout", "--nbmin", "12"]),
        pytest.param("3x2", 203, 48, ["--pfact", "left", "--nbmin", "48"], marks=LONG),
        pytest.param("2x2", 203, 16, ["--depth", "0"], marks=LONG),
        pytest.param("4x2", 517, 24, ["--pmap", "columns"], marks=LONG),
        pytest.param("1x8", 517, 100, ["--depth", "0"], marks=LONG),
        pytest.param("3x2", 600, 1, [], marks=LONG),
    ],
)
def test_the_solution_is_that_of_scipy(
    run: Run, program: str, tmp_path: Path, grid: str, n: int, nb: int, more: list[str]
) -> None:
    file = tmp_path / "x"
    done = run(hpl(program, grid, "--n", str(n), "--nb", str(nb), "--solution", str(file), *more))
    assert done.returncode == 0, done.stdout + done.stderr
    np.testing.assert_allclose(solution(file, n), expected(n), rtol=0, atol=1e-10 * abs(expected(n)).max())


@pytest.mark.parametrize("grid", ["2x2", pytest.param("2x4", marks=LONG)])
def test_mpi_gives_the_same_bits(run: Run, with_mpi: str, tmp_path: Path, grid: str) -> None:
    for comm in ("peerway", "mpi"):
        options = ["--n", "203", "--nb", "16", "--solution", str(tmp_path / comm)]
        done = run(hpl(with_mpi, grid, *options, comm=comm), env=environment())
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "peerway").read_bytes() == (tmp_path / "mpi").read_bytes()


@pytest.mark.parametrize("comm", ["peerway", "mpi"])
@pytest.mark.parametrize("grid", ["2x2", pytest.param("1x4", marks=LONG)])
def test_through_host_memory_come_the_same_bits(
    run: Run, with_mpi: str, tmp_path: Path, grid: str, comm: str
) -> None:
    """If MPI cannot read GPU memory; including panels that are passed on, and sent to several ranks."""
    for staging in ("no", "yes"):
        options = ["--n", "203", "--nb", "16", "--bcast", "tree,long", "--staging", staging]
        options += ["--solution", str(tmp_path / staging)]
        done = run(hpl(with_mpi, grid, *options, comm=comm), env=environment())
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("through host memory" in done.stdout) == (staging == "yes")
    assert (tmp_path / "yes").read_bytes() == (tmp_path / "no").read_bytes()


@pytest.mark.parametrize("grid", [pytest.param("1x2", marks=LONG), "1x5"])
def test_every_broadcast_brings_the_panels(run: Run, program: str, grid: str) -> None:
    variants = "1ring,1ringM,2ring,2ringM,long,longM,tree,star"
    done = run(hpl(program, grid, "--n", "150", "--nb", "8", "--bcast", variants, "--json"))
    assert done.returncode == 0, done.stdout + done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["bcast"] for result in results] == variants.split(",")
    assert all(result["passed"] for result in results)


@pytest.mark.parametrize(
    ("grid", "nb"), [("1x3", 8), *(pytest.param(*case, marks=LONG) for case in (("2x2", 16), ("1x5", 48)))]
)
def test_panels_that_a_stream_starts_give_the_same_bits(
    run: Run, program: str, tmp_path: Path, grid: str, nb: int
) -> None:
    """Including panels that others pass on, and the last ones, which fill a small part of their slot."""
    whole = "1ring,1ringM,2ring,2ringM,tree,star"
    for start in ("host", "stream"):
        options = ["--n", "203", "--nb", str(nb), "--bcast", whole, "--start", start, "--json"]
        done = run(hpl(program, grid, *options, "--solution", str(tmp_path / start)))
        assert done.returncode == 0, done.stdout + done.stderr
        results = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(result["bcast"], result["start"]) for result in results] == [
            (variant, start) for variant in whole.split(",")
        ]
    assert (tmp_path / "stream").read_bytes() == (tmp_path / "host").read_bytes()


def test_a_stream_starts_the_plan_of_each_panel(run: Run, program: str, tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    options = ["--n", "203", "--nb", "16", "--bcast", "1ring", "--start", "stream"]
    done = run([*peerway("trace", "-o", str(folder), "--"), *hpl(program, "1x2", *options)])
    assert done.returncode == 0, done.stdout + done.stderr
    trace = load(folder)
    ways = Counter(trace.names[i] for i in trace["where"][trace["kind"] == Kind.STEPS_BOTH])
    assert ways == {"host stream": 13}  # panels, of 203 columns in all


@pytest.mark.parametrize(
    ("comm", "options", "message"),
    [
        ("mpi", [], "--start stream, but Open MPI .* starts nothing in a stream"),
        ("peerway", ["--bcast", "long"], "--bcast long, whose root sends parts of panels"),
        ("peerway", ["--staging", "yes"], "through host memory starts nothing in a stream"),
    ],
)
def test_a_start_by_a_stream_is_refused_where_there_is_none(
    run: Run, with_mpi: str, comm: str, options: list[str], message: str
) -> None:
    command = hpl(with_mpi, "1x2", "--n", "100", "--nb", "16", "--start", "stream", *options, comm=comm)
    done = run(command, env=environment())
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(message, done.stderr), done.stderr


@pytest.mark.parametrize("start", ["host", "stream"])
@pytest.mark.parametrize("grid", ["2x2", pytest.param("1x4", marks=LONG)])
def test_the_solution_is_right_over_a_nic_that_keeps_no_order(
    run: Run, program: str, grid: str, start: str
) -> None:
    plugin = built("nic/torus/libpeerway_nic_torus.so")
    nic = {"PEERWAY_NIC": f"{plugin}?file={torus_file('nic:torus-none')}", "PEERWAY_PATHS": "nic:torus"}
    command = hpl(
        program, grid, "--n", "203", "--nb", "16", "--bcast", "1ring,tree", "--start", start, "--json"
    )
    done = run(command, env={**os.environ, **nic})
    assert done.returncode == 0, done.stdout + done.stderr
    assert [json.loads(line)["passed"] for line in done.stdout.splitlines()] == [True, True]


def test_the_table_is_that_of_hpl(run: Run, program: str) -> None:
    done = run(hpl(program, "1x2", "--n", "100,200", "--nb", "16", "--rpeak", "50"))
    assert done.returncode == 0, done.stderr
    lines = LINE.findall(done.stdout)
    assert [line[:5] for line in lines] == [
        ("WR10R2R8", "100", "16", "1", "2"),
        ("WR10R2R8", "200", "16", "1", "2"),
    ]
    assert all(
        0 < float(value) < 16 and verdict == "PASSED" for value, verdict in RESIDUAL.findall(done.stdout)
    )
    assert len(RESIDUAL.findall(done.stdout)) == 2
    assert "T/V                N    NB     P     Q               Time                 Gflops" in done.stdout
    assert "Finished      2 tests with the following results:" in done.stdout
    assert "2 tests completed and passed residual checks" in done.stdout
    assert "Rpeak: 100.0 Gflops = 2 ranks x the Gflops of --rpeak" in done.stdout
    assert done.stdout.count("Panels: by the CPUs: the matrix is in their memory\n") == 2


LEGEND = re.compile(
    r"^An explanation of the input/output.*?^ALIGN  : .*?$\n\n-{80}$", re.MULTILINE | re.DOTALL
)


def test_the_legend_is_that_of_hpl(run: Run, program: str, tmp_path: Path) -> None:
    """It is compared with HPL in Debian's hpcc, with this program's settings
    and more values than fit on a line.
    """
    hpcc = shutil.which("hpcc")
    if hpcc is None or not STACKS["openmpi-debian"][0].exists():
        pytest.skip("hpcc is not here: make setup as root")
    orders = ["100", "110", "120", "130", "140", "150", "160", "170", "180"]
    said = INPUT.format(n=" ".join(orders), p=1, q=2)
    for line, here in (
        ("1            # of problem sizes", "9"),
        ("4            NBMINs", "8"),
        ("1            RFACTs", "2"),
        ("2            SWAP", "1"),
        ("0            L1", "1"),
        ("0            U", "1"),
        ("1            Equilibration", "0"),
    ):
        assert said.count(line) == 1
        said = said.replace(line, here + line[1:])
    (tmp_path / "hpccinf.txt").write_text(said)
    launch = [str(STACKS["openmpi-debian"][0]), "--oversubscribe", "-n", "2"]
    done = run([*launch, hpcc], cwd=tmp_path, env=environment(OPENBLAS_NUM_THREADS="1"))
    assert done.returncode == 0, done.stdout + done.stderr
    options = ["--n", ",".join(orders), "--nb", "32", "--bcast", "1ringM"]
    done = run(hpl(program, "1x2", *options))
    assert done.returncode == 0, done.stdout + done.stderr
    own, theirs = (LEGEND.search(text) for text in (done.stdout, (tmp_path / "hpccoutf.txt").read_text()))
    assert own is not None
    assert theirs is not None
    assert own[0] == theirs[0]


@pytest.mark.parametrize("grid", [pytest.param("1x1", marks=LONG), "2x2"])
def test_blis_solves_it_too(run: Run, program: str, tmp_path: Path, grid: str) -> None:
    found = sorted(Path("/usr/lib").glob("*/blis-pthread/libblis.so.4"))
    if not found:
        pytest.skip("BLIS is not here: make setup as root")
    file = tmp_path / "x"
    options = ["--n", "203", "--nb", "16", "--solution", str(file), "--json"]
    done = run(hpl(program, grid, *options, library=str(found[0])))
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["passed"]
    assert result["device"] == f"CPU, {found[0]}"
    np.testing.assert_allclose(
        solution(file, 203), expected(203), rtol=0, atol=1e-10 * abs(expected(203)).max()
    )


def test_gflops_are_those_of_the_formula(run: Run, program: str) -> None:
    (line,) = run(hpl(program, "1x1", "--n", "300", "--json")).stdout.splitlines()
    result = json.loads(line)
    flop = 2 / 3 * 300**3 + 3 / 2 * 300**2
    assert result["gflops"] == pytest.approx(flop / result["seconds"] / 1e9, rel=1e-2)  # seconds to 1 us


DAT = """\
HPLinpack benchmark input file
Innovative Computing Laboratory
HPL.out   output file name
6         device
2         # of Ns
150 151   Ns
1         # of NBs
16        NBs
1         PMAP
1         # of grids
2         Ps
2         Qs
16.0      threshold
1         # of PFACT
0         PFACTs
1         # of NBMIN
4         NBMINs
1         # of NDIV
2         NDIVs
1         # of RFACT
1         RFACTs
2         # of BCAST
1 6       BCASTs
1         # of DEPTH
0         DEPTHs
2         SWAP
64        threshold
0         L1
0         U
1         Equilibration
8         alignment
"""


def dat(number: int = 1, line: str = "") -> str:
    """An HPL.dat with line `number` replaced."""
    lines = DAT.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


def test_hpl_dat_is_read(run: Run, program: str, tmp_path: Path) -> None:
    file = tmp_path / "HPL.dat"
    file.write_text(dat())
    done = run([*hpl(program, "2x2"), "--dat", str(file)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line[:5] for line in LINE.findall(done.stdout)] == [
        (f"WC0{variant}C2L4", n, "16", "2", "2") for n in ("150", "151") for variant in ("1", "6")
    ]
    assert "SWAP 2 is read as 1" in done.stdout
    assert re.search(r"^PFACT  :    Left $", done.stdout, re.MULTILINE)
    assert re.search(r"^RFACT  :   Crout $", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (dat(6, "150 Ns"), "line 6 of .* has 1 numbers where 2 are announced: '150 Ns'"),
        (dat(8, "-16 NBs"), "line 8 of .* is '-16 NBs'; give numbers from 1 to"),
        ("\n".join(dat().splitlines()[:9]), "has 9 lines; HPL.dat has 31, and line 10 is needed"),
    ],
)
def test_a_bad_hpl_dat_is_refused(run: Run, program: str, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "HPL.dat"
    file.write_text(text)
    done = run([*hpl(program, "1x1"), "--dat", str(file)])
    assert done.returncode != 0
    assert re.search(message, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grid", "2x2"], "a grid of 2 x 2 has 4 ranks, and 2 were started"),
        (["--grid", "2"], "two numbers joined by x"),
        (["--n", "0"], "--n is '0'; give a number from 1 to"),
        (["--pfact", "middle"], "--pfact is 'middle'; give left or crout or right"),
        (["--bcast", "4ring"], "--bcast is '4ring'; give one of auto, 1ring"),
        (["--start", "gpu"], "--start is 'gpu'; give auto or host or stream"),
        (["--depth", "2"], "--depth is '2'; give a number from 0 to 1"),
        (["--blas", "libnosuch.so"], "libnosuch.so: cannot open shared object file"),
        (["--fast"], "--fast is no option"),
        (["--n", "100", "7"], "7 is no option"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, program: str, options: list[str], message: str) -> None:
    done = run(hpl(program, "1x2", *options))
    assert done.returncode != 0
    assert re.search(message, done.stderr), done.stderr
    assert "PASSED" not in done.stdout


@pytest.mark.skipif(gpus.present().count > 0, reason="there is a GPU")
def test_without_a_gpu_its_device_is_refused(run: Run, program: str) -> None:
    done = run(hpl(program, "1x1", "--device", "cuda", library="libcublas.so.13"))
    assert done.returncode == 1
    assert re.search(
        "device_cuda was asked for and cannot be loaded|no BLAS for the GPU was found|for GPUs", done.stderr
    )


def test_too_little_memory_is_said_before_any_is_taken(run: Run, program: str) -> None:
    done = run(hpl(program, "1x2", "--n", "10000000"))
    assert done.returncode == 2
    numbers = r"needs (\S+) GiB a rank, and (\S+) GiB are free; the largest N that fits is (\d+)"
    said = re.search(r"N = 10000000 .* " + numbers, done.stderr)
    assert said, done.stderr
    needed, free, largest = float(said[1]), float(said[2]), int(said[3])
    assert needed > 8e14 / 2 / 2**30 > free
    assert 0.85 * free * 2**30 < 8 * largest**2 / 2 < free * 2**30
    # One rank prints it; the launcher may repeat a rank's last lines, after the rank's number.
    assert len(re.findall("^hpl: ", done.stderr, re.MULTILINE)) == 1


@pytest.mark.parametrize("start", ["host", "stream"])
@pytest.mark.parametrize("grid", [pytest.param("1x1", marks=LONG), "2x2"])
def test_a_singular_matrix_is_named_and_ends(run: Run, program: str, grid: str, start: str) -> None:
    done = run(hpl(program, grid, "--n", "100", "--nb", "16", "--matrix", "constant", "--start", start))
    assert done.returncode == 1
    assert "singular: the pivot of column 2 is exactly zero (info = 2) ...... FAILED" in done.stdout
    assert "1 tests completed and failed residual checks" in done.stdout


def test_a_wrong_product_fails_the_residual(run: Run, program: str, tmp_path: Path) -> None:
    library = tmp_path / "libwrong.so"
    source = source_of("wrong_blas.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library), "-ldl"], check=True)
    command = hpl(program, "1x2", "--n", "200", "--nb", "16", library=str(library))
    done = run(command, env={**os.environ, "WRONG_BLAS_OF": blas()})
    assert done.returncode == 1
    ((value, verdict),) = RESIDUAL.findall(done.stdout)
    assert verdict == "FAILED"
    assert float(value) > 16


def test_a_threshold_can_be_missed(run: Run, program: str) -> None:
    done = run(hpl(program, "1x1", "--n", "200", "--threshold", "1e-9"))
    assert done.returncode == 1
    assert RESIDUAL.findall(done.stdout)[0][1] == "FAILED"


@pytest.mark.parametrize("start", ["host", "stream"])
def test_a_lost_rank_ends_the_others(run: Run, program: str, start: str) -> None:
    script = 'if [ "$PEERWAY_RANK" = 1 ]; then (sleep 1; kill -9 $$) & fi; exec "$@"'
    launch = [*peerway("run", "-n", "2", "--"), "/bin/sh", "-c", script, "sh"]
    options = ["--grid", "1x2", "--n", "9000", "--blas", blas(), "--threads", "1", "--start", start]
    done = run([*launch, program, *options])
    assert done.returncode == 128 + 9
    assert "rank 1" in done.stderr
