"""List classes of the library that share a name. What is nested in a class has its name with
it, and the benchmarks, nic-check and storage programs are read on their own.

    python scripts/class_names.py
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"
APART = ("bench/", "nic/check/", "storage/")
# A namespace indents nothing, so that its own classes begin a line.
CLASS = re.compile(r"^(?:class|struct|enum class) (?:alignas\([^)]*\) )?(\w+)\b(?!::)[^;\n]*\{", re.MULTILINE)


def shared_names() -> dict[str, list[str]]:
    """Give each name that several headers define a class by, with the headers."""
    found: dict[str, list[str]] = defaultdict(list)
    for header in sorted(SRC.rglob("*.h")):
        name = header.relative_to(SRC).as_posix()
        if not name.startswith(APART):
            for match in CLASS.finditer(header.read_text()):
                found[match[1]].append(name)
    return {name: headers for name, headers in found.items() if len(headers) > 1}


def main() -> int:
    """Say which names are shared; 1 if any is."""
    shared = shared_names()
    for name, headers in sorted(shared.items()):
        print(f"{name} is a class of src/{', src/'.join(headers)}; name each for what it is")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
