"""Runs other programs of this folder one after another in one process, each with its own settings.

in_turn.py JOB...    each job is a JSON array: the settings as an object, the program, its arguments

A program must read its environment when it runs, not when it is loaded.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path


def main(jobs: list[str]) -> int:
    """Run all jobs, or up to the first that fails."""
    for job in jobs:
        settings, program, *arguments = json.loads(job)
        os.environ.update(settings)
        sys.argv = [program, *arguments]
        try:
            runpy.run_path(str(Path(__file__).with_name(program)), run_name="__main__")
        except SystemExit as end:
            if end.code:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
