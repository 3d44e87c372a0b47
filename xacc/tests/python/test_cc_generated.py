"""The C that `peerway cc` generates for directives: macros, continued lines, brackets, loops, arrays, acc."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cc_programs import MAPPED, compiled, in_main
from click import ClickException

from peerway_xacc.analysis import explained_paths

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A route table for --explain: the answers of two ranks, without starting ranks in each test."""

    def decided(ops: list[str], shapes: list[str], on_gpu: bool) -> list[dict[str, Any]]:
        ends = ["host", "cuda"] if on_gpu else ["host"]
        return [
            {"source": end, "decision": {
                "op": op, "shape": shape, "measured": "2026-11-20", "builtin": False, "rows": [
                    {"from": 1, "to": 1024, "via": f"{end}/small"},
                    {"from": 1024, "to": None, "via": f"{end}/large"},
                ]}}
            for end in ends for op in ops for shape in shapes
        ]  # fmt: skip

    monkeypatch.setattr(explained_paths, "decided", decided)


OF_MACROS = """\
#define ROW(i) a[i][0]
#define TWICE(x) ((x) + (x))
#define NAME a
#define OF(array, i) array[i][0]
#define PASTED(array, digit) array[digit ## u - 0 * digit ## u]
#define IN_TWO(i, j) a[i][j]
#define ONE 0 + 1
"""
LOOP = "  for (int i = 0; i < N; i++) a[i][0] = 0;"


def generated(folder: Path, source: str, *options: str) -> str:
    result = compiled(folder, source, *options)
    assert (result.status, result.errors) == (0, "")
    return result.text


@pytest.mark.parametrize(
    "lines",
    [
        ["#pragma xmp loop (i) on t[i][*]"],
        ["#pragma  xmp\tloop(i)on t[ i ][ * ] // the rows"],
        ["#pragma xmp loop \\", "  (i) \\", "  on t[i][*]"],
        ["#pragma xmp LOOP (i) /* in", "two lines */ on t[i][*]"],
        ["#pragma xmp loop (i) on t(*, i)"],
        ["#pragma xmp loop on t(*, i)"],
    ],
)
def test_one_directive_in_many_spellings(tmp_path: Path, lines: list[str]) -> None:
    text = generated(tmp_path, in_main(*lines, LOOP))
    assert "const pwx_span i__s = pwx_owned(&t__x, 1, 0);" in text
    assert "for (int i = pwx_first(i__s, 0, 1); i < pwx_below(i__s, N); i++) a[i - a__b0][0] = 0;" in text


MACROS = """\
#define DO(x) _Pragma(#x)
#define ROWS _Pragma("xmp loop (i) on t[i][*]")
#define BOTH ROWS DO(acc loop)
#define LOOP(i) ROWS for (int i = 0; i < N; i++)
"""


def _statements(text: str) -> str:
    """A generated text, without these macros and without the lines that say where in the source
    it is from.
    """
    lines = [line for line in text.split("\n") if not line.startswith(("#line", *MACROS.split("\n")[:-1]))]
    return re.sub(r"PWX_HERE\(\d+\)|main_\d+|#line \d+|\s+|\\\\n|\"", "", "".join(lines))


@pytest.mark.parametrize(
    "operators",
    [
        '_Pragma("xmp loop (i) on t[i][*]") _Pragma("acc loop")',
        '_Pragma /* of C99 */ (\n "xmp loop (i) on t[i][*]")\n_Pragma("acc loop")',
        "DO(xmp loop (i) on t[i][*]) DO(acc loop)",
        "ROWS\n#pragma acc loop",
        "BOTH",
    ],
)
def test_a_directive_may_be_an_operator(tmp_path: Path, operators: str) -> None:
    pragmas = "#pragma xmp loop (i) on t[i][*]\n#pragma acc loop\n"
    around = ['  _Pragma("GCC unroll 4") for (int k = 0; k < 2; k++) ;', "{", "WRITTEN", LOOP, "}"]
    source = MACROS + in_main(*around)
    plain = generated(tmp_path, source.replace("WRITTEN", pragmas))
    assert _statements(generated(tmp_path, source.replace("WRITTEN", operators))) == _statements(plain)


def test_the_lines_after_an_operator_keep_their_numbers(tmp_path: Path) -> None:
    text = generated(tmp_path, in_main('  int s; _Pragma("xmp barrier") s = 1;', "  s = 2;"))
    assert '\n#line 10 "prog.c"\n s = 1;\n  s = 2;\n' in text


def test_a_macro_of_a_directive_and_other_text_is_refused(tmp_path: Path) -> None:
    result = compiled(tmp_path, MACROS + in_main("  LOOP(i) a[i][0] = 0;"))
    assert result.errors.startswith(
        "prog.c:14:3: error: the macro 'LOOP' expands to a directive beside other"
    )


def test_macros_have_the_value_that_they_have_at_the_directive(tmp_path: Path) -> None:
    source = "#define ROWS(i) t[i][*]\n#define WITH on ROWS(i)\n#define AT 1\n" + in_main(
        "#pragma xmp loop (i) WITH",
        LOOP,
        "#undef AT",
        "#define AT 2",
        "#pragma xmp task on p[AT]",
        "  c[0] = 1;",
    )
    text = generated(tmp_path, source)
    assert "pwx_owned(&t__x, 1, 0)" in text
    assert "{PWX_RANGE, (2) + 1, (2) + 1, 1}" in text


def test_a_directive_that_the_preprocessor_leaves_out_does_not_count(tmp_path: Path) -> None:
    text = generated(tmp_path, in_main("#ifdef NOWHERE", "#pragma xmp nonsense", "#endif"))
    assert "nonsense" in text  # it is text like any other


def test_macros_of_the_command_line_count(tmp_path: Path) -> None:
    text = generated(tmp_path, in_main("#pragma xmp barrier on p[WHO]"), "--emit", "-DWHO=3")
    assert "{PWX_RANGE, (3) + 1, (3) + 1, 1}" in text


@pytest.mark.parametrize(
    ("written", "bounds"),
    [
        ("i = 0; i < N; i++", "i = pwx_first(i__s, 0, 1); i < pwx_below(i__s, N); i++"),
        ("i = 1; i <= N - 2; i += 2", "i = pwx_first(i__s, 1, 2); i <= pwx_up_to(i__s, N - 2); i += 2"),
        ("i = 0; N > i; ++i", "i = pwx_first(i__s, 0, 1); pwx_below(i__s, N) > i; ++i"),
        ("i = 0; i != N; i = i + 1", "i = pwx_first(i__s, 0, 1); i < pwx_below(i__s, N); i = i + 1"),
        ("i = N - 1; i >= 0; i--", "i = pwx_first_down(i__s, N - 1, 1); i >= pwx_down_to(i__s, 0); i--"),
        ("i = N - 1; i > 0; i -= 3", "i = pwx_first_down(i__s, N - 1, 3); i > pwx_above(i__s, 0); i -= 3"),
    ],
)
def test_bounds_of_a_loop_become_those_that_a_node_owns(tmp_path: Path, written: str, bounds: str) -> None:
    text = generated(
        tmp_path, in_main("#pragma xmp loop (i) on t[i][*]", f"  for (int {written}) a[i][1] = 2;")
    )
    assert f"for (int {bounds}) a[i - a__b0][1] = 2; }}" in text


def test_code_without_directives_stays_as_it_is(tmp_path: Path) -> None:
    loop = LOOP.replace("N;", "4;")
    source = in_main(loop, "  c[1]   =  2 ; /* odd   spacing */")
    text = generated(tmp_path, source)
    assert loop.replace("for", "pwx_written(&a__x); for").replace("[i]", "[PWX_IN(a, 0, i)]") in text
    assert "  c[1]   =  2 ; /* odd   spacing */" in text


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("ROW(i) = 2;", "a[PWX_IN(a, 0, i)][0] = 2;"),
        ("TWICE(ROW(i));", "((a[PWX_IN(a, 0, i)][0]) + (a[PWX_IN(a, 0, i)][0]));"),
        ("TWICE(a[i][0]);", "TWICE(a[PWX_IN(a, 0, i)][0]);"),
        ("NAME[i][0] = 2;", "a[PWX_IN(a, 0, i)][0] = 2;"),
        ("OF(a, i) = 2;", "a[PWX_IN(a, 0, i)][0] = 2;"),
        ("PASTED(a, 1)[0] = 2;", "a[PWX_IN(a, 0, 1u - 0 * 1u)][0] = 2;"),
        ("IN_TWO(i,\n0) = 2;", "a[PWX_IN(a, 0, i)][0]\n = 2;"),
        ("a[ONE][1] = 2;", "a[PWX_IN(a, 0, ONE)][1] = 2;"),
        ("a[i][ROW(1) > 0] = 2;", "a[PWX_IN(a, 0, i)][a[PWX_IN(a, 0, 1)][0] > 0] = 2;"),
        ("a[(i, 2)][1] = a[c[i] > 1][0];", "a[PWX_IN(a, 0, (i, 2))][1] = a[PWX_IN(a, 0, c[i] > 1)][0];"),
    ],
)
def test_global_subscripts_become_local_ones(tmp_path: Path, written: str, becomes: str) -> None:
    source = in_main("int i = N - 1;", written, "undeclared();").replace("int main", f"{OF_MACROS}int main")
    text = generated(tmp_path, source)
    assert becomes in text
    assert line_of(text, "undeclared()") == source[: source.index("undeclared()")].count("\n") + 1


def line_of(text: str, word: str) -> int:
    """The line number in which the C compiler sees a word of a generated text."""
    number = 0
    for line in text.split("\n"):
        if line.startswith("#line "):
            number = int(line.split()[1])
            continue
        if word in line:
            break
        number += 1
    return number


def test_the_compiler_counts_lines_as_the_source_has_them(tmp_path: Path) -> None:
    source = MAPPED + (
        "int main(void) {\n#pragma xmp loop (i) \\\n  on t[i][*]\n  for (int i = 0; i < N; i++)\n"
        "    a[i][0] = undeclared(i);\n  return 0;\n}\n"
    )
    assert line_of(generated(tmp_path, source), "undeclared(i)") == 13


def test_extents_are_literals_where_nodes_and_sizes_are(tmp_path: Path) -> None:
    source = (
        "#define N 10\n#pragma xmp nodes p(2,3)\n#pragma xmp template t(0:N-1,0:N-1)\n"
        "#pragma xmp distribute t(block,block) onto p\ndouble a[N][N];\n"
        "#pragma xmp align a[i][j] with t(j,i)\n#pragma xmp shadow a[1:1][2:0]\n"
        "int main(void) { return a[0][0] > 0; }\n"
    )
    text = generated(tmp_path, source)
    assert "(*const a)[7]" in text  # ceil(10 / 2) and 2 layers
    assert "pwx_array_expect(&a__x, 1, 7," in text


def test_extents_come_from_the_descriptor_where_the_nodes_are_free(tmp_path: Path) -> None:
    source = (
        "#define N 10\n#pragma xmp nodes p(*)\n#pragma xmp template t(0:N-1)\n"
        "#pragma xmp distribute t(block) onto p\ndouble a[N][N];\n#pragma xmp align a[*][j] with t(j)\n"
        "int main(void) { return a[0][0] > 0; }\n"
    )
    assert "(*const a)[a__x.ld[1]]" in generated(tmp_path, source)


def test_a_parameter_is_bound_and_a_caller_passes_it_whole(tmp_path: Path) -> None:
    source = MAPPED + (
        "static double f(double v[N][N]) {\n#pragma xmp align v[i][j] with t[i][j]\n"
        "#pragma xmp shadow v[1][0]\n  return v[1][2];\n}\nint main(void) { return f(a) > 0; }\n"
    )
    text = generated(tmp_path, source)
    assert "static double f(double v__arg[N][N]) {" in text
    assert 'pwx_bind(&v__x, (void *)v__arg, "v", sizeof(v__arg[0][0]), 2,' in text
    assert "return f((void *)a) > 0;" in text


def test_private_wins_over_present(tmp_path: Path) -> None:
    lines = [
        "  double s = 0;",
        "#pragma acc parallel loop private(s) present(s, c)",
        "  for (int i = 0; i < N; i++) s = c[i];",
    ]
    text = generated(tmp_path, in_main(*lines))
    assert "#pragma omp parallel for private(s)" in text


def test_scalars_that_a_loop_writes_are_each_threads_own(tmp_path: Path) -> None:
    lines = [
        "  int j; double s = 0, t1 = 1;", "#pragma acc parallel loop reduction(+:s)",
        "  for (int i = 0; i < N; i++) {", "    t1 = c[i];", "    for (j = 0; j < N; j++) s += t1;", "  }",
    ]  # fmt: skip
    text = generated(tmp_path, in_main(*lines))
    assert "#pragma omp parallel for reduction(+: s) private(j) firstprivate(t1)" in text


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("#pragma acc kernels loop", "because nothing says that its iterations are independent"),
        ("#pragma acc parallel loop seq", "as the directive says"),
    ],
)
def test_a_loop_that_is_not_shared_among_threads_says_why(tmp_path: Path, directive: str, why: str) -> None:
    source = in_main(directive, "  for (int i = 0; i < N; i++) c[i] = 0;")
    assert "#pragma omp" not in generated(tmp_path, source)
    cpu, gpu = generated(tmp_path, source, "--explain").splitlines()[-2:]  # the loop sends nothing
    assert cpu.endswith(f"one thread, {why}")
    assert gpu.endswith("on a GPU: one thread; data: c")


def test_directives_of_one_statement_come_in_any_order(tmp_path: Path) -> None:
    xmp, acc, omp = "#pragma xmp loop (i) on t[i][*]", "#pragma acc parallel loop", "#pragma omp parallel for"
    wanted = ["{ pwx_written(&a__x); const pwx_span i__s = pwx_owned(&t__x, 1, 0);", omp]
    for order in ([xmp, acc], [acc, xmp], [xmp, omp], [omp, xmp]):
        lines = [line for line in generated(tmp_path, in_main(*order, LOOP)).split("\n") if line in wanted]
        assert lines == wanted, order


def test_sections_become_gmove(tmp_path: Path) -> None:
    text = generated(tmp_path, in_main("#pragma xmp gmove", "  a[1:2][:] = b[3:2][0:N];"))
    assert "{{1, 2, 1, 0}, {0, 16, 1, 0}}" in text
    assert "{{3, 2, 1, 0}, {0, N, 1, 0}}" in text


def test_gmove_in_and_out_are_explained_and_count_as_unseen_writes(tmp_path: Path) -> None:
    lines = ["#pragma xmp gmove in", "  c[:] = a[0][:];", "#pragma xmp gmove out acc", "  b[0][:] = c[:];"]
    text = generated(tmp_path, in_main(*lines))
    assert "pwx_gmove(PWX_IN, &(const pwx_section){.base = (void *)c" in text
    assert "pwx_gmove(PWX_OUT_TO_GPUS, &(const pwx_section){.array = &b__x" in text
    assert "pwx_array_watch(&a__x, 1);" in text
    assert "pwx_array_watch(&b__x, 2);" in text
    assert "{ pwx_gmove_one_sided(); pwx_unit_add(&pwx__unit); }" in text
    assert "one_sided" not in generated(tmp_path, in_main("#pragma xmp gmove", "  c[:] = a[0][:];"))


def test_a_coarray_loses_its_mark_and_its_transfers_become_calls(tmp_path: Path) -> None:
    text = generated(tmp_path, "int x[4]:[*], s;\nint main(void) {\n  x[0:2]:[1] = s;\n  s = x[1]:[0];\n}\n")
    assert "int x[4], s;" in text
    assert "pwx_coarray_put(&x__c, 1, (const pwx_triplet[]){{0, 2, 1, 0}}" in text
    assert "pwx_coarray_get(&(const pwx_section){.base = (void *)&s" in text


def test_explain_says_bounds_halos_and_threads(tmp_path: Path) -> None:
    source = in_main(
        "#pragma xmp reflect (a) width(/periodic/1:0, 0) orthogonal",
        "#pragma xmp loop (i) on t[i][*]",
        "#pragma acc parallel loop collapse(2)",
        "  for (int i = N - 1; i > 0; i--)",
        "    for (int j = 0; j < N; j++) a[i][j] = b[i][j];",
    )
    assert generated(tmp_path, source, "--explain") == (
        "prog.c:10: reflect a, one plan, no corners: "
        "a 1 below and 0 above in dimension 0, periodic (block over p); "
        "free when nothing wrote since the last one\n"
        "prog.c:10: reflect a: halo plan 1: 1 face of 128 B by host/small\n"
        "prog.c:11: loop on t[i][*]: "
        "i from min(N - 1, last owned), i > max(0, first owned - 1) (block over p)\n"
        "prog.c:12: acc parallel loop: threads share i, vectors over j; omp parallel for\n"
        "prog.c:12: kernel main_12__2 on a GPU: x = i x j; data: a, b\n"
        "note: paths are those between two ranks of this host (costs measured 2026-11-20); see peerway "
        "explain\n"
    )


@pytest.mark.parametrize(
    ("page", "name", "count"),
    [("xacc/directives.md", "laplace.c", 5), ("tutorials/03-directives.md", "heat.c", 6)],
)
def test_a_page_shows_what_explain_says(page: str, name: str, count: int, tmp_path: Path) -> None:
    """Some of the lines, but for the path, which depends on the machine."""
    text = (ROOT / "docs" / page).read_text()
    written = re.search(rf'```c title="{name}"\n(.*?)```', text, re.S)
    source = written[1] if written else (ROOT / "examples" / "xacc" / name).read_text()
    shown = re.findall(rf"^{name}:.*", text.partition(f"$ peerway cc --explain {name}\n")[2], re.M)
    explained = compiled(tmp_path, source, "--explain", name=name).text
    lines = [line.partition(" by ")[0] for line in explained.splitlines()]
    assert len(shown) == count
    assert [line for line in shown if line.partition(" by ")[0] not in lines] == []


GRID = """\
#pragma xmp nodes q[2][2]
#pragma xmp template g[64][64]
#pragma xmp distribute g[block][block] onto q
static double u[64][64][4];
static float w[64][64];
static double v[64][64];
#pragma xmp align u[i][j][*] with g[i][j]
#pragma xmp align w[i][j] with g[i][j]
#pragma xmp align v[i][j] with g[i][j]
#pragma xmp shadow u[1:2][1][0]
#pragma xmp shadow w[1][1]
#pragma xmp shadow v[2][2]
int main(void) {
  int n = 1;
  double sum = 0, list[64][64];
  float got[64][64];
"""


@pytest.mark.parametrize(
    ("lines", "explanation"),
    [
        # 32 x 32 sites of 32 B: a row is contiguous between its shadows, a column is not.
        (
            ["#pragma xmp reflect (u) orthogonal"],
            "reflect u: halo plan 1: 1 face of 1 KiB by host/large, 1 face of 2 KiB in blocks of 1 KiB by "
            "host/large, 2 faces of 1 KiB in blocks of 32 B by host/large",
        ),
        (
            ["#pragma xmp reflect (w) acc", "  n = 2;", "#pragma xmp reflect (w) width(0:1, 0)"],
            "reflect w: halo plan 1: 2 faces of 128 B by cuda/small, 2 faces of 128 B in blocks of 4 B by "
            "cuda/small, 4 corners of 4 B by cuda/small",
        ),
        (
            ["#pragma xmp reflect (u) width(1, 0, 0)", "#pragma xmp reflect (w) width(1, 0)"],
            "reflect u, w: halo plan 1: 2 faces of 1 KiB by host/large, 2 faces of 128 B by host/small",
        ),
        (
            ["#pragma xmp reflect (w) width(n, 0)"],
            "reflect w: halo plan 1: 2 faces, of a size known at run time, by host/small below 1 KiB or "
            "host/large",
        ),
        (
            ["#pragma xmp reflect (w)", "  n = 2;", "#pragma xmp reflect (u)"],
            "reflect u: halo plan 2: 1 face",
        ),
        (["#pragma xmp reduction (+:sum)"], "reduction of sum: messages of 8 B by host/small"),
        (["#pragma xmp reduction (+:sum) acc"], "reduction of sum: messages of 8 B by cuda/small"),
        (["#pragma xmp post (q[1][0], 3)"], "post to q[1][0]: 1 message of 8 B by host/small"),
        (["#pragma xmp wait (q[1][0])"], "prog.c:17: wait: for a post, sends nothing"),
        (
            ["#pragma xmp barrier"],
            "barrier of the executing nodes: signals without data, in log2 of the nodes",
        ),
        (["#pragma xmp bcast (list)"], "bcast of list: messages of 32 KiB by host/large"),
        (
            ["#pragma xmp gmove in", "  got[:][:] = w[:][:];"],
            "gmove in: gets, of a size known at run time, by host/small below 1 KiB or host/large",
        ),
    ],
)
def test_explain_says_what_is_sent_and_by_which_path(
    tmp_path: Path, lines: list[str], explanation: str
) -> None:
    source = GRID + "\n".join(lines) + "\n  return n;\n}\n"
    assert explanation in generated(tmp_path, source, "--explain")


FACES_OF_TWO = ["#pragma xmp reflect (v) width(2, 0) acc", "#pragma xmp reflect (w) width(1, 0) acc"]


@pytest.mark.parametrize(
    ("lines", "explanation"),
    [
        (["#pragma xmp reflect (v) width(2, 0)"], "2 faces of 512 B in blocks of 256 B by host/small"),
        (["#pragma xmp reflect (v) width(2, 0) acc"], "2 faces of 512 B in blocks of 256 B by cuda/large"),
        (FACES_OF_TWO, "2 faces of 512 B in blocks of 256 B by cuda/large, 2 faces of 128 B by cuda/large"),
        (["#pragma xmp reflect (v, w) width(1, 0) acc"], "2 faces of 256 B by cuda/small, 2 faces of 128 B"),
        (
            ["#pragma xmp reflect (v) width(n, 0) acc", "#pragma xmp reflect (w) width(1, 0) acc"],
            "2 faces of 128 B by cuda/small below 1 KiB or cuda/large",
        ),
    ],
)
def test_on_a_gpu_all_faces_of_a_plan_together_decide_the_method(
    tmp_path: Path, lines: list[str], explanation: str
) -> None:
    """On a CPU, each face decides for itself."""
    source = GRID + "\n".join(lines) + "\n  return n;\n}\n"
    assert explanation in generated(tmp_path, source, "--explain")


def test_without_a_gpu_each_face_alone_decides_the_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_both = explained_paths.decided
    monkeypatch.setattr(explained_paths, "decided", lambda ops, shapes, _: on_both(ops, shapes, False))
    explanation = generated(tmp_path, GRID + "\n".join(FACES_OF_TWO) + "\n  return n;\n}\n", "--explain")
    assert "2 faces of 512 B in blocks of 256 B by host/small, 2 faces of 128 B by host/small" in explanation


def test_explain_goes_on_where_no_ranks_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(ops: list[str], shapes: list[str], on_gpu: bool) -> list[dict[str, Any]]:
        raise ClickException("no ranks can be started here")

    monkeypatch.setattr(explained_paths, "decided", failing)
    text = generated(tmp_path, in_main("#pragma xmp reflect (a)"), "--explain")
    assert "halo plan 1: 2 faces of 128 B by the path that `peerway explain` shows there\n" in text
    assert text.endswith("note: which paths are taken is not known here: no ranks can be started here\n")


PARTS = """\
#pragma xmp nodes p[*]
#pragma xmp template t[16]
#pragma xmp distribute t[block] onto p
static double a[16], b[16];
#pragma xmp align a[i] with t[i]
#pragma xmp align b[i] with t[i]
#pragma xmp shadow a[1]
static double one(void) { return 1; }
static void fill(double to) {
#pragma xmp loop on t[i]
#pragma acc parallel loop
  for (int i = 0; i < 16; i++) b[i] = to;
}
int main(void) {
  double sum = 0;
"""
LOOP_ON_GPU = [
    "#pragma xmp loop on t[i]",
    "#pragma acc parallel loop",
    "for (int i = 0; i < 16; i++) a[i] = i;",
]
SUM = ["#pragma acc parallel loop reduction(+: sum)", "for (int i = 0; i < 16; i++) sum += i;"]
QUEUED = [LOOP_ON_GPU[0], LOOP_ON_GPU[1] + " async(1)", LOOP_ON_GPU[2]]


@pytest.mark.parametrize(
    ("lines", "sequences"),
    [
        ([*LOOP_ON_GPU, *LOOP_ON_GPU], [2]),
        (["fill(1);", "#pragma xmp reflect (a) acc", *LOOP_ON_GPU], [3]),
        (["fill(1 + 2 * sum);", "/* nothing */", "fill(sum);", "sum = 0;", "fill(2);"], [2]),
        (["if (sum) {", "fill(1);", "fill(2);", "}", "fill(3);"], [2]),
        ([*LOOP_ON_GPU, "sum += one();", *LOOP_ON_GPU], []),
        (["fill(one());", "fill(1);"], []),
        ([*SUM, *LOOP_ON_GPU], []),
        ([*QUEUED, *LOOP_ON_GPU], []),
        (["#pragma xmp reflect (a)", *LOOP_ON_GPU], []),
        (["#pragma xmp reflect (a) acc nowait", *LOOP_ON_GPU, "#pragma xmp reflect_wait (a)"], []),
        ([*LOOP_ON_GPU, "#pragma xmp barrier", *LOOP_ON_GPU], []),
    ],
)  # fmt: skip
def test_adjacent_parts_without_host_work_are_a_sequence(
    tmp_path: Path, lines: list[str], sequences: list[int]
) -> None:
    source = PARTS + "\n".join(lines) + "\n  return sum > 0;\n}\n"
    text = generated(tmp_path, source)
    assert text.count("pwx_sequence_begin();") == text.count("pwx_sequence_end(&") == len(sequences)
    explanation = generated(tmp_path, source, "--explain")
    assert [
        int(line.split()[4]) for line in explanation.splitlines() if ": a sequence of " in line
    ] == sequences


def test_reflects_that_follow_one_another_are_one_plan(tmp_path: Path) -> None:
    source = in_main(
        "#pragma xmp reflect (a) width(1, 0)", "", "/* and */", "#pragma xmp reflect (d)",
        "#pragma xmp reflect (a)",  # once more, so a run of its own
        "#pragma xmp reflect (d) orthogonal", "  c[0] = 1;", "#pragma xmp reflect (a) orthogonal",
    )  # fmt: skip
    extra = "static double d[N];\n#pragma xmp align d[i] with t[i][*]\n#pragma xmp shadow d[1]\n"
    source = source.replace("int main", f"{extra}int main")
    text = generated(tmp_path, source)
    assert (
        "pwx_reflect_each(&halo__1, 2, (pwx_array *const[]){&a__x, &d__x}, (const pwx_width *const[])"
        "{(const pwx_width[]){{1, 1, 0}, {0, 0, 0}}, 0}, 0, PWX_HERE(13));"
    ) in text
    assert text.count("pwx_reflect_each") == 1
    assert text.count("pwx_reflect(") == 3
    assert "prog.c:16: reflect d, in the plan of line 13," in generated(tmp_path, source, "--explain")


WRITES = """\
static void touch(double *v) { v[0] = 1; }
static double *held;
static void keep(double *v) { held = v; }
static void some(int i) { a[i][0] = 1; }
static void with_loop(int i) {
#pragma xmp barrier
  a[i][0] = 1;
}
"""


@pytest.mark.parametrize(
    ("lines", "marked"),
    [
        (["if (N > 3)", "a[0][0] = 1;"], "pwx_written(&a__x); if (N > 3)"),
        (["touch(&a[0][0]);"], "pwx_written(&a__x); touch(&a[PWX_IN_OR_END(a, 0, 0)][0]);"),
        (["touch(a[0]);"], "pwx_written(&a__x); touch(a[PWX_IN(a, 0, 0)]);"),
        (["#pragma xmp task on p[0]", "a[0][0] = 1;"], "{ pwx_written(&a__x); pwx_task"),
        (["#pragma xmp task on p[0]", "with_loop(1);"], "{ pwx_written_all(); pwx_task"),
        (
            [
                "#pragma acc parallel",
                "{",
                "#pragma acc loop",
                "for (int i = 0; i < N; i++) a[0][i] = 1;",
                "}",
            ],
            "pwx_written(&a__x);\n#line",
        ),
        (["#pragma acc update device(a)"], "pwx_written(&a__x);\n#line"),
        (["with_loop(0);"], "pwx_written(&a__x); a[PWX_IN(a, 0, i)][0] = 1;"),
        (
            ["int k = 0; while (k++ < 2) {", "#pragma xmp barrier", "a[0][0] = 1; }"],
            "pwx_written(&a__x); a[PWX_IN(a, 0, 0)][0]",
        ),
    ],
)
def test_a_write_is_marked_where_all_nodes_execute(tmp_path: Path, lines: list[str], marked: str) -> None:
    rest = WRITES.replace("static void some(int i) { a[i][0] = 1; }\n", "")
    source = in_main(*lines, "#pragma xmp reflect (a)").replace("int main", f"{rest}int main")
    text = generated(tmp_path, source)
    assert marked in text
    assert "pwx_array_watch(&a__x, 1);" in text


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["double *q = &a[0][0];", "q[0] = 1;"], "its address is kept"),
        (["double *q = a[0];", "q[0] = 1;"], "its address is kept"),
        (["keep(a[0]);"], "its address goes to 'keep', which may keep it"),
        (["elsewhere(&a[0][0]);"], "its address goes to 'elsewhere', which may keep it"),
        (["some(0);"], "it is written where perhaps not all nodes execute"),
        (["while (c[0]++ < 9) {", "if (c[0] > 2) {", "#pragma xmp reflect (a)", "}",
          "if (c[1] > 2) a[0][0] = 1;", "}"], "it is written where perhaps not all nodes execute"),
        (["double *q;", "#pragma acc host_data use_device(a)", "q = (double *)0; (void)q;"],
         "the clause use_device gives its address away"),
    ],
)  # fmt: skip
def test_an_array_with_unseen_writes_is_always_reflected(tmp_path: Path, lines: list[str], why: str) -> None:
    rest = "void elsewhere(double *v);\n" + WRITES
    if "some(" not in lines[0]:
        rest = rest.replace("static void some(int i) { a[i][0] = 1; }\n", "")
    source = in_main(*lines, "#pragma xmp reflect (a)").replace("int main", f"{rest}int main")
    assert "pwx_array_watch(&a__x, 2);" in generated(tmp_path, source)
    assert f"always done (a: {why} in line " in generated(tmp_path, source, "--explain")


LATER = """\
#pragma xmp nodes p[*]
#pragma xmp template t[:]
#pragma xmp distribute t[block] onto p
static double a[8], b[8];
#pragma xmp align a[i] with t[i]
#pragma xmp align b[i] with t[i]
static void fix(int n) {
#pragma xmp template_fix t[n]
}
static void init(int n) { fix(n); }
static double first(void) { return b[0]; }
int main(void) {
  if (first != 0) init(8);
  a[0] = 1;
  for (int k = 0; k < 3; k++) a[0] += first();
  return 0;
}
"""


def test_pointers_to_arrays_of_a_template_follow_the_call_that_fixes_it(tmp_path: Path) -> None:
    text = generated(tmp_path, LATER)
    needed = 'pwx_need_array(&a__x, "a", PWX_HERE(14)); __attribute__((unused)) __typeof__(*a__m) *const a'
    base = "__attribute__((unused)) const long a__b0 = a__x.dim[0].base;"
    written = "pwx_written(&a__x); a[PWX_IN(a, 0, 0)] = 1;"
    assert f"init(8); {needed} = (void *)a__m; {base}\n  {written}" in text
    assert text.count("__typeof__(*a__m)") == 1  # the loop uses the same pointer
    # a function that does not fix the template
    assert '{\npwx_need_array(&b__x, "b", PWX_HERE(11));\n' in text
    assert "pwx_when_fixed(&t__x, pwx__fixed_t, PWX_HERE(2));" in text
    assert text.index("  a__m = a__x.memory;") > text.index("static void pwx__fixed_t(void) {")


def test_wait_async_on_nodes_lets_the_others_continue(tmp_path: Path) -> None:
    text = generated(
        tmp_path, in_main("#pragma xmp reflect (a) async(2)", "#pragma xmp wait_async (2) on p(1)")
    )
    begin = "pwx_task_begin(&(const pwx_ref){&p__x, 0, {{PWX_RANGE, 1, 1, 1}}}, 1, PWX_HERE(11))"
    assert f"{begin}; if (waits__" in text
    assert ".inside) { pwx_wait_async(2, PWX_HERE(11)); }" in text
