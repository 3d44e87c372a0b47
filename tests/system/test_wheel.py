"""docs/install.md as a user follows it: source archives and wheels of this tree, each in an environment that
has nothing else, and programs with them.

The whole library is compiled for it, so all of it is `long`. `make release` does the same for each Python
and on other distributions of Linux.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from launching import ROOT, clean_environment
from readme import example

from peerway_common.cli import VERBS

sys.path.insert(0, str(ROOT / "scripts"))

import distributions

pytestmark = pytest.mark.long

TOOLS = ("scipy", "jinja2", "plotly", "matplotlib", "pandas")  # of extras, or of no use to the library
PACKAGES = {"peerway-common": ["peerway_common"], "peerway-measure": ["peerway_measure"],
            "peerway-trace": ["peerway_trace"], "peerway-xacc": ["peerway_xacc"],
            "peerway-jobs": ["peerway_jobs"]}  # fmt: skip
HERE = Path(sys.executable)


def run(*command: object, status: int = 0, **options: object) -> str:
    """What a command prints that must end with this status: on standard output, or as its error."""
    settings: dict[str, object] = {"env": clean_environment(), "cwd": ROOT, **options}
    process = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **settings
    )  # type: ignore[call-overload]
    assert process.returncode == status, process.stdout + process.stderr
    return str(process.stderr if status else process.stdout)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archives of all distributions."""
    folder = tmp_path_factory.mktemp("sdist")
    distributions.build_sdists(HERE, folder, folder / "log")
    return folder


@pytest.fixture(scope="module")
def wheels(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of all distributions, from the archives, with the build's packages of this environment."""
    folder = tmp_path_factory.mktemp("wheels")
    distributions.build_pure_wheels(HERE, archives, folder, archives / "pure.log")
    build = ROOT / "build" / "test-wheel"  # a fixed place, so that ccache knows the sources again
    try:
        distributions.build_library_wheel(HERE, archives, folder, build, archives / "library.log")
    finally:
        shutil.rmtree(build, ignore_errors=True)
    return folder


def environment_with(folder: Path, wheels: Path, *names: str) -> Path:
    """The programs of a new environment that has these wheels and what they ask for."""
    run(sys.executable, "-m", "venv", folder)
    downloaded = os.environ.get("PEERWAY_BUILD_WHEELS")
    source = (
        ["--no-index", "--find-links", downloaded]
        if downloaded
        else ["--constraint", ROOT / "requirements.lock"]
    )
    files = [next(wheels.glob(f"{name.replace('-', '_')}-{distributions.version()}-*.whl")) for name in names]
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install"]
    run(*pip, "--only-binary=:all:", *source, *files)
    return folder / "bin"


@pytest.fixture(scope="module")
def library_alone(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(tmp_path_factory.mktemp("library"), wheels, "peerway-common", "peerway")


@pytest.fixture(scope="module")
def jobs_alone(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(tmp_path_factory.mktemp("jobs"), wheels, "peerway-common", "peerway-jobs")


def outside(programs: Path, folder: Path) -> dict[str, object]:
    """Where and with what a user works: another folder, the new environment first on the path."""
    return {"cwd": folder, "env": clean_environment(PATH=f"{programs}{os.pathsep}{os.defpath}")}


@pytest.fixture
def user(library_alone: Path, tmp_path: Path) -> dict[str, object]:
    return outside(library_alone, tmp_path)


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [info.filename for info in archive.infolist() if not info.is_dir()]


def sources(folder: Path) -> set[Path]:
    """The files under a folder of sources that a wheel has to have, relative to it."""
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {path for path in files if "__pycache__" not in path.parts}


def test_the_wheel_of_the_library_has_everything_once(wheels: Path) -> None:
    names = names_in(next(wheels.glob("peerway-*.whl")))
    libraries = [name for name in names if ".so" in Path(name).name]
    assert sorted(name.partition(".cpython")[0] for name in libraries) == [
        "peerway/_core", "peerway/lib/libpeerway.so", "peerway/lib/libpeerway_nic_torus.so",
        "peerway/lib/libpeerway_trace_cuda.so", "peerway/lib/libpeerway_uct.so",
        "peerway/lib/libpeerway_xacc.so",
    ]  # fmt: skip
    wanted = {"peerway/lib/cmake/peerway/peerwayConfig.cmake", "peerway/lib/pkgconfig/peerway.pc"}
    wanted |= {"peerway/libexec/peerway-storage", "peerway/py.typed"}
    for source, folder in (
        ("library/include", "peerway/include"), ("xacc/include", "peerway/include"),
        ("library/python/peerway", "peerway"), ("nic/peerway_nic", "peerway_nic"),
    ):  # fmt: skip
        assert sources(ROOT / source)
        wanted |= {f"{folder}/{path}" for path in sources(ROOT / source)}
    assert wanted <= {*names}
    assert len(names) == len({*names})


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_in_pure_python_has_its_package_and_the_licence(name: str, wheels: Path) -> None:
    (wheel,) = wheels.glob(f"{name.replace('-', '_')}-{distributions.version()}-py3-none-any.whl")
    names = names_in(wheel)
    for package in PACKAGES[name]:
        folder = distributions.FOLDERS[name] / package
        assert {f"{package}/{path}" for path in sources(folder)} <= {*names}
    assert not [file for file in names if ".so" in Path(file).name]
    assert {"LICENSE", "NOTICE"} <= {Path(file).name for file in names if "/licenses/" in file}


@pytest.mark.parametrize("name", distributions.FOLDERS)
def test_an_archive_has_no_link_out_of_it_and_its_licence(name: str, archives: Path) -> None:
    with tarfile.open(distributions.sdist(archives, name)) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    assert {"LICENSE", "NOTICE", "PKG-INFO"} <= {Path(member.name).name for member in members}


def test_the_library_alone_needs_no_tools(library_alone: Path, user: dict[str, object]) -> None:
    program = "import importlib.util as u, peerway; peerway.Context().close();"
    program += f"print([name for name in {TOOLS} if u.find_spec(name)])"
    assert run(library_alone / "python", "-c", program, **user) == "[]\n"


def verbs_that_lack(*distributions_there: str) -> dict[str, str]:
    """Each verb whose part is missing where only these are installed, and that part."""
    return {name: verb.distribution for name, verb in VERBS.items()
            if verb.distribution not in distributions_there}  # fmt: skip


def test_a_verb_whose_part_is_missing_says_what_to_install(
    library_alone: Path, jobs_alone: Path, tmp_path: Path
) -> None:
    for programs, present in ((library_alone, "peerway"), (jobs_alone, "peerway-jobs")):
        lacking = verbs_that_lack(present)
        assert lacking
        for verb, distribution in lacking.items():
            error = run("peerway", verb, status=1, **outside(programs, tmp_path))
            assert f"`peerway {verb}` is part of {distribution}, which is not installed" in error
            assert error.rstrip().endswith(f"run pip install {distribution}")
            assert error.count("\n") == 1
        everything = run("peerway", "--help", **outside(programs, tmp_path))
        assert all(verb in everything for verb in VERBS)


def test_the_agent_of_jobs_needs_no_library(jobs_alone: Path, tmp_path: Path) -> None:
    user = outside(jobs_alone, tmp_path)
    assert "peerway jobs" in run("peerway", "jobs", "--help", **user)
    assert "agent" in run("peerway", "jobs", "agent", "--help", **user)
    assert run("peerway", "--prefix", status=1, **user).rstrip().endswith("run pip install peerway")


def test_the_example_of_the_readme(user: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(example())
    printed = run("peerway", "run", "-n", "2", "--", "python", "example.py", **user)
    assert sorted(printed.split("\n")) == ["", "rank 0 has both", "rank 1 has both"]


def test_c_by_pkg_config_runs_from_anywhere(user: dict[str, object], tmp_path: Path) -> None:
    """The three lines of the page. The loader is told where the library lies: no LD_LIBRARY_PATH."""
    shutil.copy(ROOT / "examples" / "c" / "put.c", tmp_path)
    lines = """export PKG_CONFIG_PATH=$(peerway --prefix)/lib/pkgconfig
        cc put.c $(pkg-config --cflags --libs peerway) -o put
        cd / && peerway run -n 2 -- "$OLDPWD/put" """
    page = (ROOT / "docs" / "install.md").read_text()
    assert all(f"$ {line.strip()}" in page for line in lines.splitlines()[:2])
    printed = run("sh", "-ec", lines, **user)
    assert sorted(printed.splitlines()) == [
        f'rank {rank} received "hello from rank {1 - rank}"' for rank in (0, 1)
    ]


def test_cmake_finds_it(user: dict[str, object], tmp_path: Path) -> None:
    package = run("peerway", "--cmakedir", **user).strip()
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES C)\n"
        "find_package(peerway 0.1 REQUIRED)\n"
        f"add_executable(my_program {ROOT}/examples/c/put.c)\n"
        "target_link_libraries(my_program PRIVATE peerway::peerway)\n"
    )
    run("cmake", "-S", ".", "-B", "build", f"-Dpeerway_DIR={package}", **user)
    run("cmake", "--build", "build", **user)
    printed = run("peerway", "run", "-n", "2", "--", "build/my_program", **user)
    assert "rank 0 received" in printed
