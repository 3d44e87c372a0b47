"""Whole programs through `peerway fc`: every directive on several numbers of processes, and the example."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from documented_code import blocks
from xacc_compiled import PEERWAY, PROGRAMS, SAMPLES, run

pytestmark = pytest.mark.skipif(
    shutil.which("gfortran") is None,
    reason="gfortran is not installed (Debian: apt install gfortran), which peerway fc compiles with",
)
FORTRAN = PROGRAMS / "xacc_fc"


def compiled(folder: Path, *words: object) -> Path:
    """What `peerway fc` makes of these words; neither it nor the Fortran compiler warns."""
    compilation = run(PEERWAY, "fc", *words, "-o", "made", folder=folder)
    assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    return folder / "made"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once, by -Wall and with the checks of bounds that gfortran has."""
    folder = tmp_path_factory.mktemp("fc")
    return compiled(folder, "-Wall", "-O1", "-g", "-fcheck=bounds,do,mem,pointer", FORTRAN / "directives.f90")


@pytest.mark.parametrize(
    "nodes", [1, 4, *(pytest.param(nodes, marks=pytest.mark.long) for nodes in (2, 3, 8))]
)
def test_every_directive_gives_what_a_sequential_program_has(program: Path, nodes: int) -> None:
    done = run(PEERWAY, "run", "-n", nodes, "--", program, folder=program.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


@pytest.fixture(scope="module")
def coarrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At -O2: what others change behind the compiler's back must be read again."""
    return compiled(tmp_path_factory.mktemp("fc"), "-Wall", "-O2", FORTRAN / "coarrays.f90")


@pytest.mark.parametrize("images", [1, 3, pytest.param(8, marks=pytest.mark.long)])
def test_images_put_get_and_wait(coarrays: Path, images: int) -> None:
    done = run(PEERWAY, "run", "-n", images, "--", coarrays, folder=coarrays.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{images} images, 0 wrong\n", "")


def test_a_module_of_another_file_keeps_its_mapping(tmp_path: Path) -> None:
    """Compiled apart and linked, the two files are the same program."""
    fields, _, main = (FORTRAN / "directives.f90").read_text().partition("program directives")
    (tmp_path / "fields.f90").write_text(fields)
    (tmp_path / "main.f90").write_text(f"program directives{main}")
    for name in ("fields", "main"):
        compilation = run(PEERWAY, "fc", "-c", f"{name}.f90", folder=tmp_path)
        assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    done = run(PEERWAY, "run", "-n", 2, "--", compiled(tmp_path, "fields.o", "main.o"), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 nodes, 0 wrong\n", "")


FIXED = """\
C     A program of fixed form, whose loops end by labels.
      PROGRAM OLD
      INTEGER N
      PARAMETER (N = 20)
      INTEGER A(N), I, TOTAL
!$XMP NODES P(*)
!$XMP TEMPLATE T(N)
C$XMP DISTRIBUTE T(CYCLIC) ONTO P
*$XMP ALIGN A(I)
*$XMP* WITH T(I)
      TOTAL = 0
!$XMP LOOP ON T(I)
      DO 10 I = 1, N
   10   A(I) = I
!$XMP LOOP ON T(I) REDUCTION(+: TOTAL)
      DO 20 I = 1,                                                      columns that do not count
     1          N
      TOTAL = TOTAL + A(I)
   20 CONTINUE
!$XMP TASK ON P(1)
      PRINT '(I0)', TOTAL
!$XMP END TASK
      END
"""


def test_fixed_form(tmp_path: Path) -> None:
    (tmp_path / "old.f").write_text(FIXED)
    compilation = run(PEERWAY, "fc", "-std=legacy", "old.f", "-o", "made", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    assert run(PEERWAY, "run", "-n", 3, "--", "./made", folder=tmp_path).stdout == "210\n"


ACC = """\
program acc
  implicit none
  integer, parameter :: n = 1000
  real(8) :: u(n), s
  integer :: i
!$xmp nodes p(*)
!$xmp template t(n)
!$xmp distribute t(block) onto p
!$xmp align u(i) with t(i)
!$xmp shadow u(1)
!$acc data create(u)
!$xmp loop on t(i)
!$acc parallel loop
  do i = 1, n
    u(i) = i
  end do
!$xmp reflect (u) acc
  s = 0
!$acc data copy(s)
!$xmp loop on t(i)
!$acc parallel loop reduction(+: s)
  do i = 2, n - 1
    s = s + u(i - 1) + u(i + 1)
  end do
!$acc end parallel loop
!$xmp reduction (+: s) acc
!$acc end data
!$acc end data
!$xmp task on p(1)
  print '(i0)', nint(s)
!$xmp end task
end program acc
"""


def test_another_compiler_has_the_acc_directives(tmp_path: Path) -> None:
    (tmp_path / "acc.f90").write_text(ACC)
    program = compiled(tmp_path, "--openacc-backend=gfortran", "acc.f90")
    done = run(PEERWAY, "run", "-n", 2, "--", program, folder=tmp_path)
    assert (done.stdout, done.stderr) == ("998998\n", "")


def test_the_example_is_a_sequential_program_without_its_directives(tmp_path: Path) -> None:
    plain = run("gfortran", "-O2", SAMPLES / "laplace.f90", "-o", "plain", folder=tmp_path)
    assert plain.returncode == 0, plain.stderr
    parallel = compiled(tmp_path, "-O2", SAMPLES / "laplace.f90")
    done = run(PEERWAY, "run", "-n", 2, "--", parallel, folder=tmp_path)
    assert (done.stdout, done.stderr) == (run("./plain", folder=tmp_path).stdout, "")


def test_the_first_program_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "sum.f90").write_text(blocks("fortran")["docs/xacc/fortran.md 1"])
    done = run(PEERWAY, "run", "-n", 4, "--", compiled(tmp_path, "sum.f90", "-O2"), folder=tmp_path)
    said = blocks("console")["docs/xacc/fortran.md 1"].splitlines()[-1]
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{said}\n", "")
