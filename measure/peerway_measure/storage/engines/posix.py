"""Peerway's own loop in C++ (measure/storage_engine): io_uring, otherwise pread and pwrite."""

from __future__ import annotations

from peerway_measure.storage.engines.base import FileOperation, Outcome
from peerway_measure.storage.operation import OperationFailed, operate, program


class Posix:
    """The program peerway-storage."""

    name = "posix"
    memory = "host"
    operations = frozenset(("write", "read", "random_write", "random_read"))
    takes_direct = True

    def missing(self) -> str:
        """What to install; "" if nothing is missing."""
        try:
            program()
        except OperationFailed as error:
            return str(error)
        return ""

    def run(self, operation: str, job: FileOperation) -> Outcome:
        """Carry out the job. Raises OperationFailed."""
        words = job.program_arguments()
        if operation.startswith("random"):
            answer = operate(
                "random", job.limit_s, **words, write=operation == "random_write", count=job.blocks_per_stream
            )
        else:
            answer = operate(operation, job.limit_s, job.wait_for_nodes, **words)
        return Outcome(
            answer["ns"],
            answer["cpu_us"],
            answer["user_us"],
            answer["fetched"],
            answer.get("right"),
            tuple(answer.get("times", ())),
            extra={"io": answer["io"]},
        )
