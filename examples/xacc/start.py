"""Times how long a program by directives takes to start beside an empty one, alternately.

    python examples/xacc/start.py --out results/xacc/start.jsonl [--repeat 11] [-- ./program option...]

Without a program it is laplace.c with one step. A GPU has its kernels from the cache after the first run,
which does not count. A record has the wall-clock seconds of all runs, from the launcher's start to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERWAY = Path(sys.executable).with_name("peerway")
EMPTY = "#include <xmp.h>\nint main(void) { return xmp_num_nodes() < 1; }\n"


def main() -> None:
    """Build, run in turn, and write the record."""
    plain = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--repeat", type=int, default=11)
    options.add_argument("--nodes", type=int, default=2)
    options.add_argument("program", nargs="*", help="with its options, in the place of the sample")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty, sample = Path(folder, "empty"), Path(folder, "laplace")
        Path(folder, "empty.c").write_text(EMPTY)
        subprocess.check_call([PEERWAY, "cc", "-O2", f"{empty}.c", "-o", empty])
        subprocess.check_call([PEERWAY, "cc", "-O2", HERE / "laplace.c", "-lm", "-o", sample])
        program = given.program or [str(sample), "1"]
        launcher = [str(PEERWAY), "run", "-n", str(given.nodes), "--"]
        seconds([*launcher, *program])  # fills the cache
        found: dict[str, list[float]] = {"empty": [], "program": []}
        for _ in range(given.repeat):
            found["empty"].append(seconds([*launcher, str(empty)]))
            found["program"].append(seconds([*launcher, *program]))
    medians = {name: statistics.median(all_) for name, all_ in found.items()}
    more = medians["program"] - medians["empty"]
    print(f"empty {medians['empty']:.3f} s, the program {medians['program']:.3f} s: {more:.3f} s more")
    record = {
        "test": "start", "program": shlex.join(given.program) or "laplace.c, 1 step",
        "processes": given.nodes, "acc": os.environ.get("PEERWAY_ACC", ""), "unit": "seconds",
        **{f"{name}_seconds": [round(one, 4) for one in all_] for name, all_ in found.items()},
        "more": round(more, 4),
        "command": shlex.join(["python", *sys.argv]), "host": os.uname().nodename, "cpus": os.cpu_count(),
        "load": os.getloadavg()[0], "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    given.out.write_text(json.dumps(record) + "\n")


def seconds(command: list[str]) -> float:
    """The wall-clock time of a command; its exit status is ignored, since one step solves nothing."""
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
