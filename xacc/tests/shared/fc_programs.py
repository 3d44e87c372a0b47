"""What the tests of `peerway fc` share: a program's text goes in, generated text or errors come out."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

from peerway_xacc.command_line import FORTRAN, read
from peerway_xacc.fortran import driver

MAPPED = """\
program prog
  integer, parameter :: n = 16
  real(8) :: a(n, n), b(0:n), c(n)
!$xmp nodes p(*)
!$xmp template t(n)
!$xmp distribute t(block) onto p
!$xmp align a(*, j) with t(j)
!$xmp shadow a(0, 1)
"""  # eight lines: what a test adds begins in line 9


@dataclass(frozen=True)
class Compiled:
    """How a run of the compiler ended, what it wrote to standard output and to standard error."""

    status: int
    text: str
    errors: str


def compiled(folder: Path, source: str | bytes, *options: str, name: str = "prog.f90") -> Compiled:
    """Run the compiler on a file of this name in a folder; without options it shows what it generates."""
    (folder / name).write_bytes(source.encode() if isinstance(source, str) else source)
    written, errors = io.BytesIO(), io.StringIO()
    output = io.TextIOWrapper(written, write_through=True)
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(output),
    ):
        status = driver.run(read([name, *(options or ("--emit",))], dict(os.environ), FORTRAN))
    return Compiled(status, written.getvalue().decode(errors="replace"), errors.getvalue())


def in_program(*lines: str) -> str:
    """The mapped arrays and these lines in the main program; the first is line 9."""
    return MAPPED + "".join(f"{line}\n" for line in lines) + "end program prog\n"
