"""Whole programs through `peerway fc`: every directive on several numbers of processes, and the example."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from documented_code import blocks
from fc_times import LATTICE, hop_in_c
from xacc_compiled import PEERWAY, PROGRAMS, SAMPLES, assert_alike, run

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


@pytest.mark.parametrize("nodes", [1, 4, pytest.param(3, marks=pytest.mark.long)])
def test_components_aliases_and_pointers_are_parts_of_distributed_arrays(parts: Path, nodes: int) -> None:
    done = run(PEERWAY, "run", "-n", nodes, "--", parts, folder=parts.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its module is compiled apart, so that its components and their types come from another file."""
    folder = tmp_path_factory.mktemp("fc")
    grids, _, main = (FORTRAN / "parts.f90").read_text().partition("program parts")
    (folder / "grids.f90").write_text(grids)
    (folder / "main.f90").write_text(f"program parts{main}")
    for name in ("grids", "main"):
        compilation = run(
            PEERWAY, "fc", "-O1", "-g", "-fcheck=bounds,do,mem,pointer", "-c", f"{name}.f90", folder=folder
        )
        assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    return compiled(folder, "grids.o", "main.o")


@pytest.fixture(scope="module")
def coarrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At -O2: what others change behind the compiler's back must be read again."""
    return compiled(tmp_path_factory.mktemp("fc"), "-Wall", "-O2", FORTRAN / "coarrays.f90")


@pytest.mark.parametrize("images", [1, 3, pytest.param(8, marks=pytest.mark.long)])
def test_images_put_get_and_wait(coarrays: Path, images: int) -> None:
    done = run(PEERWAY, "run", "-n", images, "--", coarrays, folder=coarrays.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{images} images, 0 wrong\n", "")


ENDS = """\
program ends
  integer :: x(3)[*], y
  integer(8) :: start, now, rate
  x = this_image()
  y = 1
  sync all
  call system_clock(start, rate)
  do while (this_image() == 2 .and. y == 1)
    y = x(2)[1]
    call system_clock(now)
    if (now - start > rate / 4) exit
  end do
  if (this_image() == 2) print '(i0)', y
end program ends
"""


def test_others_reach_a_coarray_of_an_image_that_has_ended(tmp_path: Path) -> None:
    """Its memory is not on the stack of the main program."""
    (tmp_path / "ends.f90").write_text(ENDS)
    program = compiled(tmp_path, "ends.f90")
    done = run(PEERWAY, "run", "-n", 2, "--", program, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


SETS = """\
program sets
  implicit none
!$xmp nodes p(*)
!$xmp nodes q(2) = p(2:3)
  integer :: y(2)[-1:*], me, wrong, total
!$xmp coarray on q :: y
  me = this_image()
  wrong = 0
  y = 10*me
  sync all
  if (this_image(y, 1) /= merge(me - 3, 0, me > 1)) wrong = wrong + 1
  if (ucobound(y, 1) /= 0 .or. image_index(y, [0]) /= 2 .or. image_index(y, [1]) /= 0) wrong = wrong + 10
  if (y(2)[-1] /= 20 .or. y(1)[0] /= 30) wrong = wrong + 100
  sync all
!$xmp task on q(2)
  y(1)[-1] = 7
!$xmp end task
  sync all
  if (y(1) /= merge(7, 10*me, me == 2)) wrong = wrong + 1000
  total = me
!$xmp image (q)
  call co_sum(total)
  if (total /= merge(5, 1, me > 1)) wrong = wrong + 10000
  if (me > 1) then
!$xmp image (q)
    sync all
  end if
  sync all
  print '(i0)', wrong
end program sets
"""


def test_nodes_are_the_images_of_a_coarray_and_of_a_statement(tmp_path: Path) -> None:
    (tmp_path / "sets.f90").write_text(SETS)
    done = run(PEERWAY, "run", "-n", 3, "--", compiled(tmp_path, "sets.f90"), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n" * 3, "")


@pytest.mark.parametrize("stop", ["error stop 3", "call exit(3)"])
def test_an_image_that_fails_ends_the_job(tmp_path: Path, stop: str) -> None:
    """The others, which wait for it, do not keep it from ending."""
    (tmp_path / "fails.f90").write_text(
        f"program fails\n  integer :: x[*]\n  if (this_image() == 2) {stop}\n  sync all\nend program fails\n"
    )
    done = run(PEERWAY, "run", "-n", 3, "--", compiled(tmp_path, "fails.f90"), folder=tmp_path)
    assert done.returncode != 0
    assert "exited with status 3" in done.stderr


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


def test_loops_of_acc_run_on_cpus_and_on_a_simulated_gpu(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    """They give what gfortran's loops do. The kinds that they need are in modules of other files."""
    plain = run("gfortran", "-O1", FORTRAN / "acc.f90", "-o", "plain", folder=tmp_path)
    assert plain.returncode == 0, plain.stderr
    wanted = run("./plain", folder=tmp_path).stdout
    text = (FORTRAN / "acc.f90").read_text()
    fields, main = text.index("module fields"), text.index("program acc")
    for name, part in (("kinds", text[:fields]), ("fields", text[fields:main]), ("main", text[main:])):
        (tmp_path / f"{name}.f90").write_text(part)
        compilation = run(PEERWAY, "fc", "-O1", "-c", f"{name}.f90", folder=tmp_path)
        assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    program = compiled(tmp_path, "kinds.o", "fields.o", "main.o")
    for nodes, settings in ((1, {}), (3, {"OMP_NUM_THREADS": "2"}), (1, fake_gpu), (3, fake_gpu)):
        done = run(PEERWAY, "run", "-n", nodes, "--", program, folder=tmp_path, **settings)
        assert (done.returncode, done.stderr) == (0, "")
        assert_alike(done.stdout, wanted)


def test_kernels_have_components_of_derived_types(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    """Without SEQUENCE, with it and BIND(C), extended, nested; the module is compiled apart."""
    plain = run("gfortran", "-O1", FORTRAN / "types.f90", "-o", "plain", folder=tmp_path)
    assert plain.returncode == 0, plain.stderr
    wanted = run("./plain", folder=tmp_path).stdout
    text = (FORTRAN / "types.f90").read_text()
    fields = text.index("module fields")
    for name, part in (("parts", text[:fields]), ("main", text[fields:])):
        (tmp_path / f"{name}.f90").write_text(part)
        compilation = run(PEERWAY, "fc", "-O1", "-c", f"{name}.f90", folder=tmp_path)
        assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    program = compiled(tmp_path, "parts.o", "main.o")
    for nodes, settings in ((1, {}), (3, {"OMP_NUM_THREADS": "2"}), (1, fake_gpu), (3, fake_gpu)):
        done = run(PEERWAY, "run", "-n", nodes, "--", program, folder=tmp_path, **settings)
        assert (done.returncode, done.stderr) == (0, "")
        assert_alike(done.stdout, wanted)


@pytest.mark.parametrize(
    ("sample", "published"),
    [
        *(pytest.param(sample, "sums", marks=pytest.mark.long) for sample in ("ep.f90", "ep.c")),
        ("cg.f90", "zeta 8.5971775079"),
    ],
)
def test_npb_has_the_published_results(tmp_path: Path, sample: str, published: str) -> None:
    words = ["fc", "-cpp"] if sample.endswith(".f90") else ["cc"]
    compilation = run(PEERWAY, *words, "-O2", SAMPLES / sample, "-lm", "-o", "made", folder=tmp_path)
    assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    done = run(PEERWAY, "run", "-n", 2, "--", "./made", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    assert line.startswith(published)
    assert line.endswith(", as published")


def test_the_hop_in_fortran_has_the_bits_of_the_one_in_c(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    """It is linked with C, too, which makes its fields."""
    (tmp_path / "hop.c").write_text(hop_in_c())
    flags = ("-O2", "-DEDGE=4")
    c = ["cc", *flags, f"-I{LATTICE}", "-DPT=2", "hop.c", "-lm", "-o", "of_c"]
    fields = ["cc", "-c", *flags, LATTICE / "fields.c", "-o", "fields.o"]
    for words in (c, fields):
        done = run(PEERWAY, *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    program = compiled(tmp_path, "-cpp", *flags, LATTICE / "hop.f90", "fields.o", "-lm")
    wanted = run(PEERWAY, "run", "-n", 2, "--", "./of_c", folder=tmp_path).stdout
    assert wanted.startswith("bits ")
    for nodes, settings in ((1, {}), (2, {}), (2, fake_gpu)):
        done = run(PEERWAY, "run", "-n", nodes, "--", program, folder=tmp_path, **settings)
        assert done.returncode == 0, done.stderr
        assert done.stdout == wanted


def test_c_and_fortran_are_one_program(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    compilation = run(PEERWAY, "cc", "-c", "-O1", FORTRAN / "both.c", "-o", "part.o", folder=tmp_path)
    assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    program = compiled(tmp_path, FORTRAN / "both.f90", "part.o")
    for settings in ({}, fake_gpu):
        done = run(PEERWAY, "run", "-n", 2, "--", program, folder=tmp_path, **settings)
        assert (done.returncode, done.stdout, done.stderr) == (0, "     0.0\n", "")


BAD = """\
program bad
  integer :: a(0:7, 5), b(0:7, 5), k
  character(9) :: which
!$xmp nodes p(*)
!$xmp template t(5)
!$xmp distribute t(cyclic) onto p
!$xmp template u(5)
!$xmp distribute u(block) onto p
!$xmp align a(*, j) with t(j)
!$xmp align b(*, j) with u(j)
!$xmp shadow b(0, 1)
  call get_command_argument(1, which)
  k = 6
  if (which == 'section') then
!$xmp gmove
    a(1:4, 2:k) = b(1:4, 1:5)
  else if (which == 'element') then
    a(1, k - 1) = 3
  else if (which == 'argument') then
    call outside(k)
  else
!$xmp reflect (b) width(0, k)
  end if
end program bad

subroutine outside(x)
  integer :: x[*]
  x[1] = 3
end subroutine outside
"""


def test_errors_count_as_fortran_does(tmp_path: Path) -> None:
    """From the bounds of an array, and its first dimension is 1."""
    (tmp_path / "bad.f90").write_text(BAD)
    program = compiled(tmp_path, "bad.f90")
    for which, error in (
        ("section", "gmove: subscripts 2 to 6 in dimension 2 of a at the left, which has 1 to 5"),
        ("element", "element 5 of dimension 2 of a is used, but this node has others: it is distributed"),
        ("argument", "argument x is in no coarray; pass a coarray, or a part of one without gaps"),
        ("width", "reflect of dimension 2 of b with a width of 6:6, but its shadow is 1:1"),
    ):
        done = run(PEERWAY, "run", "-n", 2, "--", program, which, folder=tmp_path)
        assert done.returncode != 0
        assert error in done.stderr


@pytest.mark.parametrize("sample", ["laplace", "himeno"])
def test_an_example_is_a_sequential_program_without_its_directives(tmp_path: Path, sample: str) -> None:
    source = SAMPLES / f"{sample}.f90"
    plain = run("gfortran", "-cpp", "-O2", source, "-o", "plain", folder=tmp_path)
    assert plain.returncode == 0, plain.stderr
    done = run(PEERWAY, "run", "-n", 2, "--", compiled(tmp_path, "-cpp", "-O2", source), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_alike(done.stdout, run("./plain", folder=tmp_path).stdout)


def test_the_first_program_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "sum.f90").write_text(blocks("fortran")["docs/xacc/fortran.md 1"])
    done = run(PEERWAY, "run", "-n", 4, "--", compiled(tmp_path, "sum.f90", "-O2"), folder=tmp_path)
    said = blocks("console")["docs/xacc/fortran.md 1"].splitlines()[-1]
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{said}\n", "")


@pytest.mark.parametrize(("name", "in_c", "in_fortran"), [("sum", 1, 1), ("ring", 2, 4), ("particles", 3, 5)])
def test_the_pairs_of_the_page_print_the_same(
    tmp_path: Path, fake_gpu: dict[str, str], name: str, in_c: int, in_fortran: int
) -> None:
    (tmp_path / f"{name}.c").write_text(blocks("c")[f"docs/xacc/fortran.md {in_c}"])
    (tmp_path / f"{name}.f90").write_text(blocks("fortran")[f"docs/xacc/fortran.md {in_fortran}"])
    for words in (("cc", f"{name}.c", "-o", "of_c"), ("fc", f"{name}.f90", "-o", "of_fortran")):
        compilation = run(PEERWAY, *words, "-O2", folder=tmp_path)
        assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    texts = []
    for program in ("of_c", "of_fortran"):
        for settings in ({}, fake_gpu):
            done = run(PEERWAY, "run", "-n", 3, "--", f"./{program}", folder=tmp_path, **settings)
            assert (done.returncode, done.stderr) == (0, "")
            texts.append(done.stdout)
    assert texts[0].strip()
    assert texts == texts[:1] * 4
