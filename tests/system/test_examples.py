"""The examples as a user would build and run them: from an installed Peerway, by CMake and by pkg-config."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "editable"
EXPECTED = sorted(f'rank {rank} received "hello from rank {1 - rank}"' for rank in range(2))

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation made by `cmake --install`, moved afterwards: nothing in it may name its first place."""
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip(f"{BUILD} is not built; run `make build`")
    first = tmp_path_factory.mktemp("first") / "prefix"
    command = ["cmake", "--install", str(BUILD), "--prefix", str(first)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(shutil.move(first, tmp_path_factory.mktemp("second") / "prefix"))


def assert_ring(done: subprocess.CompletedProcess[str]) -> None:
    """Two ranks have each said that they received the other's message."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == EXPECTED, done.stderr


def test_the_installation_has_what_it_should(prefix: Path) -> None:
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    for name in ("include/peerway/peerway.h", "include/peerway/peerway.hpp", "lib/libpeerway.so"):
        assert name in files
    assert {"lib/cmake/peerway/peerwayConfig.cmake", "lib/pkgconfig/peerway.pc"} <= files
    assert not [name for name in files if "_core" in name]


def test_the_library_exports_the_c_interface_only(prefix: Path) -> None:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", prefix / "lib" / "libpeerway.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.split()[-1] for line in listing.stdout.splitlines()}
    header = (prefix / "include" / "peerway" / "peerway.h").read_text()
    declared = set(re.findall(r"PW_API\s[^;(]*?\b(pw_\w+)\(", header))
    assert declared
    assert declared <= names
    assert {name for name in names if name.startswith("pw_")} == declared


def test_find_package(prefix: Path, tmp_path: Path, run_program: Run) -> None:
    python = f"-DPython_EXECUTABLE={sys.executable}"
    done = run_program(
        "cmake", "-S", ROOT / "examples", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", python
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_program("cmake", "--build", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for example in ("put_c", "put_cpp"):
        assert_ring(run_program("peerway", "run", "-n", "2", "--", tmp_path / example))


def test_another_version_is_refused(prefix: Path, tmp_path: Path, run_program: Run) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(peerway 9.0 REQUIRED)\n"
    )
    done = run_program("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert done.returncode != 0
    assert "9.0" in done.stderr


@pytest.mark.skipif(
    shutil.which("pkg-config") is None, reason="pkg-config is missing (apt-get install pkg-config)"
)
@pytest.mark.parametrize(
    ("compiler", "source"), [("cc -std=c11", "c/put.c"), ("c++ -std=c++20", "cpp/put.cpp")]
)
def test_pkg_config(prefix: Path, tmp_path: Path, run_program: Run, compiler: str, source: str) -> None:
    where = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    flags = run_program("pkg-config", "--cflags", "--libs", "peerway", env=where).stdout.split()
    assert f"-I{prefix}" in flags[0]
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    program = tmp_path / "put"
    done = run_program(*compiler.split(), *warnings, ROOT / "examples" / source, *flags, "-o", program)
    assert done.returncode == 0, done.stderr
    libraries = dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib"))
    assert_ring(run_program("peerway", "run", "-n", "2", "--", program, env=libraries))


def test_python(run_program: Run) -> None:
    example = ROOT / "examples" / "python" / "put.py"
    assert_ring(run_program("peerway", "run", "-n", "2", "--", sys.executable, example))
