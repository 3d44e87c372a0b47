#!/usr/bin/env python3
"""A stand-in for Lustre's `lfs` on other file systems. It keeps the layouts of folders in $FAKE_LFS.

The layout of a file is the one that its folder had when the file was made. There are four targets.

lfs setstripe -c COUNT [-S BYTES] FOLDER    lfs setstripe -d FOLDER    lfs getstripe [-d] PATH
"""

import json
import os
import subprocess
import sys
from pathlib import Path

TARGETS = 4
kept = Path(os.environ["FAKE_LFS"])


def layout_at(folder: Path, ns: int) -> tuple[int, int]:
    """The layout of a folder at this time."""
    layout = (1, 1 << 20)
    for file in sorted(kept.iterdir(), key=lambda f: int(f.name)):
        chosen = json.loads(file.read_text())
        if chosen["folder"] == str(folder) and file.stat().st_mtime_ns <= ns:
            layout = chosen["count"], chosen["size"]
    return layout


def set_stripe(*words: str) -> None:
    *options, folder = words
    if not Path(folder).is_dir():
        sys.exit(f"lfs setstripe: setstripe error for '{folder}': stripe already set")
    chosen = {"folder": folder, "count": 1, "size": 1 << 20}
    for option, value in zip(options[::2], options[1::2], strict=False):
        chosen["count" if option == "-c" else "size"] = int(value)
    if chosen["size"] % 65536:
        sys.exit(f"error: {words}: invalid stripe size")
    (kept / str(len(list(kept.iterdir())))).write_text(json.dumps(chosen))


def get_stripe(*words: str) -> None:
    path = Path(words[-1])
    if words[0] == "-d":
        count, size = layout_at(path, 1 << 62)
        print(f"stripe_count:  {count} stripe_size:   {size} pattern:       raid0 stripe_offset: -1")
        return
    birth = subprocess.run(["stat", "-c", "%.9W", path], capture_output=True, text=True, check=True).stdout
    count, size = layout_at(path.parent, int(birth.replace(".", "")))
    count = TARGETS if count < 0 else min(count, TARGETS)
    print(f"{path}\nlmm_stripe_count:  {count}\nlmm_stripe_size:   {size}\nlmm_pattern:       raid0")


{"setstripe": set_stripe, "getstripe": get_stripe}[sys.argv[1]](*sys.argv[2:])
