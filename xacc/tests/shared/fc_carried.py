"""Compiles the Fortran programs of the tests on GPUs, each with what it prints without directives.

The libraries of Fortran go with them. LD_LIBRARY_PATH names the folder of libpeerway_xacc.so and
libpeerway.so where that is another one than here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fc_times import Case, build, libraries
from xacc_compiled import PEERWAY, PROGRAMS, SAMPLES, run

SOURCES = {
    "acc": PROGRAMS / "xacc_fc" / "acc.f90",
    "types": PROGRAMS / "xacc_fc" / "types.f90",
    "laplace": SAMPLES / "laplace.f90",
    "himeno": SAMPLES / "himeno.f90",
    "cg": SAMPLES / "cg.f90",
    "ep": SAMPLES / "ep.f90",
}
HOP = Case("hop", ("EDGE=8",))


def carry(folder: Path) -> None:
    """Write NAME, a program, and NAME.txt, what it must print, for each source; and both forms of the hop."""
    for name, source in SOURCES.items():
        beside = "-Wl,-rpath,$ORIGIN"
        made = run(PEERWAY, "fc", "-cpp", "-O2", beside, source, "-o", name, folder=folder)
        assert (made.returncode, made.stderr) == (0, "")
        made = run("gfortran", "-cpp", "-O2", "-w", source, "-o", "plain", folder=folder)
        assert made.returncode == 0, made.stderr
        (folder / f"{name}.txt").write_text(run("./plain", folder=folder).stdout)
    for rest in (folder / "plain", *folder.glob("*.mod"), *folder.glob("*.xmp")):
        rest.unlink()
    build(folder, HOP)
    libraries(folder)


if __name__ == "__main__":
    carry(Path(sys.argv[1]).resolve())
