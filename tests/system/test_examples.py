"""The examples as a user would build and run them: from an installed Peerway, by CMake and by pkg-config."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from launching import BUILD, ROOT, built, ranks
from readme import example as readme_example

RING = [f'rank {rank} received "hello from rank {1 - rank}"' for rank in range(2)]


def heat() -> list[str]:
    """What the example of halos says on five ranks, computed by one process that has the whole ring. Four
    ranks have 4 rows each, the last has none.
    """
    u = np.zeros((16, 16))
    u[8, 8] = 100
    for _ in range(50):
        around = sum(np.roll(u, step, axis) for step in (-1, 1) for axis in (0, 1))
        u = u + 0.1 * (around - 4 * u)
    return [f"rank {rank} has {u[4 * rank : 4 * rank + 4].sum():.6f} of the heat" for rank in range(5)]


EXPECTED = {"put": RING, "halo": heat()}  # of as many ranks as there are lines

COMPILERS = [("cc -std=c11", "c"), ("c++ -std=c++20", "cpp")]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation made by `cmake --install`, moved afterwards: nothing in it may name its first place."""
    built("CMakeCache.txt")
    first = tmp_path_factory.mktemp("first") / "prefix"
    command = ["cmake", "--install", str(BUILD), "--prefix", str(first)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(shutil.move(first, tmp_path_factory.mktemp("second") / "prefix"))


def count(example: str) -> str:
    """How many ranks it is run with."""
    return str(len(EXPECTED[example]))


def assert_said(done: subprocess.CompletedProcess[str], example: str) -> None:
    """The ranks have each said what this example should."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == EXPECTED[example], done.stderr


def test_the_installation_has_what_it_should(prefix: Path) -> None:
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    headers = sorted(path.name for path in (ROOT / "library" / "include" / "peerway").glob("*.h*"))
    for name in (*(f"include/peerway/{header}" for header in headers), "lib/libpeerway.so"):
        assert name in files
    assert {"lib/cmake/peerway/peerwayConfig.cmake", "lib/pkgconfig/peerway.pc"} <= files
    assert not [name for name in files if "_core" in name]


def test_the_library_shows_the_c_interface_and_its_inside_to_its_python_module_only(prefix: Path) -> None:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", prefix / "lib" / "libpeerway.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.split()[-1].split("@@") for line in listing.stdout.splitlines()]
    versions = ("PEERWAY_0", "PEERWAY_PRIVATE")
    of = {version: {symbol[0] for symbol in names if symbol[-1] == version} for version in versions}
    header = (prefix / "include" / "peerway" / "peerway.h").read_text()
    declared = set(re.findall(r"PW_API\s[^;(]*?\b(pw_\w+)\(", header))
    assert declared
    assert of["PEERWAY_0"] - {"PEERWAY_0"} == declared
    assert all("2pw" in name for name in of["PEERWAY_PRIVATE"] - {"PEERWAY_PRIVATE"})
    assert sum(map(len, of.values())) == len(names)


def test_find_package(prefix: Path, tmp_path: Path, run_program: Run) -> None:
    settings = [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_CXX_FLAGS=-O0"]
    done = run_program(
        "cmake", "-S", ROOT / "examples", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", *settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_program("cmake", "--build", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for example in EXPECTED:
        for language in ("c", "cpp"):
            program = tmp_path / f"{example}_{language}"
            assert_said(run_program("peerway", "run", "-n", count(example), "--", program), example)
    nic = dict(os.environ, PEERWAY_NIC=str(tmp_path / "libexample_nic.so"), PEERWAY_PATHS="nic:example")
    done = run_program("peerway", "run", "-n", "2", "--", tmp_path / "put_cpp", env=nic)
    assert_said(done, "put")


def test_another_version_is_refused(prefix: Path, tmp_path: Path, run_program: Run) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(peerway 9.0 REQUIRED)\n"
    )
    done = run_program("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert done.returncode != 0
    assert "9.0" in done.stderr


def test_cmake_names_the_packages_that_are_missing(run_program: Run, tmp_path: Path) -> None:
    """The two header-only libraries, which cmake is sent to look for in a folder that there is not."""
    nowhere = ["-DCMAKE_FIND_ROOT_PATH=/nowhere", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY"]
    done = run_program("cmake", "-S", ROOT, "-B", tmp_path, *nowhere)
    assert done.returncode != 0
    for words in (
        "fmt/format.h was not found",
        "apt-get install libfmt-dev nlohmann-json3-dev",
        "pip install",
    ):
        assert words in done.stderr, done.stderr


LONG = pytest.mark.long


# CMake builds all of them above, and with these flags.
@pytest.mark.skipif(
    shutil.which("pkg-config") is None, reason="pkg-config is missing (apt-get install pkg-config)"
)
@pytest.mark.parametrize(
    ("compiler", "source"),
    [
        pytest.param(
            compiler,
            f"{suffix}/{example}.{suffix}",
            marks=[] if (example, suffix) == ("put", "c") else [LONG],
        )
        for example in EXPECTED
        for compiler, suffix in COMPILERS
    ],
)
def test_pkg_config(prefix: Path, tmp_path: Path, run_program: Run, compiler: str, source: str) -> None:
    where = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    flags = run_program("pkg-config", "--cflags", "--libs", "peerway", env=where).stdout.split()
    assert f"-I{prefix}" in flags[0]
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    program = tmp_path / Path(source).stem
    done = run_program(*compiler.split(), *warnings, ROOT / "examples" / source, *flags, "-o", program)
    assert done.returncode == 0, done.stderr
    done = run_program("peerway", "run", "-n", count(program.name), "--", program)
    assert_said(done, program.name)


@pytest.mark.parametrize(("compiler", "suffix"), [("cc -std=c11", "h"), ("c++ -std=c++20", "hpp")])
def test_the_headers_are_clean_under_all_that_users_warn_of(
    prefix: Path, tmp_path: Path, run_program: Run, compiler: str, suffix: str
) -> None:
    program = tmp_path / f"all.{'c' if suffix == 'h' else 'cpp'}"
    headers = sorted((prefix / "include" / "peerway").glob(f"*.{suffix}"))
    known = [header.name for header in headers if header.name != "peerway_mpi.h"]  # which needs an mpi.h
    assert f"peerway.{suffix}" in known
    program.write_text("".join(f"#include <peerway/{name}>\n" for name in known))
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wcast-qual"]
    include = f"-I{prefix / 'include'}"
    done = run_program(*compiler.split(), *flags, "-Werror", "-fsyntax-only", include, program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", EXPECTED)
def test_python(run_program: Run, example: str) -> None:
    program = ROOT / "examples" / "python" / f"{example}.py"
    done = run_program("peerway", "run", "-n", count(example), "--", sys.executable, program)
    assert_said(done, example)


def test_the_example_of_the_readme() -> None:
    output = ranks(readme_example())
    assert sorted(output.splitlines()) == [f"rank {rank} has both" for rank in range(2)]
