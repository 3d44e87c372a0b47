"""The C that `peerway cc` generates has defined behaviour: UBSan reports nothing, with any compiler and
level.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from xacc_compiled import PARTS, PEERWAY, PROGRAMS, ROOT, SAMPLES, run

LQCD = ROOT / "apps" / "lqcd"
SANITIZED = ("-fsanitize=undefined",)
COMPILERS = [
    name
    for name in (
        "gcc",
        "clang",
        *(f"{c}-{v}" for c, vs in (("gcc", range(12, 20)), ("clang", range(13, 24))) for v in vs),
    )
    if shutil.which(name)
]
LEVELS = ("-O0", "-O1", "-O2", "-O3")


@dataclass(frozen=True)
class Program:
    """A program: `words` compile it, its output contains `says` with the number of nodes, and it runs on
    `nodes`.
    """

    words: tuple[str | Path, ...]
    says: str = "0 wrong"
    arguments: tuple[str, ...] = ()
    nodes: tuple[int, ...] = (1, 2, 3, 4)


def lqcd(name: str, along_t: int, along_z: int, *options: str) -> Program:
    words = (*options, "-DEDGE=4", f"-DPT={along_t}", f"-DPZ={along_z}", f"-I{LQCD}", LQCD / f"{name}.c")
    arguments = ("--gauge", "random:1", "--check", "--sources", "1")
    return Program(words, '"ok": true', arguments, (along_t * along_z,))


def free(nodes: int, source: str) -> Program:
    folder = PROGRAMS / "xacc_free"
    return Program((f"-DNODES={nodes}", folder / source, folder / "spoil.c"), nodes=(nodes,))


ALL = {
    "directives": Program(tuple(PROGRAMS / "xacc_cc" / f"{part}.c" for part in PARTS)),
    "local": Program((PROGRAMS / "xacc_local.c",)),
    "posts": Program((PROGRAMS / "xacc_posts.c",)),
    "sequences": Program((PROGRAMS / "xacc_sequences.c",)),
    "host": Program((PROGRAMS / "xacc_host.c",), nodes=(1, 2)),
    "coarrays": Program((PROGRAMS / "xacc_coarrays.c",)),
    "free": free(2, "main.c"),
    "free-acc": free(4, "acc.c"),
    "laplace": Program((SAMPLES / "laplace.c",), ""),
    "himeno": Program((SAMPLES / "himeno.c",), ""),
    "cg": Program((SAMPLES / "cg.c",), ""),
    "stream": Program(("-DN=100000", SAMPLES / "stream.c"), ""),
    "reduction": Program(("-DBATCHES=3", SAMPLES / "reduction.c"), '"right": true', nodes=(1, 2)),
    "local-array": Program(("-DBATCHES=3", SAMPLES / "local.c"), '"right": true'),
    "lqcd": lqcd("xacc", 1, 2),
    "lqcd-rows": lqcd("xacc", 2, 2, "-DROWS"),
    "lqcd-nowait": lqcd("xacc_nowait", 2, 2),
}  # fmt: skip


@functools.cache
def links_openmp(compiler: str) -> bool:
    command = [compiler, "-fopenmp", "-xc", "-", "-o", "/dev/null"]
    return (
        subprocess.run(command, input=b"int main(void) {}", capture_output=True, check=False).returncode == 0
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_ubsan_reports_nothing(tmp_path: Path, compiler: str, level: str, name: str) -> None:
    if not links_openmp(compiler):
        pytest.skip(
            f"{compiler} links no program with -fopenmp: install its OpenMP library, such as libomp-dev"
        )
    program = ALL[name]
    compiling = run(
        PEERWAY, "cc", level, *SANITIZED, *program.words, "-lm", "-o", "program", folder=tmp_path, CC=compiler
    )
    assert compiling.returncode == 0, compiling.stderr
    for nodes in program.nodes:
        done = run(
            PEERWAY, "run", "-n", nodes, "--", "./program", *program.arguments,
            folder=tmp_path, NODES=str(nodes), PEERWAY_ACC="host",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "runtime error" not in done.stderr
        assert program.says in done.stdout
