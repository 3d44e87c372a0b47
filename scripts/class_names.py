"""List classes of the library that share a name. What is nested in a class has its name with it. Words that
have one meaning each (WORDS) are looked for there, too, and in what stands beside the library. The
benchmarks, nic-check and storage programs are read on their own.

    python scripts/class_names.py
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
APART = ("library/src/bench/", "nic/check/", "measure/storage_engine/")
WORDS = {"Engine", "Guard", "Lane", "Marker", "Part", "Peer", "Request", "Way"}
# The class of the C++ interface wraps the library's class of the same name.
INTERFACE = {"Request": {"library/include/peerway/request.hpp"}}
BESIDE = ("library/src", "library/include/peerway", "nic", "trace/cuda", "measure/storage_engine")
ENDINGS = {".h", ".hpp", ".cuh", ".cpp"}

CLASS = re.compile(
    r"^( *)(?:class|struct|enum class) (?:alignas\([^)]*\) )?(\w+)\b(?!::)[^;\n]*[{]", re.MULTILINE
)


def classes(text: str) -> list[tuple[str, bool]]:
    """The classes that a text defines, and whether each is nested. Namespaces are not indented."""
    return [(match[2], match[1] != "") for match in CLASS.finditer(text)]


def shared_names() -> dict[str, list[str]]:
    """Each name that several classes have, with their files."""
    result: dict[str, list[str]] = defaultdict(list)
    for file in sorted(path for folder in BESIDE for path in (ROOT / folder).rglob("*")):
        name = file.relative_to(ROOT).as_posix()
        if file.suffix not in ENDINGS or "/tests/" in name:
            continue
        of_library = file.suffix == ".h" and name.startswith("library/src/") and not name.startswith(APART)
        for known, nested in classes(file.read_text()):
            if (of_library and not nested) or (known in WORDS and name not in INTERFACE.get(known, ())):
                result[known].append(name)
    return {name: files for name, files in result.items() if len(files) > 1}


def main() -> int:
    """Print the shared names; returns 1 if there are any."""
    shared = shared_names()
    for name, files in sorted(shared.items()):
        print(f"{name} is a class of {', '.join(files)}; name each for what it is")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
