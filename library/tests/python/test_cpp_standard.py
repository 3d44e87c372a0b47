"""Compiling peerway.hpp with a too old C++ standard gives one message, which names the standard it needs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_standard_is_named(standard: str, tmp_path: Path) -> None:
    source = tmp_path / "empty.cpp"
    source.write_text("#include <peerway/peerway.hpp>\n")
    done = subprocess.run(
        ["c++", f"-std={standard}", "-I", str(ROOT / "library" / "include"), "-fsyntax-only", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    if standard == "c++20":
        assert done.returncode == 0
        assert not errors
    else:
        assert done.returncode != 0
        assert len(errors) == 1
        assert "needs C++20: compile with -std=c++20" in errors[0]
