"""Goes through the cases of a request on one node, in step with the other nodes, and gives an outcome to
`results` for each.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from peerway.storage import place as places
from peerway.storage.engines import ENGINES
from peerway.storage.engines.base import Engine, Job, Outcome
from peerway.storage.facts import Facts
from peerway.storage.folder import RunFolder
from peerway.storage.operation import OperationFailed, finished, operate
from peerway.storage.request import RANDOM_BLOCK, Files, Request
from peerway.storage.results import Sink
from peerway.storage.states import STATES, Evidence, State, judge, test_of

if TYPE_CHECKING:
    from peerway.storage.turns import Turns

_SMALL = 1024  # bytes of a small file
Step = Callable[[str, int, int], None]


class Measurement:
    """One run on one node."""

    def __init__(self, request: Request, facts: Facts, folder: RunFolder, turns: Turns, sink: Sink) -> None:
        self.request, self.facts, self.folder, self.turns, self.sink = request, facts, folder, turns, sink
        self._number = 0
        self._posix = ENGINES["posix"]

    def run(self, step: Step) -> None:
        """Everything that was asked for."""
        engines = [ENGINES[name] for name in self.request.engines]
        cases = [(engine, files) for engine in engines for files in self.request.files()]
        small = (
            [(n, one) for n in self.request.streams for one in (True, False)]
            if "metadata" in self.request.tests
            else []
        )
        total = len(cases) + len(small)
        for done, (engine, files) in enumerate(cases):
            step(f"{engine.name} {files.name}", done, total)
            self._files(engine, files)
        for done, (streams, one_folder) in enumerate(small, start=len(cases)):
            step(f"metadata, {streams} streams", done, total)
            self._small(streams, one_folder)
        step("", total, total)

    def _files(self, engine: Engine, files: Files) -> None:
        """Write files, read them in each state, and the random blocks; then remove them."""
        self._number += 1
        if files.direct and self.facts.place.kind == "memory":
            self.sink.note(f"direct was not measured: {self.facts.place.file_system} has its files in memory")
            return
        name = f"w{self._number}r{self.turns.rank}"
        job = Job(self.folder.prefix(name), files, self._seed(), self.request.limit_s, files.block)
        try:
            written = self._write(engine, job)
            self.turns.wait()
            if "read" in files.tests:
                self._read_states(engine, job, written)
            if "random" in files.tests:
                self._random(engine, job, written)
            if written:
                self._verify(engine, job, overwritten=False)
        finally:
            with suppress(OperationFailed):  # it is tried again at the end
                self.folder.remove(name)
            self.turns.wait()

    def _write(self, engine: Engine, job: Job) -> bool:
        """Write the files that will be read. Only `posix` writes what can be checked; of another engine only
        the time is taken.
        """
        own = engine is self._posix
        self.turns.wait()
        try:
            if not own and "write" in job.files.tests and "write" in engine.can:
                other = replace(job, path=job.path.with_name(f"{job.path.name}e"))
                self._record_write(engine, job, engine.run("write", other))
                self.folder.remove(other.path.name.partition(".")[2])
            outcome = self._posix.run("write", job)
        except OperationFailed as error:
            self.sink.note(f"write by {engine.name} ({job.files.name}) was not measured: {error}")
            return False
        if own and "write" in job.files.tests:
            self.sink.later(lambda right: self._record_write(engine, job, replace(outcome, right=right)))
        return True

    def _record_write(self, engine: Engine, job: Job, outcome: Outcome) -> None:
        kind = "shared" if job.files.shared else "sequential"
        self.sink.moved(
            engine, "file_write_bw", "write", job.files, job.files.shape(kind, job.block), outcome, {}
        )

    def _read_states(self, engine: Engine, job: Job, written: bool) -> None:
        for state in STATES:
            wanted = state in self.request.states
            neighbours_too = state == "warm_elsewhere" and self.turns.size > 1
            if not wanted or (state == "warm_elsewhere" and not neighbours_too):
                continue
            if why := self._impossible(state, job.files):
                self.sink.note(f"{state} was not measured: {why}")
                continue
            problem = "" if written else "its files were not written"
            if not problem:
                problem = self._prepare(state, job)
            if neighbours_too:
                problem = self._neighbour_reads(job, problem)
            problem = problem or self._read(engine, job, state)
            if problem and written:
                self.sink.note(
                    f"read {state} by {engine.name} ({job.files.name}) was not measured: {problem}"
                )
            self.turns.wait()

    def _impossible(self, state: State, files: Files) -> str:
        if state != "warm_here" and self.facts.place.kind == "memory":
            return f"the files of {self.facts.place.file_system} are its page cache"
        if state == "warm_here" and files.direct:
            return "O_DIRECT passes the page cache by"
        if state == "after_drop" and not self.request.drop_server:
            return (
                "no command was given that drops the server's cache (--drop-server)"
                if self._explicit(state)
                else " "
            )
        return ""

    def _explicit(self, state: State) -> bool:
        return len(self.request.states) < len(STATES) and state in self.request.states

    def _prepare(self, state: State, job: Job) -> str:
        """Make the state, as far as a user can. What went wrong, if anything did."""
        try:
            if state == "warm_here":
                return "" if "cold" in self.request.states and not job.files.direct else self._plain_read(job)
            for path in self._paths(job):
                operate("let-go", self.request.limit_s, path=path)
            if state == "after_drop":
                status, _, err = finished(
                    shlex.split(self.request.drop_server), self.request.limit_s, "--drop-server"
                )
                if status:
                    return f"--drop-server ended with status {status}: {err.strip()[-200:]}"
        except (OperationFailed, OSError, ValueError) as error:
            return str(error)
        return ""

    def _plain_read(self, job: Job) -> str:
        self._posix.run("read", replace(job, files=replace(job.files, mode="buffered")))
        return ""

    def _neighbour_reads(self, job: Job, problem: str) -> str:
        """Each node reads the files of the next one, so that the servers have them and this node does not."""
        self.turns.wait()
        following = (self.turns.rank + 1) % self.turns.size
        theirs = replace(
            job, path=self.folder.prefix(f"w{self._number}r{following}"), seed=self._seed(following)
        )
        try:
            if not problem:
                self._plain_read(theirs)
        except OperationFailed as error:
            problem = f"another node could not read the files before: {error}"
        return self.turns.worst(problem)

    def _read(self, engine: Engine, job: Job, state: State) -> str:
        try:
            share, by = self._resident(job)
            before = places.counter(self.facts.place)
            outcome = engine.run("read", job)
            after = places.counter(self.facts.place)
        except OperationFailed as error:
            return str(error)
        fetched, counter = outcome.fetched, "the process's own count"
        if before and after:
            fetched, counter = after.fetched - before.fetched, after.name
        elif self.facts.place.kind != "local":
            fetched = None
        seen = Evidence(job.files.size * job.files.streams, share, by, fetched, counter)
        judged = judge(state, seen)
        if not judged.proved:
            self.sink.note(f"{state} was not proved: {judged.why}")
        kind = "shared" if job.files.shared else "sequential"
        shape = job.files.shape(kind, job.block).replace(" fsync", "")

        def record(right: bool) -> None:
            checked = replace(outcome, right=right and outcome.right is not False)
            self.sink.moved(
                engine, test_of(judged.state), "read", job.files, shape, checked, judged.extra(seen)
            )

        self.sink.later(record)
        return ""

    def _resident(self, job: Job) -> tuple[float | None, str]:
        """The share of all files of this node that is in its page cache."""
        try:
            found = [operate("residency", self.request.limit_s, path=path) for path in self._paths(job)]
        except OperationFailed:
            return None, ""
        return sum(f["resident"] for f in found) / max(1, sum(f["size"] for f in found)), found[0]["by"]

    def _random(self, engine: Engine, job: Job, written: bool) -> None:
        if not {"random_read", "random_write"} <= engine.can or not written:
            return
        part = replace(job, block=RANDOM_BLOCK, count=self.request.random_blocks)
        target = replace(part, path=job.path.with_name(f"{job.path.name}x"))
        try:
            for path in self._paths(job):
                operate("let-go", self.request.limit_s, path=path)
            read = engine.run("random_read", part)
            self._posix.run(
                "write", replace(target, block=job.block)
            )  # what is overwritten is a file of its own
            write = engine.run("random_write", target)
        except OperationFailed as error:
            self.sink.note(f"random blocks by {engine.name} ({job.files.name}) were not measured: {error}")
            return
        self._record_random(engine, part, "read", replace(read, right=read.right is not False))
        checked = self._wrong(target, overwritten=True) == 0 if engine is self._posix else None
        self._record_random(engine, target, "write", replace(write, right=checked))

    def _record_random(self, engine: Engine, job: Job, op: str, outcome: Outcome) -> None:
        shape = job.files.shape("random", RANDOM_BLOCK)
        shape = shape.replace(" fsync", "") if op == "read" else shape
        self.sink.latencies(engine, f"file_random_{op}_latency", op, job.files, shape, outcome)

    def _verify(self, engine: Engine, job: Job, overwritten: bool) -> None:
        wrong = self._wrong(job, overwritten)
        if wrong > 0:
            self.sink.note(
                f"{wrong} blocks of the files were not what was written ({engine.name}, {job.files.name}): "
                "did somebody change them?"
            )
        self.sink.settle(wrong == 0)

    def _wrong(self, job: Job, overwritten: bool) -> int:
        words = job.words() | {"direct": False}
        try:
            return int(operate("verify", self.request.limit_s, **words, overwritten=overwritten)["wrong"])
        except OperationFailed as error:
            self.sink.note(f"the files could not be compared with what was written: {error}")
            return -1

    def _small(self, streams: int, one_folder: bool) -> None:
        self._number += 1
        name = f"m{self._number}r{self.turns.rank}"
        self.turns.wait()
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
            self.sink.note(f"metadata with {streams} streams was not measured: {error}")
            with suppress(OperationFailed):
                self.folder.remove(name)
            return
        finally:
            self.turns.wait()
        shape = "one folder" if one_folder else "a folder for each stream"
        self.sink.rates(self._posix, streams, shape, self.request.small_files, answer)

    def _paths(self, job: Job) -> list[str]:
        return [f"{job.path}.{number}" for number in range(1 if job.files.shared else job.files.streams)]

    def _seed(self, rank: int | None = None) -> int:
        """Of the token, so that no two runs write the same data."""
        own = self.turns.rank if rank is None else rank
        return (int(self.folder.token, 16) << 12) ^ (self._number << 6 & 0xFFF) ^ own


def streams_of(text: str) -> list[int]:
    """Read "1,4,all": all is the CPUs that this process may use. Raises ValueError."""
    cpus = len(os.sched_getaffinity(0))
    found = []
    for part in text.split(","):
        word = part.strip()
        if word != "all" and not (word.isdecimal() and 1 <= int(word) <= 4096):
            raise ValueError(f"'{word}' is not a number of streams; write such as 1,4,all")
        found.append(cpus if word == "all" else int(word))
    return list(dict.fromkeys(found))
