"""Compiles the Fortran programs of the tests on GPUs, each with what it prints without directives.

The libraries of Fortran go with them. LD_LIBRARY_PATH names the folder of libpeerway_xacc.so and
libpeerway.so where that is another one than here.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from xacc_compiled import PEERWAY, PROGRAMS, SAMPLES, run

SOURCES = {
    "acc": PROGRAMS / "xacc_fc" / "acc.f90",
    "laplace": SAMPLES / "laplace.f90",
    "himeno": SAMPLES / "himeno.f90",
}


def carry(folder: Path) -> None:
    """Write NAME, a program, and NAME.txt, what it must print, for each source."""
    for name, source in SOURCES.items():
        beside = "-Wl,-rpath,$ORIGIN"
        made = run(PEERWAY, "fc", "-cpp", "-O2", beside, source, "-o", name, folder=folder)
        assert (made.returncode, made.stderr) == (0, "")
        made = run("gfortran", "-cpp", "-O2", "-w", source, "-o", "plain", folder=folder)
        assert made.returncode == 0, made.stderr
        (folder / f"{name}.txt").write_text(run("./plain", folder=folder).stdout)
    for rest in (folder / "plain", *folder.glob("*.mod"), *folder.glob("*.xmp")):
        rest.unlink()
    for library in ("libgfortran.so.5", "libquadmath.so.0", "libgomp.so.1"):
        place = run("gfortran", f"-print-file-name={library}", folder=folder).stdout.strip()
        shutil.copy(Path(place).resolve(), folder / library)


if __name__ == "__main__":
    carry(Path(sys.argv[1]).resolve())
