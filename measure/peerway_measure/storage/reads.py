"""Reads files in each state of the caches: makes the state as far as a user can, finds out what the caches
held, and reads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peerway_common.printable import one_line
from peerway_measure.storage import place as places
from peerway_measure.storage.engines import ENGINES
from peerway_measure.storage.engines.base import Engine, FileOperation, Outcome
from peerway_measure.storage.facts import Facts
from peerway_measure.storage.operation import OperationFailed, finished, operate
from peerway_measure.storage.request import Files, Request
from peerway_measure.storage.results import Sink
from peerway_measure.storage.states import STATES, UNKNOWN, Evidence, Judgement, State, judge, test_of

if TYPE_CHECKING:
    from peerway_measure.storage.node_group import NodeGroup

_UNWANTED = "not asked"


def in_step(job: FileOperation, group: NodeGroup) -> FileOperation:
    """The job, changed to start at the same time on all nodes that share a file."""
    return replace(job, wait_for_nodes=group.barrier) if job.files.nodes > 1 else job


def of_all_nodes(job: FileOperation, outcome: Outcome) -> tuple[Files, Outcome]:
    """Combine the outcomes of the nodes that share a file: the whole file, with the streams of all nodes."""
    files = replace(job.files, streams=job.files.streams * job.files.nodes)
    return files, replace(outcome, elapsed_ns=outcome.slowest_node_ns, cpu_us=0)


def judged_together(own: Judgement, of_nodes: list[str]) -> Judgement:
    """The state of a whole file whose parts several nodes read. `of_nodes` has "TIME STATE PROVED" of
    each node.
    """
    states = {text.split()[1] for text in of_nodes}
    proved = sum(int(text.split()[2]) for text in of_nodes)
    why = own.why if proved == len(of_nodes) else f"{proved} of {len(of_nodes)} nodes proved their part"
    return Judgement(own.wanted, states.pop() if len(states) == 1 else UNKNOWN, proved == len(of_nodes), why)


class Reads:
    """The reads of one node, in step with the other nodes."""

    def __init__(self, request: Request, facts: Facts, group: NodeGroup, sink: Sink) -> None:
        self.request, self.facts, self.group, self.sink = request, facts, group, sink
        self._posix = ENGINES["posix"]

    def all(self, engine: Engine, job: FileOperation, neighbour: FileOperation, written: bool) -> None:
        """Read in each requested state. `neighbour` has written the files that this node reads for another
        one.
        """
        for state in STATES:
            if state not in self.request.states:
                continue
            if why := self._impossible(state, job.files) or self._lacking(state):
                if why != _UNWANTED:
                    self.sink.note(f"{state} was not measured: {why}")
                continue
            neighbours_too = state == "warm_elsewhere"
            problem = "" if written else "its files were not written"
            if not problem:
                problem = self._prepare(state, job)
            if neighbours_too:
                problem = self._neighbour_reads(neighbour, problem)
            if state == "after_drop":
                problem = self._drop_server(problem)
            if job.files.nodes > 1:  # no node begins before all are prepared
                problem = self.group.first_problem(problem)
            problem = problem or self._read(engine, job, state)
            if problem and written:
                self.sink.note(
                    f"read {state} by {engine.name} ({job.files.name}) was not measured: {problem}"
                )
            self.group.barrier()

    def _impossible(self, state: State, files: Files) -> str:
        if state != "warm_here" and self.facts.place.kind == "memory":
            return f"the files of {self.facts.place.file_system} are its page cache"
        if state == "warm_here" and files.direct:
            return "O_DIRECT passes the page cache by"
        return ""

    def _lacking(self, state: State) -> str:
        """What is missing for a state, such as --drop-server; "" if nothing is, or if all states were
        requested.
        """
        why = ""
        if state == "after_drop" and not self.request.drop_server:
            why = "no command was given that drops the server's cache (--drop-server)"
        if state == "warm_elsewhere" and self.group.size == 1:
            why = "it needs another node, which reads the files before (--hosts)"
        return _UNWANTED if why and len(self.request.states) == len(STATES) else why

    def _prepare(self, state: State, job: FileOperation) -> str:
        """Make the state, as far as a user can. Returns what went wrong, "" if nothing did."""
        try:
            if state == "warm_here":  # a cold read leaves this state, unless it bypassed this node's cache
                return "" if self._resident(job)[0] == 1 else self._plain_read(job)
            for path in job.paths():
                operate("let-go", self.request.limit_s, path=path)
        except (OperationFailed, OSError, ValueError) as error:
            return str(error)
        return ""

    def _drop_server(self, problem: str) -> str:
        """Drop the server's cache once for all nodes. No node reads meanwhile, because that would fill the
        cache again.
        """
        problem = self.group.first_problem(problem)
        if not problem and self.group.rank == 0:
            try:
                # In a shell, because `echo 3 | sudo tee ...` without one would only print, and succeed.
                command = ["sh", "-c", self.request.drop_server]
                status, _, err = finished(command, self.request.limit_s, "--drop-server", starts_others=True)
                if status:
                    says = one_line("sh", err) or "it printed nothing"
                    problem = f"--drop-server ended with status {status}: {says}"
            except (OperationFailed, OSError, ValueError) as error:
                problem = str(error)
        return self.group.first_problem(problem)

    def _plain_read(self, job: FileOperation) -> str:
        self._posix.run("read", replace(job, files=replace(job.files, mode="buffered")))
        return ""

    def _neighbour_reads(self, theirs: FileOperation, problem: str) -> str:
        """Each node reads the files of the next one. Afterwards the servers have them cached and the node
        itself has not.
        """
        self.group.barrier()
        try:
            if not problem:
                self._plain_read(theirs)
        except OperationFailed as error:
            problem = f"another node could not read the files before: {error}"
        return self.group.first_problem(problem)

    def seen(
        self, engine: Engine, operation: str, job: FileOperation, wanted: int
    ) -> tuple[Outcome, Evidence]:
        """Read, and report what the cache held before and how many bytes were fetched. Raises
        OperationFailed.
        """
        share, by = self._resident(job)
        before = places.counter(self.facts.place)
        outcome = engine.run(operation, in_step(job, self.group))
        after = places.counter(self.facts.place)
        fetched, counter = outcome.bytes_below_cache, "the process's own count"
        if before and after:
            fetched, counter = after.fetched - before.fetched, after.name
        elif self.facts.place.kind != "local":
            fetched = None
        return outcome, Evidence(wanted, share, by, fetched, counter)

    def _read(self, engine: Engine, job: FileOperation, state: State) -> str:
        try:
            outcome, seen = self.seen(engine, "read", job, job.files.size * job.files.streams)
            judged = judge(state, seen)
            summary = f"{outcome.elapsed_ns} {judged.state} {int(judged.proved)}"
        except OperationFailed as error:
            summary, problem = "", str(error)
        each = self.group.all_gather(summary) if job.files.nodes > 1 else [summary]
        if not all(each):
            return problem if not summary else "another node could not read its part"
        if not judged.proved:
            self.sink.note(f"{state} was not proved: {judged.why}")

        def record(right: bool) -> None:
            checked = replace(outcome, data_is_correct=right and outcome.data_is_correct is not False)
            self.sink.moved(engine, test_of(judged.state), "read", job.files, checked, judged.extra(seen))
            if job.files.nodes > 1 and self.group.rank == 0:
                of_all = judged_together(judged, each)
                whole = replace(checked, slowest_node_ns=max(int(summary.split()[0]) for summary in each))
                self.sink.moved(
                    engine, test_of(of_all.state), "read", *of_all_nodes(job, whole), of_all.extra()
                )

        self.sink.later(record)
        return ""

    def _resident(self, job: FileOperation) -> tuple[float | None, str]:
        """The share of this node's files that is in its page cache."""
        try:
            answers = [
                operate("residency", self.request.limit_s, path=p, **job.byte_range()) for p in job.paths()
            ]
        except OperationFailed:
            return None, ""
        return sum(f["resident"] for f in answers) / max(1, sum(f["size"] for f in answers)), answers[0]["by"]
