"""The harness of peers without any peer: names, the programs' validator, and how failing runs end."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from peerway_measure.bench import halo, peers
from peerway_measure.bench.peers import build, gpus, launch, record
from peerway_measure.bench.peers.base import Ability, Peer, pairs

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Form:
    label: str
    blocks: int
    block_bytes: int
    pitch: int


CONTIGUOUS = Form("contiguous", 1, 64, 64)
STRIDED = Form("cube:4/k", 16, 8, 32)


def result(test: str = "put_latency", **other: object) -> dict[str, object]:
    times = {"p50_us": 2.0, "p99_us": 3.0, "min_us": 1.0, "mean_us": 2.1}
    rates = {"bandwidth_MBps": 32.0, "messages_per_s": 5e5, "validated": True, "cpu_percent": 100.0}
    case = {"via": "toy", "test": test, "shape": "contiguous", "bytes": 64, "ranks": 2, "iterations": 10}
    return {**case, **times, **rates, "window": 1, "batch": 1, "library": "Toy 1", "device": "host", **other}


# ---- names ----


def test_a_peer_by_its_name_has_all_its_variants() -> None:
    chosen = {choice.peer.name: choice.variants for choice in peers.choose("openmpi, ucx/tag")}
    assert chosen == {"openmpi": {"openmpi", "openmpi/rma", "openmpi/pack"}, "ucx": {"ucx/tag"}}


def test_all_peers_are_asked_without_naming_any() -> None:
    every = peers.choose("all")
    assert [choice.peer.name for choice in every] == list(peers.PEERS)
    assert not any(choice.by_name for choice in every)
    assert all(choice.by_name for choice in peers.choose(",".join(peers.PEERS)))


@pytest.mark.parametrize("name", ["mpich", "openmpi/pak", ""])
def test_an_unknown_peer_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=r"not a (peer|variant).*there are .*openmpi"):
        peers.choose(name)


@pytest.mark.parametrize("family", [peer() for peer in peers.PEERS.values()], ids=lambda peer: peer.name)
@pytest.mark.parametrize("device", ["host", "cuda"])
def test_a_peer_does_only_tests_that_the_programs_know(family: Peer, device: str) -> None:
    known = {
        *("put_latency", "get_latency", "put_bw", "get_bw", "put_bibw", "put_mbw_mr", "signal_latency"),
        *("pingpong", "cube", "exchange", "plan_latency", "kernel_latency", "halo"),
    }
    assert {test for test, _ in family.tests(device)} <= known
    assert {kind for _, kind in family.tests(device)} <= {"contiguous", "block", "halo"}
    assert all(via.partition("/")[0] == family.name for via in family.variants)


def test_gpu_libraries_say_that_they_are_not_for_host_memory() -> None:
    for name in ("nccl", "nvshmem"):
        missing = peers.PEERS[name]().find("host")
        assert isinstance(missing, peers.Missing)
        assert "GPU memory only" in missing.reason


def test_too_few_gpus_are_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "present", lambda: gpus.Gpus(1, "sm_90"))
    assert gpus.shortage() == "there is 1 GPU, and 2 are needed"
    monkeypatch.setattr(gpus, "present", lambda: gpus.Gpus(0, "", "no NVIDIA driver"))
    assert gpus.shortage() == "no NVIDIA driver"
    monkeypatch.setattr(gpus, "present", lambda: gpus.Gpus(2, "sm_90"))
    assert gpus.shortage() == ""


# ---- the validator of the programs, compiled as it is ----

VALIDATOR = """
#include "data.h"
int main(int argc, char **argv) {
  bench_case c = parse_case(argv[1]);
  size_t bytes = extent(c.form), wrong = (size_t)atol(argv[2]);
  unsigned char *found = malloc(bytes), *scratch = malloc(bytes);
  memset(found, POISON, bytes);
  fill_random(scratch, bytes, 1, 3);
  for (size_t b = 0; b < c.form.blocks; ++b)
    memcpy(found + b * c.form.pitch, scratch + b * c.form.pitch, c.form.block_bytes);
  if (wrong < bytes) found[wrong] ^= 1;
  int from_1 = is_what_was_sent(found, scratch, c.form, 1, 3);
  int from_0 = is_what_was_sent(found, scratch, c.form, 0, 3);
  printf("%d %d\\n", from_1, from_0);
  return argc != 3;
}
"""


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Form, int], tuple[bool, bool]]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (apt-get install gcc)")
    folder = tmp_path_factory.mktemp("validator")
    source, program = folder / "validator.c", folder / "validator"
    source.write_text(VALIDATOR)
    command = [
        compiler,
        "-std=gnu11",
        "-Wall",
        "-Werror",
        f"-I{build.PROGRAMS}",
        str(source),
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True)

    def check(form: Form, wrong: int) -> tuple[bool, bool]:
        case = peers.Case("put_latency", form).argument("toy")
        printed = subprocess.run(
            [program, case, str(wrong)], check=True, capture_output=True, text=True
        ).stdout.split()
        return printed[0] == "1", printed[1] == "1"

    return check


NOWHERE = 1 << 40

# A rank's halo filled as the exchange of all ranks would fill it, except for one byte; and the check's
# message.
HALO = """
#include "halo.h"
int main(int argc, char **argv) {
  halo h = parse_halo(argv[1]);
  size_t bytes = halo_elements(&h) * h.element, received = 0, changed = 0;
  unsigned char *before = malloc(bytes), *after = malloc(bytes), *other = malloc(bytes);
  int rank = atoi(argv[2]);
  halo_image(&h, rank, 3, 0, before);
  halo_image(&h, rank, 3, 1, after);
  halo_image(&h, rank, 4, 1, other);
  for (int d = 0; d < h.dims; ++d)
    for (int side = 0; side < 2; ++side) {
      face f = halo_face(&h, d, side, 0);
      if (halo_neighbour(&h, rank, d, side) >= 0) received += face_bytes(&f);
    }
  for (size_t e = 0; e < bytes; e += h.element) changed += !!memcmp(before + e, after + e, h.element);
  printf("%zu %zu %zu %d\\n", bytes, received, changed * h.element, !memcmp(after, other, bytes));
  return argc != 3;
}
"""


@pytest.mark.parametrize("form", [CONTIGUOUS, STRIDED, Form("odd", 3, 5, 11)], ids=lambda form: form.label)
def test_what_was_sent_is_valid_and_anothers_data_is_not(
    form: Form, validator: Callable[[Form, int], tuple[bool, bool]]
) -> None:
    assert validator(form, NOWHERE) == (True, False)


@pytest.mark.parametrize("wrong", [0, 7, 8, 31, 32, 487])
def test_one_wrong_bit_in_a_block_or_in_a_gap_is_found(
    wrong: int, validator: Callable[[Form, int], tuple[bool, bool]]
) -> None:
    assert peers.Case("cube", STRIDED).extent == 488
    assert validator(STRIDED, wrong) == (False, False)


def test_a_case_that_cannot_be_is_refused(validator: Callable[[Form, int], tuple[bool, bool]]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        validator(Form("overlapping", 4, 8, 4), NOWHERE)


HALOS = [
    halo.make([2, 1], [8, 8], 8),
    halo.make([2], [8, 8], 8, [(2, 1), (1, 3)], corners=True),
    halo.make([3, 2], [4, 5, 2], 24, [(1, 2), (2, 1), (1, 1)]),
    halo.make([1], [4, 4], 16, [(1, 1), (2, 2)], [True, False]),
]


@pytest.mark.parametrize("case", HALOS, ids=lambda case: case.label)
def test_the_program_reads_a_halo_as_it_was_meant(case: halo.Halo, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (apt-get install gcc)")
    (tmp_path / "halo.c").write_text(HALO)
    program = tmp_path / "halo"
    command = [compiler, "-std=gnu11", "-Wall", "-Werror", f"-I{build.PROGRAMS}", tmp_path / "halo.c"]
    subprocess.run([*command, "-o", program], check=True)
    received = []
    for rank in range(case.ranks):
        printed = subprocess.run([program, case.label, str(rank)], check=True, capture_output=True, text=True)
        all_bytes, faces, changed, same = map(int, printed.stdout.split())
        assert (all_bytes, same) == (case.array_bytes, 0)
        assert faces == changed
        received.append(changed)
    assert max(received) == case.bytes


# ---- runs ----


class Toy(Peer):
    """A peer whose program is a Python script that gets the cases as arguments."""

    name = "toy"
    variants = ("toy",)

    def __init__(self, folder: Path, body: str, ranks_differ: bool = False) -> None:
        super().__init__()
        self.program = folder / "toy.py"
        self.program.write_text(f"import json, os, sys, time\nRESULT = {result()!r}\n{SAY}\n{body}\n")
        self.starts = 0

    def _find(self, device: str) -> peers.Installation | peers.Missing:
        return peers.Installation("Toy 1", self.program)

    def ability(self, via: str, device: str) -> Ability:
        return pairs("put_latency put_bw", "contiguous")

    def job(self, installation: peers.Installation, arguments: list[str], ranks: int) -> launch.Job:
        self.starts += 1
        return launch.Job([[sys.executable, str(installation.program), *arguments]] * ranks, linked=True)


SAY = """
rank = int(sys.argv[sys.argv.index("--rank") + 1])
cases = [value.split(",") for name, value in zip(sys.argv, sys.argv[1:]) if name == "--case"]
sizes = [int(case[4]) for case in cases]
def say(**values):
    if rank == 0:
        print(json.dumps(values), flush=True)
def done(size):
    say(**{**RESULT, "bytes": size, "validated": True})
"""


def cases(*sizes: int) -> tuple[peers.Case, ...]:
    return tuple(peers.Case("put_latency", Form("contiguous", 1, size, size)) for size in sizes)


def outcomes(peer: Peer, plan: peers.Plan) -> list[tuple[int, str]]:
    """Size and reason of failure of each outcome."""
    ends = []
    for outcome in peer.run(plan, lambda *_: None):
        failed = isinstance(outcome, peers.Failed)
        ends.append((outcome.case.bytes, outcome.reason) if failed else (outcome["bytes"], ""))
    return ends


def test_every_case_gives_a_result_and_progress_counts_them(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 'print("a library says hello")\nfor size in sizes: say(begin=0); done(size)')
    seen: list[tuple[str, int, int]] = []
    plan = peers.Plan("host", (*cases(1, 2), peers.Case("get_bw", CONTIGUOUS)))
    got = list(toy.run(plan, lambda *words: seen.append(words)))
    assert [isinstance(each, dict) and each["bytes"] for each in got] == [1, 2]
    assert seen == [("toy", 1, 2), ("toy", 2, 2)]


class TwoVariants(Toy):
    """A peer whose second variant is measured after the whole first variant."""

    variants = ("toy", "toy/late")


def test_a_time_that_is_too_short_is_shared_by_variants_and_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 cases of a second each in 8 seconds: four of each way, two of each test, the first and last
    sizes.
    """
    body = """
for via, test, _, _, size, *_ in cases:
    say(begin=0)
    say(**{**RESULT, "via": via, "test": test, "bytes": int(size)})
"""
    now = [0.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    sizes = [Form("contiguous", 1, size, size) for size in (1, 2, 3, 4)]
    cases = tuple(peers.Case(test, size) for test in ("put_latency", "put_bw") for size in sizes)
    measured, omitted = [], 0
    for outcome in TwoVariants(tmp_path, body).run(peers.Plan("host", cases, ends=7.9), lambda *_: None):
        if isinstance(outcome, dict):
            now[0] += 1
            measured.append((outcome["via"], outcome["test"], outcome["bytes"]))
        else:
            assert isinstance(outcome, peers.NoTime)
            omitted += 1
    expected = [
        (variant, test, n)
        for variant in TwoVariants.variants
        for n in (1, 4)
        for test in ("put_latency", "put_bw")
    ]
    assert measured == expected
    assert omitted == 8


def test_a_crash_costs_its_own_case_only(tmp_path: Path) -> None:
    body = """
for size in sizes:
    say(begin=0)
    if size == 2 and rank == 1:
        sys.stderr.write("the reason\\n"); sys.stderr.flush(); os.kill(os.getpid(), 11)
    if size == 2: time.sleep(60)
    done(size)
"""
    toy = Toy(tmp_path, body)
    assert outcomes(toy, peers.Plan("host", cases(1, 2, 3))) == [
        (1, ""),
        (2, "was killed by SIGSEGV: the reason"),
        (3, ""),
    ]
    assert toy.starts == 2


def test_a_case_that_is_refused_says_why_and_the_rest_goes_on(tmp_path: Path) -> None:
    body = 'for size in sizes: say(begin=0); say(refused="not today") if size == 2 else done(size)'
    toy = Toy(tmp_path, body)
    assert outcomes(toy, peers.Plan("host", cases(1, 2, 3))) == [(1, ""), (2, "not today"), (3, "")]
    assert toy.starts == 1


def test_a_program_that_dies_again_and_again_is_given_up(tmp_path: Path) -> None:
    toy = Toy(tmp_path, "say(begin=0); time.sleep(0.1); sys.exit(7)")
    got = outcomes(toy, peers.Plan("host", cases(*range(1, 9))))
    assert got == [(size, "ended with status 7") for size in range(1, 9)]
    assert toy.starts == 3


def test_a_program_that_never_begins_is_started_once(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 'sys.exit("no network")')
    assert outcomes(toy, peers.Plan("host", cases(1, 2))) == [
        (1, "ended with status 1: no network / no network"),
        (2, "ended with status 1: no network / no network"),
    ]
    assert toy.starts == 1


def test_a_silent_program_is_ended_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    body = f"""
import subprocess
say(begin=0)
child = subprocess.Popen(["sleep", "1000"])
open({str(mark)!r} + str(rank), "w").write(str(child.pid))
time.sleep(1000)
"""
    toy = Toy(tmp_path, body)
    got = outcomes(toy, peers.Plan("host", cases(1), timeout_s=1.0))
    assert got == [(1, "silent for 1 s and was ended")]
    for rank in (0, 1):
        assert gone(int(Path(f"{mark}{rank}").read_text()))


def gone(pid: int) -> bool:
    """Whether the process ends soon; a zombie counts as ended."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_missing_peer_cannot_be_run() -> None:
    with pytest.raises(RuntimeError, match=r"nccl: nccl moves GPU memory only; use --device cuda"):
        list(peers.PEERS["nccl"]().run(peers.Plan("host", cases(1)), lambda *_: None))


# ---- building ----


def compiler(folder: Path, body: str) -> str:
    path = folder / "compiler"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo toy 1; exit; }}\n{body}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_program_is_compiled_once_for_each_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERWAY_CACHE", str(tmp_path / "cache"))
    cc = compiler(
        tmp_path,
        f'echo x >> {shlex.quote(str(tmp_path))}/calls; while [ "$1" != -o ]; do shift; done; echo x > "$2"',
    )
    first = build.build("ucx.c", [cc], ["-lx"], "1.0")
    assert first == build.build("ucx.c", [cc], ["-lx"], "1.0")
    assert first != build.build("ucx.c", [cc], ["-lx"], "1.1")
    assert (tmp_path / "calls").read_text() == "x\nx\n"
    assert [path.name for path in first.parent.iterdir() if path.is_dir()] == []


def test_the_first_error_of_the_compiler_is_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEERWAY_CACHE", str(tmp_path / "cache"))
    cc = compiler(tmp_path, 'echo "a.c:1: warning: w" >&2; echo "a.c:2: error: e" >&2; exit 1')
    with pytest.raises(build.BuildError, match=r"^compiler: a\.c:2: error: e$"):
        build.build("ucx.c", [cc], [], "")
    with pytest.raises(build.BuildError, match="cannot be started"):
        build.build("ucx.c", [str(tmp_path / "no-such")], [], "")


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PEERWAY_CACHE", str(tmp_path / "file"))
    with pytest.raises(build.BuildError, match=r"cannot keep compiled programs in .*file/peers"):
        build.build("ucx.c", [compiler(tmp_path, "exit 0")], [], "")


# ---- records ----


def test_a_result_becomes_a_record() -> None:
    converted = record.as_record(result("get_bw", window=64), peers.Plan("host", ()), {"host": "here"})
    assert (converted.op, converted.source, converted.target, converted.version, converted.host) == (
        "get",
        "host",
        "host",
        "Toy 1",
        "here",
    )
    assert json.loads(converted.as_json())["extra"] == {"window": 64, "batch": 1}


def test_a_record_of_gpus_names_them() -> None:
    plan = peers.Plan("cuda", (), gpus=(2, 5))
    converted = record.as_record(result(device="H200"), plan, {"host": "here", "driver": "580"})
    assert (converted.source, converted.target, converted.device, converted.driver) == (
        "cuda:2",
        "cuda:5",
        "H200",
        "580",
    )
