"""Kills many ranks while all put by UCX, and counts the survivors that do not go on: a record for results/.

    python library/tests/system/ucx_many_deaths.py --library system --transports tcp --path ucx/direct \
        --deaths 200

Each job has four ranks, of which two are killed one after the other; those that live must be told of each
death, go on, and end well. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "shared"))

from ranks import Ranks
from ucx_builds import SYSTEM, TRANSPORTS, WHEEL

LIBRARIES = {"system": SYSTEM, "wheel": WHEEL}
VICTIMS = ((1, 2), (3, 1), (0, 3), (2, 0))


def job(settings: dict[str, str], size: int, victims: tuple[int, ...]) -> tuple[int, list[str]]:
    """The number of survivors that must have the error of each death, and what happened to those without
    it.
    """
    bad: list[str] = []
    informed = 0
    with Ranks("ucx_deaths.py", 4, size, **settings) as ranks:
        assert ranks.read_all() == ["working"] * 4
        alive = set(range(4))
        for victim in victims:
            ranks.kill(victim)
            alive.discard(victim)
            for rank in sorted(alive):
                informed += 1
                try:
                    assert ranks.read(rank) == {"lost": victim}
                except AssertionError as error:
                    bad.append(str(error)[:2000])
                    alive.discard(rank)
        for rank in alive:
            ranks.send_line(rank)
        for rank in alive:
            if ranks.processes[rank].wait(60) != 0:
                bad.append(f"rank {rank} ended badly: {ranks.errors(rank)[:2000]}")
    return informed, bad


def main() -> None:
    """Run jobs until enough ranks were killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--library", choices=LIBRARIES, required=True)
    parser.add_argument("--transports", choices=TRANSPORTS, required=True)
    parser.add_argument("--path", choices=["ucx/direct", "ucx/staged"], required=True)
    parser.add_argument("--hosts", choices=["far", "one"], default="far", help="each rank a host of its own?")
    parser.add_argument("--deaths", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    options = parser.parse_args()
    library = LIBRARIES[options.library]
    if library is None:
        sys.exit(f"no UCX of the {options.library} here")
    settings = {"PEERWAY_UCX": "on", "PEERWAY_UCX_LIBRARY": str(library), "PEERWAY_PATHS": options.path}
    settings["ONE_HOST"] = "1" if options.hosts == "one" else ""
    settings["UCX_TLS"] = TRANSPORTS[options.transports]
    bad: list[str] = []
    began, deaths, informed = time.monotonic(), 0, 0
    while deaths < options.deaths:
        victims = VICTIMS[deaths // 2 % len(VICTIMS)]
        more, worse = job(settings, options.bytes, victims)
        deaths, informed, bad = deaths + len(victims), informed + more, bad + worse
    real = re.search(r"\.so\.0\.(.*)", str(library.resolve()))
    record = {
        "test": "deaths_of_putting_ranks",
        "command": " ".join(["python", *sys.argv]),
        "library": options.library,
        "library_file": real[0] if real else library.name,
        "transports": settings["UCX_TLS"],
        "path": options.path,
        "hosts": options.hosts,
        "bytes": options.bytes,
        "deaths": deaths,
        "survivors_told": informed,
        "survivors_that_ended": len(bad),
        "first_words_of_those": sorted({problem.splitlines()[0] for problem in bad if problem}),
        "assertions": sorted({word for problem in bad for word in re.findall(r"Assertion `.*?'", problem)}),
        "seconds": round(time.monotonic() - began),
        "machine": f"{os.cpu_count()} cores, Linux {platform.release()}, shared with other work",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
