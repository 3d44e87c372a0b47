"""Shared by the tests of `peerway cc`: compiles a program's text, and returns the generated text
or errors.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path

from peerway_xacc import driver
from peerway_xacc.command_line import read

KERNELS = Path(__file__).resolve().parents[3] / "xacc" / "runtime" / "kernels"
_PARTS = re.search(r"foreach\(name (.*)\)", (KERNELS / "embed.cmake").read_text())
assert _PARTS is not None
PRELUDE = "".join((KERNELS / f"{name}.cuh").read_text() for name in _PARTS[1].split())
RANK_REDUCTION = (KERNELS / "rank_reduction.cuh").read_text()


def rank_reduction(name: str, kind: str) -> str:
    """The kernel that adds values of this type on GPUs of several ranks, as the run-time library has it."""
    return (
        f'extern "C" __global__ void {name}({kind}* values, long count,\n'
        "    const pw_all_reduce_handle ranks, unsigned long long* epochs,\n"
        "    const int* state) {\n  pwx_reduce_ranks(pwx_sum(), values, count, ranks, epochs, state);\n}\n"
    )


MAPPED = """\
#define N 16
#pragma xmp nodes p[*]
#pragma xmp template t[N][N]
#pragma xmp distribute t[block][*] onto p
static double a[N][N], b[N][N], c[N];
#pragma xmp align a[i][j] with t[i][j]
#pragma xmp align b[i][j] with t[i][j]
#pragma xmp shadow a[1][0]
"""  # eight lines: the text that a test adds begins in line 9


@dataclass(frozen=True)
class Compiled:
    """The result of a run of the compiler: its status, standard output and standard error."""

    status: int
    data: bytes
    errors: str

    @property
    def text(self) -> str:
        """Standard output as UTF-8 text."""
        return self.data.decode()


def compiled(folder: Path, source: str | bytes, *options: str, name: str = "prog.c") -> Compiled:
    """Compile a source as this file in a folder. Without options, the compiler prints the generated text."""
    (folder / name).write_bytes(source.encode() if isinstance(source, str) else source)
    written, errors = io.BytesIO(), io.StringIO()
    output = io.TextIOWrapper(written, write_through=True)
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(output),
    ):
        status = driver.run(read([name, *(options or ("--emit",))], dict(os.environ)))
    return Compiled(status, written.getvalue(), errors.getvalue())


def in_main(*lines: str) -> str:
    """A program with the mapped arrays and these lines in main; the first of them is line 10."""
    return MAPPED + "int main(void) {\n" + "\n".join(lines) + "\n  return 0;\n}\n"
