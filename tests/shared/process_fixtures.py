"""Fixtures of the tests between real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rank_server
from launching import (
    LIMIT,
    ROOT,
    Run,
    clean_environment,
    compile_double,
    compile_program,
    made_once,
    run_command,
)

if TYPE_CHECKING:
    from hosts import Network

    import peerway

# For programs that tests build: the compiler takes half the time. Flags set by the caller are used instead.
os.environ.setdefault("CXXFLAGS", "-O1")

sys.path.insert(0, str(ROOT / "apps" / "mpi"))


@pytest.fixture(autouse=True)
def ranks_that_sleep(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, own_settings: None
) -> None:
    """Let ranks sleep while they wait, except in tests that run alone or set how ranks wait, and in long
    runs.

    Polling ranks would take the cores from the ranks of tests that run in parallel.
    """
    alone = request.node.get_closest_marker("alone") is not None
    if request.path.parent.name == "system" and not (alone or request.config.getoption("--long")):
        monkeypatch.setenv("PEERWAY_WAIT", "blocking")


@pytest.fixture(scope="session", autouse=True)
def servers_of_programs() -> Iterator[None]:
    """Stop the servers that programs are forked from after the tests."""
    yield
    rank_server.stop()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what all processes of one test run share."""
    base = tmp_path_factory.getbasetemp()  # of this process, in the run's folder if there are several
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def team_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/team.c, compiled, and readable by every user."""
    folder = tmp_path_factory.mktemp("programs")
    return compile_program("team", folder / "team")


@pytest.fixture(scope="session")
def doubles(shared_folder: Path) -> dict[str, str]:
    """The settings that replace the CUDA driver, NVML, GDRCopy and NVRTC by doubles.

    They provide a fake GPU, whose kernels are compiled for the CPU.
    """
    folder = shared_folder / "doubles"
    libraries = {"CUDA": "fake_cuda", "NVML": "fake_nvml", "GDRCOPY": "fake_gdrcopy", "NVRTC": "fake_nvrtc"}
    with made_once(folder) as make:
        for name in libraries.values() if make else ():
            compile_double(name, folder)
    return {
        **{f"PEERWAY_{library}_LIBRARY": str(folder / f"{name}.so") for library, name in libraries.items()},
        "PEERWAY_CACHE": str(ROOT / "build" / "test-cache"),  # kernels are compiled once, until they change
    }


@pytest.fixture(scope="session")
def hip_settings(doubles: dict[str, str]) -> dict[str, str]:
    """The settings that replace HIP and HIPRTC by doubles over those of CUDA, which itself is missing."""
    folder = Path(doubles["PEERWAY_CUDA_LIBRARY"]).parent
    libraries = {"HIP": "fake_hip", "HIPRTC": "fake_hiprtc"}
    with made_once(folder / "hip") as make:
        for name in libraries.values() if make else ():
            compile_double(name, folder)
    return {
        **{f"PEERWAY_{library}_LIBRARY": str(folder / f"{name}.so") for library, name in libraries.items()},
        "PEERWAY_CUDA_LIBRARY": str(folder / "no_cuda.so"),
        "PEERWAY_CACHE": doubles["PEERWAY_CACHE"],
    }


@pytest.fixture(scope="session")
def fake_gpu(doubles: dict[str, str]) -> dict[str, str]:
    """The settings with which acc directives use the fake GPU."""
    return {**doubles, "PEERWAY_ACC": "gpu"}


@pytest.fixture(scope="session")
def shared_cache(shared_folder: Path) -> str:
    """A folder for PEERWAY_CACHE (its parent for XDG_CACHE_HOME), shared by all tests.

    Peers and the wrappers of an MPI are compiled only once, since each file is named after its inputs.
    """
    return str(shared_folder / "cache" / "peerway")


@pytest.fixture(scope="session")
def mpi_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which MPI programs are built, once for each stack."""
    return tmp_path_factory.mktemp("mpi")


@pytest.fixture(scope="session")
def hosts() -> Iterator[Network]:
    """Four network namespaces as hosts, and one for a launcher."""
    from hosts import NoHosts, network

    try:
        with network(4) as simulated:
            yield simulated
    except NoHosts as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spaces(hosts: Network) -> list[str]:
    """The names of four network namespaces; node n has the address 10.213.7.(n+1)."""
    return hosts.names


@pytest.fixture
def ctx() -> Iterator[peerway.Context]:
    """The context of a team of one."""
    import peerway

    with peerway.Context() as context:
        yield context


@pytest.fixture
def run() -> Run:
    """Run a command to its end; if it hangs, the test fails."""

    def body(
        command: list[str], env: Mapping[str, str] | None = None, timeout: float = LIMIT, **options: object
    ) -> subprocess.CompletedProcess[str]:
        environment = clean_environment() if env is None else env
        if not options:
            return run_command(command, environment, timeout=timeout)
        settings: dict[str, object] = {"env": environment, "timeout": timeout, "text": True, **options}
        return subprocess.run(command, capture_output=True, check=False, **settings)  # type: ignore[call-overload, no-any-return]

    return body


@pytest.fixture
def two_nodes(tmp_path: Path) -> list[str]:
    """Two hosts that are this machine, each reached through a shell."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    return ["--hosts", "alpha,beta", "--launch-agent", str(agent)]
