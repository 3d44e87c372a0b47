"""The demonstration: tunes this machine, keeps the route table, and makes the report, all in out/demo."""

from __future__ import annotations

import subprocess
import time

from steps import ROOT, VENV, StepError, environment, main, say

OUT = ROOT / "out" / "demo"


def peerway(title: str, *arguments: object) -> None:
    """Run one peerway command in the foreground, so that its progress bar and tables are visible."""
    command = ["peerway", *map(str, arguments)]
    say(f"\n$ {' '.join(command)}\n  {title}")
    status = subprocess.run(
        [VENV / "bin" / command[0], *command[1:]], cwd=ROOT, env=environment(), check=False
    )
    if status.returncode != 0:
        raise StepError(f"`{' '.join(command)}` ended with status {status.returncode}")


def demo() -> int:
    """Tune, measure and report; then print where the files are."""
    started = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    records, routes, report = (
        (OUT / name).relative_to(ROOT) for name in ("records.jsonl", "routes.json", "report.html")
    )
    records.unlink(missing_ok=True)
    peerway("Which GPUDirect technologies work here, and why the others do not.", "doctor")
    peerway(
        "Measure every path and write the cheapest for each size into a route table.",
        "tune",
        "--quick",
        "--out",
        routes,
    )
    peerway(
        "Which path a transfer takes, and the measured costs behind the choice.", "explain", "--table", routes
    )
    peerway(
        "The benchmarks: every path, the automatic choice (route), and the other tools that are installed.",
        *("bench", "--quick", "--table", routes, "--peers", "all", "--out", records),
    )
    peerway("One page with the curves; it opens offline.", "report", records, "--table", routes, "-o", report)
    say(f"\ndemo: done in {time.monotonic() - started:.0f} s")
    say(f"  records      {records}\n  route table  {routes}\n  report       {report} (open it in a browser)")
    say(f"  next         source {VENV.relative_to(ROOT)}/bin/activate, then peerway --help")
    return 0


if __name__ == "__main__":
    main(demo)
