"""Whole programs compiled by `peerway cc`: each directive on several numbers of processes, and
the samples.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from xacc_compiled import (
    PEERWAY,
    PROGRAMS,
    SAMPLES,
    SMALL,
    compiled,
    run,
    sequential,
    shared_program_of_all_directives,
)


@pytest.fixture(scope="module")
def program(shared_folder: Path) -> Path:
    return shared_program_of_all_directives(shared_folder)


@pytest.mark.parametrize(
    ("nodes", "threads"),
    [(1, 2), (4, 1), *(pytest.param(nodes, 1, marks=pytest.mark.long) for nodes in (2, 3, 8))],
)
def test_every_directive_gives_what_a_sequential_program_has(program: Path, nodes: int, threads: int) -> None:
    done = run(
        PEERWAY, "run", "-n", nodes, "--", program,
        folder=program.parent, NODES=str(nodes), OMP_NUM_THREADS=str(threads),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


# One process compiles the kernels; otherwise four would do so at once.
@pytest.mark.parametrize("nodes", [1, pytest.param(2, marks=pytest.mark.long), 4])
def test_every_directive_gives_the_same_on_a_gpu(program: Path, fake_gpu: dict[str, str], nodes: int) -> None:
    for late in ("0", "20"):  # milliseconds
        settings = {**fake_gpu, "NODES": str(nodes), "FAKE_CUDA_LATE": late}
        done = run(PEERWAY, "run", "-n", nodes, "--", program, folder=program.parent, **settings)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


def test_mpirun_starts_a_program(program: Path) -> None:
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    done = run(*start, program, folder=program.parent, NODES="2", PEERWAY_ACC="host")
    assert (done.returncode, done.stdout) == (0, "2 nodes, 0 wrong\n"), done.stderr


FIRST = """
#include <openacc.h>
#include <stdio.h>
int main(int argc, char** argv) {
  acc_set_device_num(argc - 1, acc_device_default);
  printf("device %d\\n", acc_get_device_num(acc_device_default));
  return argv[argc] != 0;
}
"""


def test_devices_are_counted_from_1_where_acc_first_device_says_so(
    tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    (tmp_path / "first.c").write_text(FIRST)
    program = compiled(tmp_path, "first.c")
    assert run(program, folder=tmp_path, **fake_gpu).stdout == "device 0\n"
    from_1 = {**fake_gpu, "PEERWAY_ACC_FIRST_DEVICE": "1"}
    assert run(program, "one", folder=tmp_path, **from_1).stdout == "device 1\n"
    wrong = run(program, folder=tmp_path, **from_1)
    assert wrong.returncode == 1
    assert "acc_set_device_num(0, ...); devices are counted from 1" in wrong.stderr
    beyond = run(program, *"123456789", folder=tmp_path, **fake_gpu)
    assert beyond.returncode == 1
    assert "acc_set_device_num(9), but there are " in beyond.stderr
    assert "set PEERWAY_ACC_FIRST_DEVICE=1 for a program that counts from 1" in beyond.stderr


ANOTHER = """
#include <openacc.h>
#include <stdio.h>
static double a[8];
int main(int argc, char** argv) {
  const acc_device_t type = acc_get_device_type();
  acc_set_device_type(type);
  acc_init(type);
  const int usual = acc_get_device_num(type), count = acc_get_num_devices(type);
  for (int device = 0; device < count; ++device) {
    acc_set_device_num(device, type);
    if (acc_get_device_num(type) != device) printf("%d, not %d\\n", acc_get_device_num(type), device);
  }
#pragma acc parallel loop
  for (int i = 0; i < 8; ++i) a[i] = i;
#pragma acc set device_num(count - 1)
  printf("device %d of %d, usual %d, %g\\n", acc_get_device_num(type), count, usual, a[7]);
  fflush(stdout);
  if (argc > 1) {
#pragma acc set device_num(0)
  }
  return argv[argc] != 0;
}
"""


def test_a_process_computes_on_the_device_that_it_chose(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    (tmp_path / "another.c").write_text(ANOTHER)
    program = compiled(tmp_path, "another.c")
    done = run(program, folder=tmp_path, **fake_gpu)
    assert (done.returncode, done.stdout, done.stderr) == (0, "device 1 of 2, usual 0, 7\n", "")
    refused = run(program, "late", folder=tmp_path, **fake_gpu)
    assert (refused.returncode, refused.stdout) == (1, done.stdout)
    error = "another.c:20: error: acc_set_device_num(0), but this process already uses device 1, "
    assert error in refused.stderr
    on_cpus = run(program, "late", folder=tmp_path, PEERWAY_ACC="host")
    assert (on_cpus.returncode, on_cpus.stdout, on_cpus.stderr) == (0, "device 0 of 1, usual 0, 7\n", "")


def test_a_repeated_sequence_gives_the_same(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    program = compiled(tmp_path, PROGRAMS / "xacc_sequences.c")
    for nodes in (1, 3):
        for settings in (fake_gpu, {"PEERWAY_ACC": "host"}):
            done = run(PEERWAY, "run", "-n", nodes, program, folder=tmp_path, **settings)
            assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


def test_values_that_stay_on_gpus_are_reduced_one_by_one_and_in_a_graph(
    tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    program = compiled(tmp_path, "-DBATCHES=3", SAMPLES / "reduction.c")
    for settings in (fake_gpu, {"PEERWAY_ACC": "host"}):
        done = run(PEERWAY, "run", "-n", 2, program, folder=tmp_path, **settings)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count('"right": true') == 2


def test_a_call_with_an_array_of_its_own_is_timed_on_a_gpu(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    program = compiled(tmp_path, "-DBATCHES=2", "-DCALLS=3", SAMPLES / "local.c")
    done = run(PEERWAY, "run", "-n", 2, program, folder=tmp_path, **fake_gpu)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"device": "GPU"' in done.stdout
    assert '"right": true' in done.stdout


def test_a_loop_that_has_no_kernel_is_done_by_the_host(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    compilation = run(PEERWAY, "cc", PROGRAMS / "xacc_host.c", "-o", "program", folder=tmp_path)
    assert compilation.returncode == 0
    assert "warning: no kernel for GPUs: the reduction of exact is of a long double" in compilation.stderr
    assert "warning: no kernel for GPUs: the reduction of totals is not of a scalar" in compilation.stderr
    assert "the firstprivate large is 4000 bytes; a kernel gets 2048 by value at most" in compilation.stderr
    for nodes in (1, 2):
        done = run(PEERWAY, "run", "-n", nodes, "./program", folder=tmp_path, **fake_gpu)
        assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


def test_coarrays_on_gpus(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    compilation = run(PEERWAY, "cc", PROGRAMS / "xacc_coarrays.c", "-o", "program", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    settings: tuple[dict[str, str], ...] = (
        fake_gpu,
        {**fake_gpu, "FAKE_CUDA_LATE": "50"},  # milliseconds
        {**fake_gpu, "PEERWAY_PATHS": "staged"},
        {"PEERWAY_ACC": "host"},
    )
    for images in (1, 3):
        for environment in settings:
            done = run(PEERWAY, "run", "-n", images, "./program", folder=tmp_path, **environment)
            assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


def test_functions_and_blocks_have_their_own_declarations(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    program = compiled(tmp_path, "-O1", PROGRAMS / "xacc_local.c")
    for nodes, settings in ((1, fake_gpu), (3, fake_gpu), (4, {"PEERWAY_ACC": "host"})):
        done = run(PEERWAY, "run", "-n", nodes, program, folder=tmp_path, **settings)
        assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> Path:
    crossed = "goes over another dimension of template"
    return compiled(tmp_path_factory.mktemp("bounds"), "-O2", PROGRAMS / "xacc_bounds.c", errors=crossed)


ALL = pytest.mark.long


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (1, "element 4 of dimension 0 of a is used, but this node owns 0 to 3 and has 0 to 3 in its memory"),
        pytest.param(2, " of dimension 0 of a is used, but this node owns ", marks=ALL),
        (3, " of dimension 0 of c is used, but this node owns "),
        pytest.param(4, "element 5 of dimension 1 of a is used, but this node owns 0 to 3", marks=ALL),
        pytest.param(5, " of dimension 1 of b is used, but this node owns ", marks=ALL),
        (6, " of dimension 0 of d is used, but this node has others: it is distributed cyclic"),
        pytest.param(7, "element 8 of dimension 0 of e is used, but this node owns 4 to 7", marks=ALL),
        (8, "element 4 of dimension 0 of a is used, but this node owns 0 to 3 and has 0 to 3 in its memory"),
    ],
)
def test_a_subscript_outside_memory_ends_the_program(beyond: Path, number: int, error: str) -> None:
    done = run(PEERWAY, "run", "-n", 4, beyond, number, folder=beyond.parent, PEERWAY_ACC="host")
    assert done.returncode != 0
    assert f"error: {error}" in done.stderr or (error.startswith(" ") and error in done.stderr)
    assert done.stdout == ""


def test_subscripts_in_memory_do_not_end_the_program(beyond: Path, fake_gpu: dict[str, str]) -> None:
    for settings in (fake_gpu, {"PEERWAY_ACC": "host"}):
        done = run(PEERWAY, "run", "-n", 4, beyond, folder=beyond.parent, **settings)
        assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


@pytest.mark.parametrize(
    ("number", "subscript"), [(8, "[i] in dimension 0 of a"), (9, "[i + 1] in dimension 0 of d")]
)
def test_a_subscript_outside_memory_ends_a_kernel(
    beyond: Path, fake_gpu: dict[str, str], number: int, subscript: str
) -> None:
    done = run(PEERWAY, "run", "-n", 4, beyond, number, folder=beyond.parent, **fake_gpu)
    assert done.returncode != 0
    assert f"Assertion `{subscript} is in this node's memory` failed" in done.stderr
    assert done.stdout == ""


def test_posts_need_not_be_waited_for_at_once(tmp_path: Path) -> None:
    program = compiled(tmp_path, PROGRAMS / "xacc_posts.c")
    for nodes in (1, 2, 3):
        done = run(PEERWAY, "run", "-n", nodes, program, folder=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            f"{nodes * (nodes + 1) // 2}, 0 wrong\n",
            "",
        )


WIDE = """
#include <stdio.h>
int main(void) {
  static _Atomic long double sum;
  for (int i = 0; i < 4; i++) sum += i;
  printf("%.1Lf\\n", sum);
}
"""


def test_atomics_of_wide_types_need_no_option(tmp_path: Path) -> None:
    (tmp_path / "wide.c").write_text(WIDE)
    done = run(compiled(tmp_path, "wide.c"), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0\n", "")


OWN_ROW = """
#include <stdio.h>
#include <xmp.h>
#pragma xmp nodes p[2][2]
#pragma xmp template t[2][8]
#pragma xmp distribute t[block][block] onto p
#pragma xmp nodes row[2] = p[0:2][*]
#pragma xmp template tx[8]
#pragma xmp distribute tx[block] onto row
int x[8], y[8], all[8], b[2][8];
#pragma xmp align b[i][j] with t[i][j]
#pragma xmp align x[j] with tx[j]
#pragma xmp align y[j] with tx[j]
int main(int argc, char **argv) {
  int wrong = 0;
#pragma xmp loop on tx[j]
  for (int j = 0; j < 8; j++) x[j] = y[j] = j;
#pragma xmp gmove
  x[0:4] = y[4:4];
#pragma xmp gmove
  all[0:8] = x[0:8];
  for (int j = 0; j < 8; j++) wrong += all[j] != (j < 4 ? j + 4 : j);
#pragma xmp reduction(+ : wrong)
#pragma xmp task on p[0][0]
  printf("%d wrong\\n", wrong);
  if (argc > 1 && argv[1]) {
#pragma xmp gmove
    x[0:2] = b[1][0:2];
  }
  return 0;
}
"""


def test_a_gmove_over_nodes_that_differ_from_node_to_node(tmp_path: Path) -> None:
    (tmp_path / "row.c").write_text(OWN_ROW)
    program = compiled(tmp_path, "row.c")
    done = run(PEERWAY, "run", "-n", 4, program, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")
    beyond = run(PEERWAY, "run", "-n", 4, program, "beyond", folder=tmp_path)
    assert beyond.returncode == 1
    assert "row.c:27: error: gmove of x, which is on row, and b, elements of which node 3" in beyond.stderr


ABSENT = """
double x[4]:[*], y[4];
int main(void) {
  if (xmpc_this_image() == 0) {
#pragma acc enter data create(x)
  }
#pragma acc data create(y)
  {
#pragma acc host_data use_device(x, y)
    { if (xmpc_this_image() == 0) { y[0:4] = x[0:4]:[1]; } }
  }
  return 0;
}
"""


def test_a_coarray_that_is_not_on_the_other_gpu_is_an_error(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    (tmp_path / "absent.c").write_text("#include <xmp.h>" + ABSENT)
    compilation = run(PEERWAY, "cc", "absent.c", "-o", "program", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    done = run(PEERWAY, "run", "-n", 2, "./program", folder=tmp_path, **fake_gpu)
    assert done.returncode == 1
    assert (
        "absent.c:10: error: coarray x is not on the GPU of image 1; all images name it in acc" in done.stderr
    )


UNFIXED = {
    "loop": (11, "template t is used here before it is fixed"),
    "use": (
        17,
        "a is used here, but its template is not fixed when this function begins, nor by what it calls "
        "before; fix it earlier",
    ),
    "task": (21, "t(1): the template t is not fixed yet; do that first"),
    "move": (27, "gmove of an array, which is not allocated"),
}


def test_a_template_used_before_it_is_fixed_is_an_error_with_the_line(tmp_path: Path) -> None:
    compilation = run(PEERWAY, "cc", PROGRAMS / "xacc_unfixed.c", "-o", "program", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    for directive, (line, text) in UNFIXED.items():
        done = run(PEERWAY, "run", "-n", 2, "--", "./program", directive, folder=tmp_path)
        assert done.returncode == 1
        assert f"xacc_unfixed.c:{line}: error: {text}\n" in done.stderr
    done = run(PEERWAY, "run", "-n", 2, "--", "./program", "no", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "sample",
    [pytest.param(sample, marks=[] if sample == "himeno" else [pytest.mark.long]) for sample in SMALL],
)
def test_a_sample_gives_on_all_numbers_of_nodes_what_it_gives_without_directives(
    tmp_path: Path, sample: str, fake_gpu: dict[str, str]
) -> None:
    wanted = sequential(tmp_path, sample)
    compiled(tmp_path, "-O2", *SMALL[sample], SAMPLES / f"{sample}.c")
    for nodes in (1, 4):
        done = run(PEERWAY, "run", "-n", nodes, "./program", folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, wanted)
    if sample == "laplace":  # its 7,616 steps take long on a simulated GPU
        return
    done = run(PEERWAY, "run", "-n", 2, "./program", folder=tmp_path, **fake_gpu)
    assert (done.returncode, done.stdout) == (0, wanted)


def test_explain_says_what_this_host_sends_by_which_path(tmp_path: Path) -> None:
    explanation = run(PEERWAY, "cc", "--explain", SAMPLES / "laplace.c", folder=tmp_path)
    assert (explanation.returncode, explanation.stderr) == (0, "")
    assert ": reflect u: halo plan 1: 2 faces of " in explanation.stdout
    assert " by plan/" in explanation.stdout
    assert explanation.stdout.splitlines()[-1].startswith(
        "note: paths are those between two ranks of this host ("
    )


@pytest.mark.long
def test_cg_of_class_w_has_the_zeta_that_nasa_publishes(tmp_path: Path) -> None:
    compilation = run(PEERWAY, "cc", "-O2", "-DCLASS_W", SAMPLES / "cg.c", "-lm", "-o", "cg", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    done = run(PEERWAY, "run", "-n", 4, "./cg", folder=tmp_path, PEERWAY_ACC="host")
    assert (done.returncode, done.stdout) == (0, "zeta 10.3625950871, as published\n")


@pytest.mark.long
def test_laplace_on_a_gpu_takes_the_steps_that_it_takes_on_cpus(
    tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    compilation = run(PEERWAY, "cc", "-O2", SAMPLES / "laplace.c", "-lm", "-o", "laplace", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    wanted = run("./laplace", "100", folder=tmp_path, PEERWAY_ACC="host")
    for nodes in (1, 2):
        done = run(PEERWAY, "run", "-n", nodes, "--", "./laplace", "100", folder=tmp_path, **fake_gpu)
        assert (done.returncode, done.stdout) == (wanted.returncode, wanted.stdout)
