"""Measures the cases of a request on one node, in step with the other nodes, and passes each outcome to
`results`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from peerway_common.units import counted
from peerway_measure.storage import stripes
from peerway_measure.storage.engines import ENGINES
from peerway_measure.storage.engines.base import Engine, FileOperation, Outcome
from peerway_measure.storage.facts import Facts
from peerway_measure.storage.folder import RunFolder
from peerway_measure.storage.operation import OperationFailed, operate
from peerway_measure.storage.reads import Reads, in_step, of_all_nodes
from peerway_measure.storage.request import RANDOM_BLOCK, Files, Request
from peerway_measure.storage.results import Sink
from peerway_measure.storage.states import judge_random

if TYPE_CHECKING:
    from peerway_measure.storage.node_group import NodeGroup

MOST_STREAMS = 4096
_SMALL = 1024  # bytes of a small file
Case = TypeVar("Case")
Step = Callable[[str, int, int], None]


class Measurement:
    """One run on one node."""

    def __init__(
        self, request: Request, facts: Facts, folder: RunFolder, group: NodeGroup, sink: Sink
    ) -> None:
        self.request, self.facts, self.folder, self.group, self.sink = request, facts, folder, group, sink
        self._number = 0
        self._posix = ENGINES["posix"]
        self._reads = Reads(request, facts, group, sink)

    def run(self, step: Step) -> None:
        """Measure everything that was requested."""
        engines = [ENGINES[name] for name in self.request.engines]
        cases = in_random_order(product(engines, self.request.files(self.group.size)), self.folder.token)
        small = (
            [(n, in_one_folder) for n in self.request.streams for in_one_folder in (True, False)]
            if "metadata" in self.request.tests
            else []
        )
        total = len(cases) + len(small)
        for done, (engine, files) in enumerate(cases):
            step(f"{engine.name} {files.name}", done, total)
            self._files(engine, files)
        if small and not self._choose_stripes("", "metadata"):
            small = []
        for done, (streams, one_folder) in enumerate(small, start=len(cases)):
            step(f"metadata with {counted(streams, 'stream')}", done, total)
            self._small_files(streams, one_folder)
        step("", total, total)

    def _files(self, engine: Engine, files: Files) -> None:
        """Write files, read them in each cache state and at random places, and then remove them."""
        self._number += 1
        if files.direct and self.facts.place.kind == "memory":
            self.sink.note(f"direct was not measured: {self.facts.place.file_system} has its files in memory")
            return
        if files.direct and not engine.takes_direct:
            self.sink.note(
                f"{files.mode} was not measured by {engine.name}, which opens files in its own way"
            )
            return
        if not self._choose_stripes(files.stripes, files.name):
            return
        job = self._job(files, self.group.rank)
        neighbours = self._job(files, (self.group.rank + 1) % self.group.size)
        try:
            written = self._write(engine, job)
            if written:
                self._note_layout(job)
            self.group.barrier()
            if "read" in files.tests:
                self._reads.all(engine, job, neighbours, written)
            if "random" in files.tests:
                self._random(engine, job, written)
            if written:
                # Other nodes must see what one node wrote to a shared file.
                self._verify(engine, neighbours if files.nodes > 1 else job)
        finally:
            with suppress(OperationFailed):  # the removal is tried again at the end
                self.folder.remove(job.path.name.partition(".")[2])
            self.group.barrier()

    def _job(self, files: Files, rank: int) -> FileOperation:
        """The job that writes the files of a node."""
        path = self.folder.prefix(f"w{self._number}" + (f"r{rank}" if files.nodes == 1 else "s"))
        first = rank * files.streams if files.nodes > 1 else 0
        return FileOperation(
            path, files, self._seed(rank), self.request.limit_s, files.block, first_stream=first
        )

    def _choose_stripes(self, stripe: str, name: str) -> bool:
        """Have new files striped over the servers as requested. "" stands for the file system's default."""
        self.sink.layout = {}
        if not any(self.request.stripes):
            return True
        problem = ""
        if self.group.rank == 0:
            folder = self.folder.prefix("").parent
            try:
                stripes.choose(folder, stripe, self.facts.place.file_system, self.request.limit_s)
            except OperationFailed as error:
                problem = str(error)
        problem = self.group.first_problem(problem)
        if problem:
            self.sink.note(f"{name} was not measured: {problem}")
        return not problem

    def _note_layout(self, job: FileOperation) -> None:
        """Store the layout of the files in records. It may differ from the requested one."""
        wanted = job.files.stripes
        if not any(self.request.stripes) and self.facts.place.kind != "lustre":
            return
        self.sink.layout = stripes.layout_of(Path(job.paths()[0]), self.request.limit_s)
        if why := stripes.differs(wanted, self.sink.layout) if wanted else "":
            self.sink.note(why)

    def _write(self, engine: Engine, job: FileOperation) -> bool:
        """Write the files that will be read.

        The data of `posix` can be checked, so it writes them; with another engine, only the time of its own
        write is recorded. A file that nodes share is recorded only if all of them could write.
        """
        own, timed = engine is self._posix, "write" in job.files.tests
        if not own and timed and "write" in engine.operations:
            other = replace(job, path=job.path.with_name(f"{job.path.name}e"))
            if outcome := self._timed_write(engine, other):
                self._record_write(engine, job, outcome)
            with suppress(OperationFailed):
                self.folder.remove(other.path.name.partition(".")[2])
        outcome = self._timed_write(self._posix, job)
        if outcome and own and timed:
            known = outcome
            self.sink.later(
                lambda right: self._record_write(engine, job, replace(known, data_is_correct=right))
            )
        return outcome is not None

    def _timed_write(self, engine: Engine, job: FileOperation) -> Outcome | None:
        """The outcome of a write; None if this node, or another node that shares the file, could
        not write.
        """
        self.group.barrier()
        outcome = None
        try:
            outcome = engine.run("write", in_step(job, self.group))
        except OperationFailed as error:
            self.sink.note(f"write by {engine.name} ({job.files.name}) was not measured: {error}")
        if job.files.nodes == 1:
            return outcome
        each = self.group.all_gather(str(outcome.elapsed_ns) if outcome else "")
        if not all(each):
            return None
        assert outcome
        return replace(outcome, slowest_node_ns=max(map(int, each)))

    def _record_write(self, engine: Engine, job: FileOperation, outcome: Outcome) -> None:
        self.sink.moved(engine, "file_write_bw", "write", job.files, outcome, {})
        if outcome.slowest_node_ns and self.group.rank == 0:
            self.sink.moved(engine, "file_write_bw", "write", *of_all_nodes(job, outcome), {})

    def _random(self, engine: Engine, job: FileOperation, written: bool) -> None:
        if not {"random_read", "random_write"} <= engine.operations:
            self.sink.note(f"random was not measured by {engine.name}, which moves whole files only")
            return
        if not written:
            return
        part = replace(job, block_bytes=RANDOM_BLOCK, blocks_per_stream=self.request.random_blocks)
        target = replace(part, path=job.path.with_name(f"{job.path.name}x"))
        try:
            for path in job.paths():
                operate("let-go", self.request.limit_s, path=path)
            wanted = RANDOM_BLOCK * self.request.random_blocks * job.files.streams
            read, seen = self._reads.seen(engine, "random_read", part, wanted)
            # Random writes have a file of their own.
            self._posix.run("write", replace(target, block_bytes=job.block_bytes))
            write = engine.run("random_write", target)
        except OperationFailed as error:
            self.sink.note(f"random blocks by {engine.name} ({job.files.name}) were not measured: {error}")
            return
        state = {} if self.facts.place.kind == "memory" else judge_random(seen).extra(seen)
        self._record_random(
            engine, part, "read", replace(read, data_is_correct=read.data_is_correct is not False), state
        )
        checked = self._wrong_blocks(target, overwritten=True) == 0 if engine is self._posix else None
        self._record_random(engine, target, "write", replace(write, data_is_correct=checked), {})

    def _record_random(
        self, engine: Engine, job: FileOperation, op: str, outcome: Outcome, state: dict[str, Any]
    ) -> None:
        self.sink.latencies(engine, f"file_random_{op}_latency", op, job.files, outcome, state)

    def _verify(self, engine: Engine, job: FileOperation) -> None:
        wrong = self._wrong_blocks(job, overwritten=False)
        if wrong > 0:
            self.sink.note(
                f"{wrong} blocks of the files were not what was written ({engine.name}, {job.files.name}): "
                "did somebody change them?"
            )
        if job.files.nodes > 1:
            wrong = max(map(abs, map(int, self.group.all_gather(str(wrong)))))
        self.sink.settle(wrong == 0)

    def _wrong_blocks(self, job: FileOperation, overwritten: bool) -> int:
        words = job.program_arguments() | {"direct": False}
        try:
            return int(operate("verify", self.request.limit_s, **words, overwritten=overwritten)["wrong"])
        except OperationFailed as error:
            self.sink.note(f"the files could not be compared with what was written: {error}")
            return -1

    def _small_files(self, streams: int, one_folder: bool) -> None:
        self._number += 1
        name = f"m{self._number}r{self.group.rank}"
        self.group.barrier()
        try:
            answer = operate(
                "small",
                self.request.limit_s,
                path=self.folder.prefix(name),
                count=self.request.small_files,
                size=_SMALL,
                streams=streams,
                shared=one_folder,
                seed=self._seed(),
            )
        except OperationFailed as error:
            self.sink.note(f"metadata with {counted(streams, 'stream')} was not measured: {error}")
            with suppress(OperationFailed):
                self.folder.remove(name)
            return
        finally:
            self.group.barrier()
        shape = "one folder" if one_folder else "a folder for each stream"
        self.sink.rates(self._posix, streams, shape, self.request.small_files, answer)

    def _seed(self, rank: int | None = None) -> int:
        """A seed that depends on the run's token, so that no two runs, and no two files of a run, have the
        same data.
        """
        own = self.group.rank if rank is None else rank
        name = f"{self.folder.token}.{self._number}.{own}"
        return int.from_bytes(sha256(name.encode()).digest()[:8]) >> 1  # fio accepts 63 bits


def in_random_order(cases: Iterable[Case], token: str) -> list[Case]:
    """Shuffle the cases.

    Each run has a new order, so that no combination of factors always follows the same other one. All nodes
    have the same order.
    """
    shuffled = list(cases)
    Random(token).shuffle(shuffled)
    return shuffled


def streams_of(text: str) -> list[int]:
    """Read "1,4,all". "all" stands for the number of CPUs that this process may use. Raises ValueError."""
    cpus = len(os.sched_getaffinity(0))
    counts = []
    for part in text.split(","):
        word = part.strip()
        if word != "all" and not (word.isdecimal() and 1 <= int(word) <= MOST_STREAMS):
            raise ValueError(
                f"'{word}' is not a number of streams from 1 to {MOST_STREAMS}; write for example 1,4,all"
            )
        counts.append(cpus if word == "all" else int(word))
    return list(dict.fromkeys(counts))
