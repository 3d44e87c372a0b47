"""The fixtures of the tests between real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import rank_server
from launching import LIMIT, ROOT, Run, clean_environment, compile_double, compile_program

import peerway

sys.path.insert(0, str(ROOT / "apps" / "mpi"))

from hosts import Network, NoHosts, network


@pytest.fixture(scope="session", autouse=True)
def server_of_ranks() -> Iterator[None]:
    """Ended with the tests."""
    yield
    rank_server.stop()


@pytest.fixture(scope="session")
def team_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/team.c, readable for every user."""
    folder = tmp_path_factory.mktemp("programs")
    return compile_program("team", folder / "team")


@pytest.fixture(scope="session")
def doubles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings that put the unit tests' doubles in the place of the CUDA driver and of GDRCopy."""
    folder = tmp_path_factory.mktemp("doubles")
    return {
        "PEERWAY_CUDA_LIBRARY": str(compile_double("fake_cuda", folder)),
        "PEERWAY_GDRCOPY_LIBRARY": str(compile_double("fake_gdrcopy", folder)),
        "PEERWAY_CACHE": str(ROOT / "build" / "test-cache"),  # kernels are compiled once, until they change
    }


@pytest.fixture(scope="session")
def fake_gpu(tmp_path_factory: pytest.TempPathFactory, doubles: dict[str, str]) -> dict[str, str]:
    """The settings for a GPU that is none: the fake driver, and kernels of programs compiled for the CPU."""
    nvrtc = compile_double("fake_nvrtc", tmp_path_factory.mktemp("fake_nvrtc"))
    cache = str(ROOT / "build" / "test-cache-fake")
    return {**doubles, "PEERWAY_NVRTC_LIBRARY": str(nvrtc), "PEERWAY_CACHE": cache, "PEERWAY_ACC": "gpu"}


@pytest.fixture(scope="session")
def peers_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """For PEERWAY_CACHE, so that peers are compiled once: a program is named after all that it is made of."""
    return str(tmp_path_factory.mktemp("peers"))


@pytest.fixture(scope="session")
def mpi_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where MPI programs are built, once for each stack."""
    return tmp_path_factory.mktemp("mpi")


@pytest.fixture(scope="session")
def hosts() -> Iterator[Network]:
    """Four network namespaces, and one for a launcher."""
    try:
        with network(4) as made:
            yield made
    except NoHosts as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spaces(hosts: Network) -> list[str]:
    """The names of four network namespaces; node n has the address 10.213.7.(n+1)."""
    return hosts.names


@pytest.fixture
def ctx() -> Iterator[peerway.Context]:
    """The context of a team of one."""
    with peerway.Context() as context:
        yield context


@pytest.fixture
def run() -> Run:
    """Run a command to its end; a hang fails the test."""

    def body(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        settings: dict[str, object] = {"env": clean_environment(), "timeout": LIMIT, "text": True, **options}
        return subprocess.run(command, capture_output=True, check=False, **settings)  # type: ignore[call-overload, no-any-return]

    return body


@pytest.fixture
def two_nodes(tmp_path: Path) -> list[str]:
    """Hosts that are this one, each reached by a shell."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    return ["--hosts", "alpha,beta", "--launch-agent", str(agent)]
