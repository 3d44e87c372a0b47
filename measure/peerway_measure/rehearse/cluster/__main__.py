"""Start a virtual cluster until Ctrl-C: python -m peerway_measure.rehearse.cluster [DESCRIPTION.toml]"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from peerway_measure.rehearse.cluster import VirtualCluster, read, why_not
from peerway_measure.rehearse.cluster.description import SMALL
from peerway_measure.rehearse.cluster.ending import end_at_first_signal, wait_for_end


def main() -> int:
    description = read(Path(sys.argv[1]) if len(sys.argv) > 1 else SMALL)
    if why := why_not(description):
        print(f"cluster: {why}", file=sys.stderr)
        return 1
    end_at_first_signal()
    began = time.monotonic()
    try:
        with VirtualCluster(description) as cluster:
            took, names = time.monotonic() - began, ", ".join(description.types())
            print(f"up after {took:.1f} s: {names} in {cluster.folder}")
            shell = cluster.command("head", "bash", user="ann")
            print("a shell of ann on the head:", " ".join(shell), flush=True)
            wait_for_end()
    except KeyboardInterrupt:
        print("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
