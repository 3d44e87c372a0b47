"""Two links for one halo: each alone, and both by a route table (docs/nic/hybrid.md).

    python apps/hybrid/hybrid.py --out out/hybrid

Writes routes.json, the table that `peerway tune` made, and the records: everywhere.jsonl where both links
reach all ranks, islands.jsonl where the near one reaches pairs only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEAR, FAR = "nic:near", "nic:far"
# In the halo of each rank, two sides are one block of 128 KiB each, and two are 64 blocks of 8 bytes each.
HALO = ("halo", "--grid", "2x2", "--local", "64x16384", "--element", "8", "--device", "host")


def peerway(nics: str, *words: str) -> None:
    """Run a peerway command with these NICs, and print it first."""
    print(f"$ PEERWAY_NIC='{nics}' peerway {' '.join(words)}", flush=True)
    environment = {**os.environ, "PEERWAY_NIC": nics}
    done = subprocess.run([sys.executable, "-m", "peerway", *words], env=environment, cwd=HERE, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Tune once with both links reaching all ranks; then measure the halo there,
    and with a near link that does not.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    folder = options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    table = str(folder / "routes.json")
    tune = ["tune", "--quick", "--device", "host", "--out", table]
    everywhere = "near=torus?near.json;far=torus?far.json"
    peerway(everywhere, *tune, "--paths", f"{NEAR},{FAR}")
    for name, near, paths in (
        ("everywhere", "near.json", f"{NEAR},{FAR},{NEAR}+{FAR}"),
        ("islands", "islands.json", f"{FAR},{NEAR}+{FAR}"),
    ):
        records = folder / f"{name}.jsonl"
        records.unlink(missing_ok=True)
        bench = ["bench", *HALO, "--table", table, "--out", str(records)]
        peerway(f"near=torus?{near};far=torus?far.json", *bench, "--paths", paths)


if __name__ == "__main__":
    main()
