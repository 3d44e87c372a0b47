"""What the tests of `peerway cc` share: a program's text goes in, generated text or errors come out."""

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

MAPPED = """\
#define N 16
#pragma xmp nodes p[*]
#pragma xmp template t[N][N]
#pragma xmp distribute t[block][*] onto p
static double a[N][N], b[N][N], c[N];
#pragma xmp align a[i][j] with t[i][j]
#pragma xmp align b[i][j] with t[i][j]
#pragma xmp shadow a[1][0]
"""  # eight lines: what a test adds begins in line 9


@dataclass(frozen=True)
class Compiled:
    """How a run of the compiler ended, what it wrote to standard output and to standard error."""

    status: int
    data: bytes
    errors: str

    @property
    def text(self) -> str:
        """The same, as UTF-8."""
        return self.data.decode()


def compiled(folder: Path, source: str | bytes, *options: str, name: str = "prog.c") -> Compiled:
    """Run the compiler on a file of this name in a folder; without options it shows what it generates."""
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
    """The mapped arrays and these lines in main; the first is line 10."""
    return MAPPED + "int main(void) {\n" + "\n".join(lines) + "\n  return 0;\n}\n"
