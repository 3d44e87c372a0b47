"""docs/install.md as a user follows it: a wheel of this tree in an empty environment, and programs with it.

The whole library is compiled for it, so all of it is `long`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from launching import ROOT, clean_environment
from readme import example

pytestmark = pytest.mark.long

TOOLS = ("scipy", "jinja2", "plotly", "matplotlib", "pandas")  # of extras, or of no use to the library


def done(*command: object, **options: object) -> str:
    """What a command prints that must succeed."""
    settings: dict[str, object] = {"env": clean_environment(), "cwd": ROOT, **options}
    found = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **settings
    )  # type: ignore[call-overload]
    assert found.returncode == 0, found.stdout + found.stderr
    return str(found.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`pip wheel`, with the build's packages of this environment in place of a download."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"--config-settings=build-dir={folder / 'build'}"
    options = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", build]
    done(sys.executable, "-m", "pip", "wheel", *options, "-w", folder / "dist", ".")
    (found,) = (folder / "dist").glob("*.whl")
    return Path(found)


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("empty")
    done(sys.executable, "-m", "venv", folder)
    wheels = os.environ.get("PEERWAY_BUILD_WHEELS")
    source = (
        ["--no-index", "--find-links", wheels] if wheels else ["--constraint", ROOT / "requirements.lock"]
    )
    done(folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", *source, wheel)
    return folder / "bin"


@pytest.fixture
def there(empty: Path, tmp_path: Path) -> dict[str, object]:
    """Where and with what a user works: another folder, the new environment first on the path."""
    return {"cwd": tmp_path, "env": clean_environment(PATH=f"{empty}{os.pathsep}{os.defpath}")}


def test_the_wheel_has_everything_once(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    libraries = [name for name in names if ".so" in Path(name).name]
    assert sorted(name.partition(".cpython")[0] for name in libraries) == [
        "peerway/_core", "peerway/lib/libpeerway.so", "peerway/lib/libpeerway_nic_torus.so",
        "peerway/lib/libpeerway_trace_cuda.so", "peerway/lib/libpeerway_uct.so",
        "peerway/lib/libpeerway_xacc.so",
    ]  # fmt: skip
    wanted = {"peerway/lib/cmake/peerway/peerwayConfig.cmake", "peerway/lib/pkgconfig/peerway.pc"}
    wanted |= {"peerway/libexec/peerway-storage", "peerway/py.typed"}
    for source, place in (("include", "include"), ("library/python/peerway", ".")):
        files = (path for path in (ROOT / source).rglob("*") if path.is_file())
        wanted |= {
            os.path.normpath(f"peerway/{place}/{path.relative_to(ROOT / source)}")
            for path in files
            if "__pycache__" not in path.parts
        }
    assert wanted <= {*names}


def test_the_library_alone_needs_no_tools(empty: Path, there: dict[str, object]) -> None:
    program = "import importlib.util as u, peerway; peerway.Context().close();"
    program += f"print([name for name in {TOOLS} if u.find_spec(name)])"
    assert done(empty / "python", "-c", program, **there) == "[]\n"
    said = subprocess.run(
        [empty / "peerway", "report", ROOT / "results" / "cpu-2" / "host.jsonl"],
        capture_output=True,
        text=True,
        check=False,
        **there,
    )  # type: ignore[call-overload]
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert "pip install peerway-measure" in said.stderr


def test_the_example_of_the_readme(there: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(example())
    said = done("peerway", "run", "-n", "2", "--", "python", "example.py", **there)
    assert sorted(said.split("\n")) == ["", "rank 0 has both", "rank 1 has both"]


def test_c_by_pkg_config_runs_from_anywhere(there: dict[str, object], tmp_path: Path) -> None:
    """The three lines of the page. The loader is told where the library lies: no LD_LIBRARY_PATH."""
    shutil.copy(ROOT / "examples" / "c" / "put.c", tmp_path)
    lines = """export PKG_CONFIG_PATH=$(peerway --prefix)/lib/pkgconfig
        cc put.c $(pkg-config --cflags --libs peerway) -o put
        cd / && peerway run -n 2 -- "$OLDPWD/put" """
    page = (ROOT / "docs" / "install.md").read_text()
    assert all(f"$ {line.strip()}" in page for line in lines.splitlines()[:2])
    said = done("sh", "-ec", lines, **there)
    assert sorted(said.splitlines()) == [
        f'rank {rank} received "hello from rank {1 - rank}"' for rank in (0, 1)
    ]


def test_cmake_finds_it(there: dict[str, object], tmp_path: Path) -> None:
    place = done("peerway", "--cmakedir", **there).strip()
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES C)\n"
        "find_package(peerway 0.1 REQUIRED)\n"
        f"add_executable(my_program {ROOT}/examples/c/put.c)\n"
        "target_link_libraries(my_program PRIVATE peerway::peerway)\n"
    )
    done("cmake", "-S", ".", "-B", "build", f"-Dpeerway_DIR={place}", **there)
    done("cmake", "--build", "build", **there)
    said = done("peerway", "run", "-n", "2", "--", "build/my_program", **there)
    assert "rank 0 received" in said
