"""Runs a job of a few seconds to check the whole chain: Slurm, prolog, agent, figures, epilog and server."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from peerway_common.printable import one_line
from peerway_jobs.agent.checks import Diagnosis
from peerway_jobs.agent.settings import BadSettings, Settings, read_token
from peerway_jobs.batch import Batch, Interval
from peerway_jobs.batch_check import decode
from peerway_jobs.frames import BadFrame, read_frames
from peerway_jobs.slurm_json import SlurmFailed, ran, why_failed
from peerway_jobs.untrusted import BadBatch

_DEADLINE_S = 120
_SUBMIT = (
    "run it as a user who may submit jobs to this node (SLURM_CONF, munge, account, partition); `node` in "
    "the agent's settings is its name in Slurm"
)


def run(settings: Settings) -> Diagnosis:
    """Submit a job to this node and look in the agent's spool for its interval and its step's figures."""
    if shutil.which("sbatch") is None:
        return Diagnosis(
            "self-test", "absent", "there is no sbatch here", "run it where Slurm's commands are"
        )
    seconds = max(2.0, 4 * settings.interval_s)
    try:
        job = _submitted(settings.node, seconds)
    except SlurmFailed as error:
        return Diagnosis("self-test", "broken", str(error), _SUBMIT)
    seen: dict[str, Interval] = {}
    figures = 0
    known: set[tuple[str, int]] = set()
    deadline = time.monotonic() + seconds + _DEADLINE_S
    while time.monotonic() < deadline:
        for batch in _spooled(Path(settings.state) / "spool"):
            if (batch.stream, batch.seq) in known:
                continue
            known.add((batch.stream, batch.seq))
            seen |= {each.id: each for each in batch.intervals if each.job == job}
            slots = {str(each.slot) for each in seen.values() if each.step is not None}
            figures += len(slots & set(batch.samples["step"].devices)) if "step" in batch.samples else 0
        whole = [each for each in seen.values() if each.step is None]
        if whole and whole[0].end_ms is not None:
            return _judge(settings, job, whole[0], figures)
        time.sleep(min(1.0, settings.interval_s))
    subprocess.run(["scancel", str(job)], capture_output=True, check=False)
    if not seen:
        return Diagnosis(
            "self-test", "broken", f"job {job} is not in the agent's spool",
            "see that the agent runs, that the job could start here, and that the prolog is installed",
        )  # fmt: skip
    return Diagnosis("self-test", "broken", f"job {job} has no end", "see that the epilog is installed")


def _submitted(node: str, seconds: float) -> int:
    """Submit a job that sleeps on the node; returns its number. Raises SlurmFailed."""
    words = ("-J", "peerway-self-test", "-w", node, "-n1", "-t2", "-o", "/dev/null")
    done = ran("sbatch", "--parsable", *words, "--wrap", f"exec sleep {seconds:g}")
    if done.returncode:
        raise SlurmFailed(why_failed(done))
    output = done.stdout.decode(errors="replace")
    try:
        return int(output.split(";")[0])
    except ValueError:
        raise SlurmFailed(
            f"sbatch --parsable gave no number of a job: {one_line('sbatch', output)}"
        ) from None


def _judge(settings: Settings, job: int, interval: Interval, figures: int) -> Diagnosis:
    if interval.source != "prolog":
        return Diagnosis(
            "self-test",
            "warning",
            f"job {job} was found by its processes, not by the prolog",
            "install the prolog",
        )
    if not figures:
        return Diagnosis("self-test", "broken", f"job {job} has no figures", "see the agent's messages")
    evidence = f"job {job}: prolog, epilog, and figures of {figures} rounds"
    if not settings.server:
        return Diagnosis("self-test", "ok", f"{evidence}; no server is set")
    return _at_server(settings, job, evidence)


def _at_server(settings: Settings, job: int, evidence: str) -> Diagnosis:
    """Ask the server for the job, with the node's token: it answers if it has the node's batch."""
    import click

    from peerway_jobs.asking import of_node

    why = "it does not know the job"
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        try:
            token = read_token(Path(settings.token_file))
            if of_node(settings.server, str(job), token, settings.ca_file) is not None:
                return Diagnosis("self-test", "ok", f"{evidence}; the server has it")
        except click.ClickException as error:
            why = error.message
        except BadSettings as error:
            why = str(error)
        time.sleep(min(1.0, settings.interval_s))
    advice = "see the agent's messages, and those of the server"
    return Diagnosis("self-test", "broken", f"{evidence}, but the server has nothing of it: {why}", advice)


def _spooled(folder: Path) -> list[Batch]:
    """The batches of the spool's two newest files; the newest file exists even if all of it was sent."""
    batches: list[Batch] = []
    for path in sorted(folder.glob("*.frames"))[-2:]:
        try:
            batches += [decode(payload) for _, payload in read_frames(path.read_bytes())]
        except (OSError, BadFrame, BadBatch):  # it is being written, or was just removed
            continue
    return batches
