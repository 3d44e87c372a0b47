"""Keeps the C headers and the exported functions of this release: library/tests/system/test_abi.py runs a
program that was built against them with every later library.

Run it when a release is made, and after each change of the interface before the first release. It writes
library/tests/abi/<PW_ABI_VERSION>; what is there of a released version is changed only by adding functions to
functions.txt.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = ROOT / "library" / "include" / "peerway"
HEADERS = ("peerway.h", "handles.h")


def main() -> None:
    text = (INCLUDE / "peerway.h").read_text()
    number = re.search(r"#define PW_ABI_VERSION (\d+)", text)
    assert number is not None
    folder = ROOT / "library" / "tests" / "abi" / number[1]
    (folder / "peerway").mkdir(parents=True, exist_ok=True)
    for name in HEADERS:
        shutil.copy(INCLUDE / name, folder / "peerway" / name)
    functions = sorted(set(re.findall(r"PW_API\s[^;(]*?\b(pw_\w+)\(", text)))
    (folder / "functions.txt").write_text("\n".join(functions) + "\n")
    print(f"{folder.relative_to(ROOT)}: {len(functions)} functions")


if __name__ == "__main__":
    main()
