"""The benchmark that the command line requests, and the list of cases made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peerway_measure.bench import machine, runner, shapes
from peerway_measure.bench.kinds import DEFAULT_TESTS
from peerway_measure.bench.plan import Case, Plan, Setting, make_cases
from peerway_measure.bench.shapes import Shape
from peerway_measure.cube import cube_face
from peerway_measure.memories import GPU_KINDS, gpudirect_pairs, is_gpu

if TYPE_CHECKING:
    from peerway_measure.bench.halo import Halo
    from peerway_measure.bench.results import Results

SIZES, QUICK_SIZES = "8:64M", "8,4K,64K,1M,16M"
CUBES, QUICK_CUBES = (2, 4, 8, 16, 32, 64, 128, 256, 512), (16, 64, 128)
BUDGET_S, QUICK_BUDGET_S = 0.15, 0.03
QUICK_MALLOC_TESTS = ("put_latency", "put_bw", "get_bw")
COMPUTES = (4096, 8192, 16384, 32768, 65536)
QUICK_COMPUTES = (4096, 65536)
ASYNC_SAMPLES, QUICK_ASYNC_SAMPLES = 500, 25  # each sample has 20 trips
GPUDIRECT = (
    Setting("gpudirect:neither", "staged,ucx/staged"),
    Setting("gpudirect:gdrcopy", "mapped,staged,ucx/staged", needs="mapped"),
    Setting("gpudirect:rdma", "ucx/direct", needs="ucx/direct"),
    Setting("gpudirect:both", "mapped,ucx/direct", needs="mapped,ucx/direct"),
)
HOST_MEMORIES = (("host", "host"), ("host:malloc", "host:malloc"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of `peerway bench` that say what to measure. The help of the command says what None and
    empty values mean.
    """

    tests: Sequence[str] = ()
    ranks: int | None = None
    memories: Sequence[tuple[str, str]] | None = None
    paths: Sequence[str] | None = None
    sizes: Sequence[int] | None = None
    shapes: Sequence[str] = ("contiguous",)
    halo: Halo | None = None
    computes: Sequence[int] | None = None
    repeat: int = 1
    all_pairs: bool = False
    gpudirect: bool = False
    quick: bool = False

    def __post_init__(self) -> None:
        self._check_halo()
        if self.processes % 2 and self.halo is None:
            raise ValueError(f"--ranks {self.ranks}: ranks work in pairs, so an even number is needed")
        if self.computes and "async_pingpong" not in self.tests:
            raise ValueError(
                "--compute belongs to the test async_pingpong; name that test, or omit --compute"
            )
        wrong = [size for size in self.computes or () if size % 16]
        if wrong:
            raise ValueError(
                f"--compute {wrong[0]}: the computation works on words of 16 bytes; give a multiple of 16"
            )
        if self.gpudirect and self.paths:
            raise ValueError(
                "--gpudirect and --paths exclude each other: the four columns are settings of paths"
            )
        if self.gpudirect and not any(is_gpu(name) for pair in self.measured_memories() for name in pair):
            kinds = " or ".join(GPU_KINDS)
            raise ValueError(f"--gpudirect is about GPU memory, but --device names none; add {kinds}")

    def _check_halo(self) -> None:
        if ("halo" in self.tests) != (self.halo is not None):
            raise ValueError(
                "the test halo needs --grid, --local and --element, and only it does; "
                "write halo --grid 2x1 --local 512x512 --element 8"
            )
        if self.halo is None:
            return
        if self.sizes or tuple(self.shapes) != ("contiguous",):
            raise ValueError(
                "the test halo takes its size from --local and --element; omit --sizes and --shapes"
            )
        if len(set(self.tests)) > 1:
            raise ValueError("the test halo uses all ranks of its grid, other tests use pairs; run it alone")
        if self.ranks not in (None, self.halo.ranks):
            raise ValueError(f"--ranks {self.ranks}: the grid of the halo has {self.halo.ranks} ranks")

    @property
    def processes(self) -> int:
        """How many ranks to start."""
        if self.halo is not None:
            return self.halo.ranks
        return 2 if self.ranks is None else self.ranks

    def measured_memories(self) -> Sequence[tuple[str, str]]:
        """The pairs of memories to measure."""
        if self.memories is not None:
            return self.memories
        kinds = machine.gpu_kinds()
        if self.gpudirect:
            return [pair for kind in kinds or GPU_KINDS[:1] for pair in gpudirect_pairs(kind)]
        return (*HOST_MEMORIES, *((kind, kind) for kind in kinds))

    @property
    def budget_s(self) -> float:
        """The time for the samples of one case."""
        return QUICK_BUDGET_S if self.quick else BUDGET_S

    def plan(self, results: Results) -> Plan:
        """Every case to measure. Cases that do not fit into this host's memory become notes of the
        results.
        """
        return Plan(
            self.processes,
            runner.fits_memory(self._cases(), self.processes, results),
            self._settings(),
            self.budget_s,
            known=machine.known(),
        )

    def environment(self) -> Mapping[str, str]:
        """The settings that the ranks need. On one host UCX is started only if it is requested."""
        wanted = any("ucx" in setting.paths for setting in self._settings())
        return {"PEERWAY_UCX": "on"} if wanted else {}

    def _settings(self) -> list[Setting]:
        return list(GPUDIRECT) if self.gpudirect else [_setting(path) for path in self.paths or ()]

    def _cases(self) -> list[Case]:
        sizes = self.sizes or shapes.parse_sizes(QUICK_SIZES if self.quick else SIZES)
        edges = [face.n for label in self.shapes if (face := cube_face(label))]
        cubes = dict.fromkeys(edges) or (QUICK_CUBES if self.quick else CUBES)
        cases = make_cases(
            self.tests or DEFAULT_TESTS, sizes, self.shapes, cubes, self.measured_memories(), self.processes,
            self._own_shapes(),
        )  # fmt: skip
        cases = [self._with_all_trips(case) if case.kind.loop == "async" else case for case in cases]
        if self.quick and self.memories is None and not self.tests:
            cases = [c for c in cases if c.source != "host:malloc" or c.test in QUICK_MALLOC_TESTS]
        return _each_pair(cases, self.processes) if self.all_pairs else cases

    def _own_shapes(self) -> dict[str, list[Shape]]:
        computes = self.computes or (QUICK_COMPUTES if self.quick else COMPUTES)
        own = {"async_pingpong": [shapes.around_computing(size) for size in computes]}
        return own | {"halo": [shapes.of_halo(self.halo)]} if self.halo else own

    def _with_all_trips(self, case: Case) -> Case:
        """Set the number of samples of an async_pingpong, whatever time they take."""
        return replace(case, samples=QUICK_ASYNC_SAMPLES if self.quick else ASYNC_SAMPLES)


def _setting(text: str) -> Setting:
    """The setting that a word of the command line stands for: a single path, or several joined by '+', among
    which the route table chooses.
    """
    paths = text.replace("+", ",")
    return Setting(text, paths, needs=paths if paths != text else "")


def _each_pair(cases: Sequence[Case], ranks: int) -> list[Case]:
    """Each case between every two ranks, one pair after the other. Tests of all pairs at once stay as they
    are.
    """
    every = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    single = [case for case in cases if not case.kind.all_pairs and case.pairs]
    rest = [case for case in cases if case.kind.all_pairs or not case.pairs]
    return [replace(case, pairs=(pair,)) for case in single for pair in every] + rest
