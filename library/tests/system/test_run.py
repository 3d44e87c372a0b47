"""`peerway run` and the team it starts, with real processes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest
from launching import LIMIT, Run, clean_environment, library_folder, peerway

SECRET = "00112233445566778899aabbccddeeff"


def wait_until(condition: object, description: str) -> None:
    assert callable(condition)
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {description}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


def by_hand(program: Path, rank: int, size: int, *commands: str, **more: str) -> subprocess.Popen[str]:
    """Start a rank like `peerway run`, but with variables that the test chooses."""
    variables = {"PEERWAY_RANK": str(rank), "PEERWAY_SIZE": str(size), "PEERWAY_SECRET": SECRET, **more}
    return subprocess.Popen(
        [program, *commands],
        env=clean_environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def fresh_address() -> str:
    return f"unix:@peerway-test-{os.urandom(8).hex()}"


# ---- the team ----


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_gather_and_barrier(team_program: Path, run: Run, ranks: int) -> None:
    commands = ["gather", "barrier", "repeat", "child", "again", "gather", "twice"]
    done = run(peerway("run", "-n", str(ranks), "--", str(team_program), *commands))
    assert done.returncode == 0, done.stderr
    assert sorted(set(done.stdout.splitlines())) == [f"gathered {rank} of {ranks}" for rank in range(ranks)]
    assert len(done.stdout.splitlines()) == 3 * ranks


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_every_other_rank_learns_of_a_kill(team_program: Path, run: Run, victim: int) -> None:
    program = [str(team_program), "gather", "die", str(victim), "expect", str(victim), "fails"]
    done = run(peerway("run", "-n", "3", "--grace", "300", "--", *program))
    assert done.returncode == 128 + signal.SIGKILL
    assert done.stdout.splitlines().count(f"rank {victim} is lost") == 2, done.stdout + done.stderr
    assert re.search(rf"barrier: rank {victim} (is|was) lost", done.stdout)
    assert f"rank {victim} (process " in done.stderr
    assert "was killed by signal 9 (SIGKILL)" in done.stderr


def test_a_child_that_holds_the_sockets_does_not_hide_a_death(team_program: Path, run: Run) -> None:
    for victim in ("0", "1"):
        program = [str(team_program), "gather", "fork", "die", victim, "expect", victim, "fails"]
        done = run(peerway("run", "-n", "3", "--grace", "300", "--", *program))
        assert done.stdout.splitlines().count(f"rank {victim} is lost") == 2, done.stdout + done.stderr


def test_two_jobs_at_once_do_not_meet(team_program: Path) -> None:
    command = peerway("run", "-n", "2", "--", str(team_program), *(["gather", "again"] * 20))
    jobs = [subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE) for _ in range(3)]
    for job in jobs:
        out, _ = job.communicate(timeout=LIMIT)
        assert job.returncode == 0
        assert len(out.splitlines()) == 40


def test_a_wrong_secret_is_refused(team_program: Path) -> None:
    address = fresh_address()
    variables = {"PEERWAY_RENDEZVOUS": address, "PEERWAY_TIMEOUT": "2"}
    first = by_hand(team_program, 0, 2, **variables)
    second = by_hand(team_program, 1, 2, **{**variables, "PEERWAY_SECRET": "f" * 32})
    errors = [rank.communicate(timeout=LIMIT)[1] for rank in (first, second)]
    assert (first.returncode, second.returncode) == (10 + 1, 10 + 11)  # timeout, denied
    assert "1 of 2 ranks did not join the team in time (rank 1)" in errors[0]
    assert f"the process at {address} does not know this job's secret" in errors[1]
    assert SECRET not in errors[0] + errors[1]


def test_counts_that_differ_are_told_to_both(team_program: Path) -> None:
    variables = {"PEERWAY_RENDEZVOUS": fresh_address()}
    both = [by_hand(team_program, 0, 2, **variables), by_hand(team_program, 1, 3, **variables)]
    for rank in both:
        assert (
            "rank 1 was started as one of 3 ranks and rank 0 as one of 2"
            in rank.communicate(timeout=LIMIT)[1]
        )
        assert rank.returncode == 10 + 3


def test_a_port_in_use_is_named(team_program: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp:127.0.0.1:{taken.getsockname()[1]}"
        rank = by_hand(team_program, 0, 2, PEERWAY_RENDEZVOUS=address)
        error = rank.communicate(timeout=LIMIT)[1]
    assert rank.returncode == 10 + 12
    assert f"rank 0 cannot listen at {address}" in error
    assert "Another process uses it" in error


def test_two_jobs_that_were_given_one_port_do_not_both_listen_there(team_program: Path) -> None:
    """Although rank 0 shares a port that `peerway run` holds for it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp:127.0.0.1:{free.getsockname()[1]}"
    both = [
        by_hand(team_program, 0, 2, PEERWAY_RENDEZVOUS=address, PEERWAY_TIMEOUT=timeout)
        for timeout in ("3", "3.1")
    ]
    errors = [rank.communicate(timeout=LIMIT)[1] for rank in both]
    assert sorted(rank.returncode for rank in both) == [10 + 1, 10 + 12], errors  # timeout, system
    assert f"rank 0 cannot listen at {address}" in errors[0] + errors[1]


def test_tcp_works_as_well(team_program: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp:127.0.0.1:{free.getsockname()[1]}"
    both = [by_hand(team_program, rank, 2, "gather", PEERWAY_RENDEZVOUS=address) for rank in (1, 0)]
    for rank in both:
        assert rank.communicate(timeout=LIMIT)[1] == ""
        assert rank.returncode == 0


def test_a_rank_that_is_missing_is_named(team_program: Path) -> None:
    rank = by_hand(team_program, 0, 3, PEERWAY_RENDEZVOUS=fresh_address(), PEERWAY_TIMEOUT="0.3")
    assert "2 of 3 ranks did not join the team in time (rank 1, 2)" in rank.communicate(timeout=LIMIT)[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_user_is_refused_even_with_the_secret(team_program: Path) -> None:
    address = fresh_address()
    variables = {"PEERWAY_RENDEZVOUS": address, "PEERWAY_TIMEOUT": "2"}
    first = by_hand(team_program, 0, 2, **variables)
    with tempfile.TemporaryDirectory(prefix="peerway-team-") as name:
        public = Path(name)  # the clone and pytest's folders may be closed to the other user
        public.chmod(0o755)
        for file in (team_program, library_folder() / "libpeerway.so"):
            shutil.copy(file, public)
        variables |= {"PEERWAY_RANK": "1", "PEERWAY_SIZE": "2", "PEERWAY_SECRET": SECRET}
        second = subprocess.Popen(
            [public / team_program.name],
            env=clean_environment(LD_LIBRARY_PATH=str(public), **variables),
            user=65534,
            group=65534,
            extra_groups=[],
            stderr=subprocess.PIPE,
            text=True,
        )
        error = second.communicate(timeout=LIMIT)[1]
    assert second.returncode == 10 + 11, error
    assert f"the process at {address} belongs to user 0, not to user 65534" in error
    assert "did not join" in first.communicate(timeout=LIMIT)[1]


def test_bad_settings_are_told(team_program: Path, run: Run) -> None:
    done = run([str(team_program)], env=clean_environment(PEERWAY_LOG="loud"))
    assert done.returncode == 10 + 15
    assert "PEERWAY_LOG is 'loud'; it must be one of" in done.stderr
    done = run([str(team_program)], env=clean_environment(PEERWAY_LGO="1"))
    assert done.returncode == 10 + 15
    assert "PEERWAY_LGO in the environment is not a setting; did you mean PEERWAY_LOG?" in done.stderr


# ---- the launcher ----


def test_what_a_rank_is_told(run: Run) -> None:
    script = (
        "import os, json, sys; told = {k: v for k, v in os.environ.items() if k.startswith('PEERWAY_')};"
        "sys.stdout.write(json.dumps(told) + '\\n')"  # in one write
    )
    done = run(peerway("run", "-n", "2", "--", "python3", "-c", script))
    environments = sorted(
        (json.loads(line) for line in done.stdout.splitlines()), key=lambda each: each["PEERWAY_RANK"]
    )
    assert [each["PEERWAY_RANK"] for each in environments] == ["0", "1"]
    assert [each["PEERWAY_LOCAL_RANK"] for each in environments] == ["0", "1"]
    assert (
        {each["PEERWAY_SIZE"] for each in environments}
        == {each["PEERWAY_LOCAL_SIZE"] for each in environments}
        == {"2"}
    )
    assert re.fullmatch("[0-9a-f]{32}", environments[0]["PEERWAY_SECRET"])
    assert environments[0]["PEERWAY_SECRET"] == environments[1]["PEERWAY_SECRET"]


def test_cores_are_divided_unless_told_not_to(run: Run) -> None:
    allowed = os.sched_getaffinity(0)
    script = "import os, sys; sys.stdout.write(f'{sorted(os.sched_getaffinity(0))}\\n')"
    ranks = min(2, len(allowed))
    done = run(peerway("run", "-n", str(ranks), "--", "python3", "-c", script))
    got = [set(json.loads(line)) for line in done.stdout.splitlines()]
    assert set().union(*got) == allowed
    assert sum(map(len, got)) == len(allowed)
    done = run(peerway("run", "-n", "2", "--bind", "none", "--", "python3", "-c", script))
    assert all(set(json.loads(line)) == allowed for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 7", 7), ("[ $PEERWAY_RANK = 0 ] || exit 3", 3), ("kill -SEGV $$", 139)],
)
def test_exit_code(run: Run, script: str, code: int) -> None:
    assert run(peerway("run", "-n", "2", "--grace", "0", "--", "sh", "-c", script)).returncode == code


def test_a_failure_ends_the_others_and_their_children(run: Run, tmp_path: Path) -> None:
    folder = shlex.quote(str(tmp_path))
    script = (
        "if [ $PEERWAY_RANK = 1 ]; then sleep 0.5; exit 5; fi; trap '' TERM; "
        f"sleep 600 & echo $! > {folder}/child; "
        f"setsid sh -c 'trap \"\" TERM; echo $$ > {folder}/daemon; sleep 601' & "
        f"echo $$ > {folder}/rank; wait; sleep 602"
    )
    done = run(peerway("run", "-n", "2", "--grace", "0.2", "--", "sh", "-c", script))
    assert done.returncode == 5
    assert re.fullmatch(
        r"peerway: rank 1 \(process \d+\) exited with status 5; "
        r"rank 0, still running, will be ended in 0\.\d s\n",
        done.stderr,
    )
    for name in ("child", "daemon", "rank"):
        assert not alive(int((tmp_path / name).read_text())), name


def test_what_an_orderly_rank_leaves_behind_is_ended(run: Run, tmp_path: Path) -> None:
    done = run(
        peerway(
            "run", "-n", "1", "--", "sh", "-c", f"sleep 600 & echo $! > {shlex.quote(str(tmp_path))}/child"
        )
    )
    assert done.returncode == 0
    assert not alive(int((tmp_path / "child").read_text()))


def test_the_launchers_own_death_is_that_of_the_ranks(tmp_path: Path) -> None:
    folder = shlex.quote(str(tmp_path))
    script = f"sleep 600 & echo $! > {folder}/child$PEERWAY_RANK; echo $$ > {folder}/rank$PEERWAY_RANK; wait"
    job = subprocess.Popen(peerway("run", "-n", "2", "--", "sh", "-c", script), env=clean_environment())
    files = [tmp_path / f"{name}{rank}" for name in ("child", "rank") for rank in (0, 1)]
    wait_until(lambda: all(file.exists() and file.read_text().strip() for file in files), "the ranks' start")
    job.kill()
    job.wait()
    pids = [int(file.read_text()) for file in files]
    wait_until(lambda: not any(alive(pid) for pid in pids), "the end of all that the ranks started")


def two_ready(script: str) -> subprocess.Popen[str]:
    """Two ranks of a shell script, once both have printed "ready"."""
    job = subprocess.Popen(
        peerway("run", "-n", "2", "--", "sh", "-c", script),
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert job.stdout is not None
    assert [job.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    return job


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]
)
def test_signals_reach_every_rank(number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 0' {name}; echo ready; while :; do sleep 0.05; done"
    job = two_ready(script)
    job.send_signal(number)
    assert job.communicate(timeout=LIMIT)[0] == f"got {name}\n" * 2
    assert job.returncode == 0


def test_asked_twice_ends_what_ignores_the_first() -> None:
    script = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done"
    job = two_ready(script)
    job.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert job.poll() is None
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=LIMIT)
    assert job.returncode == 128 + signal.SIGINT


# ---- output ----

PROGRAM = """
import os, sys, time
rank = int(os.environ["PEERWAY_RANK"])
def say(text, to=sys.stdout):
    os.write(to.fileno(), text.encode())
"""


def job_of(script: str, *options: str, count: int = 3, **settings: object) -> subprocess.Popen[str]:
    """A job of ranks of a Python program."""
    command = peerway("run", "-n", str(count), *options, "--", sys.executable, "-c", PROGRAM + script)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **settings}
    return subprocess.Popen(command, env=clean_environment(), **streams)  # type: ignore[call-overload, no-any-return]


def test_lines_of_ranks_never_mix_and_nothing_is_lost() -> None:
    # Lines come in pieces, from all ranks at once, and are more than pipes and the launcher hold.
    job = job_of("""
for i in range(3000):
    line = f"{rank}:{i}:" + chr(97 + rank) * (i % 700) + "\\n"
    say(line[: len(line) // 2]); say(line[len(line) // 2 :])
""")
    out, err = job.communicate(timeout=LIMIT)
    assert (job.returncode, err) == (0, "")
    lines = out.splitlines()
    for rank in range(3):
        expected = [f"{rank}:{i}:" + chr(97 + rank) * (i % 700) for i in range(3000)]
        assert [line for line in lines if line.startswith(f"{rank}:")] == expected
    assert len(lines) == 9000


def test_lines_appear_as_they_come_and_unfinished_ones_soon() -> None:
    job = job_of("""
say("first\\n"); sys.stdin.readline(); say("a question? "); sys.stdin.readline(); say("done\\n")
""", count=1, stdin=subprocess.PIPE)  # fmt: skip
    assert job.stdout is not None
    assert job.stdin is not None
    for shown in ("first\n", "a question? "):
        assert os.read(job.stdout.fileno(), 100).decode() == shown  # before it gets its input
        job.stdin.write("\n")
        job.stdin.flush()
    assert job.communicate(timeout=LIMIT)[0] == "done\n"


def test_what_a_rank_writes_to_both_streams_keeps_its_order() -> None:
    job = job_of("""
for i in range(500): say(f"{i}\\n", (sys.stdout, sys.stderr)[i % 2])
""", count=1, stderr=subprocess.STDOUT)  # fmt: skip
    assert job.communicate(timeout=LIMIT)[0].split() == [str(i) for i in range(500)]


def test_on_a_terminal_ranks_have_terminals() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 123, 0, 0))
    job = job_of("""print(sys.stdout.isatty(), os.get_terminal_size().columns)
time.sleep(0.1 * rank)
""", count=2, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)  # fmt: skip
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert job.wait(LIMIT) == 0
    assert shown.decode().split("\r\n") == ["True 123", "True 123", ""]


RAISES = """
def deep(n):
    if n == 0: raise ValueError("the same")
    deep(n - 1)
sys.stdin.close()
"""


@pytest.mark.parametrize("prefix", [[], ["--prefix"]])
def test_equal_tracebacks_are_shown_once_and_whole(prefix: list[str]) -> None:
    job = job_of(RAISES + "deep(3 if rank != 2 else 1)", *prefix, "--grace", "300", count=4)
    _, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 1
    at = err.rindex("peerway: rank")
    shown, summary = err[:at], err[at:]
    mark = r"\[(\d)\] " if prefix else "()"
    blocks = re.findall(
        rf"^{mark}Traceback .*\n(?:^(?:\[\d\] )?  .*\n)+^(?:\[\d\] )?ValueError: the same\n", shown, re.M
    )
    assert len(blocks) == 2, err
    assert shown.count("ValueError: the same") == 2
    others = re.findall(r"peerway: ranks? ([\d, -]+) wrote the same traceback as rank (\d)", shown)
    named = {int(number) for these, first in others for text in (these, first) for number in ranks_in(text)}
    assert named == {0, 1, 3}, err
    assert "exited with status 1" in summary
    first = re.search(r"rank (\d) \(process", summary)
    assert first is not None
    above = f"; the last lines of rank {first[1]} are above\n" in summary  # if the other traceback is not
    assert above or f"; the last lines of rank {first[1]}:\n" in summary
    assert err.count("ValueError: the same") == (2 if above else 3)


def ranks_in(text: str) -> list[int]:
    """The ranks that "0, 2-4" names."""
    spans = [part.split("-") for part in text.split(", ")]
    return [rank for span in spans for rank in range(int(span[0]), int(span[-1]) + 1)]


def test_the_rank_that_failed_first_is_reported_and_not_the_lowest(tmp_path: Path) -> None:
    # The launcher is stopped while the ranks fail, so it finds all of them ended at once.
    job = job_of(f"""
open("{tmp_path}/ready" + str(rank), "w").close()
while not os.path.exists(f"{tmp_path}/go{{rank}}"): time.sleep(0.01)
if rank == 1: os.kill(os.getpid(), 11)
print("the last of rank", rank, file=sys.stderr)
sys.exit(rank + 4)
""")
    wait_until(lambda: all((tmp_path / f"ready{rank}").exists() for rank in range(3)), "the ranks' start")
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    job.send_signal(signal.SIGSTOP)
    for rank in (2, 1, 0):
        before = sum(not alive(int(child)) for child in children)
        (tmp_path / f"go{rank}").touch()
        wait_until(lambda: sum(not alive(int(child)) for child in children) > before, "the rank's end")  # noqa: B023
    job.send_signal(signal.SIGCONT)
    _, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 6
    assert re.fullmatch(
        r"(?:the last of rank [20]\n){2}"
        r"peerway: rank 2 \(process \d+\) exited with status 6; "
        r"rank 1 \(process \d+\) was killed by signal 11 \(SIGSEGV\) after that; "
        r"rank 0 \(process \d+\) exited with status 4 after that; the last lines of rank 2:\n"
        r"  \[2\] the last of rank 2\n",
        err,
    )


def test_a_rank_that_fails_after_another_was_told_of_is_told_of_too(run: Run) -> None:
    """The launcher had said that the others still run, so it must report how they ended, too."""
    script = "[ $PEERWAY_RANK = 0 ] && exit 4; sleep 1; kill -SEGV $$"
    done = run(peerway("run", "-n", "2", "--", "sh", "-c", script))
    assert done.returncode == 4
    assert re.fullmatch(
        r"peerway: rank 0 \(process \d+\) exited with status 4; "
        r"rank 1, still running, will be ended in [34]\.\d s\n"
        r"peerway: rank 1 \(process \d+\) was killed by signal 11 \(SIGSEGV\) after that\n",
        done.stderr,
    )


def test_ranks_that_end_at_once_are_not_said_to_run_still(run: Run) -> None:
    """As ranks do that learn of a loss."""
    script = "[ $PEERWAY_RANK = 1 ] && exit 4; sleep 0.1; exit 0"
    done = run(peerway("run", "-n", "2", "--", "sh", "-c", script))
    assert done.returncode == 4
    assert re.fullmatch(r"peerway: rank 1 \(process \d+\) exited with status 4\n", done.stderr), done.stderr


def test_who_noticed_a_loss_is_not_the_one_that_failed(tmp_path: Path) -> None:
    job = job_of(f"""
if rank == 0:
    sys.exit("peerway: rank 1 was lost 0.1 s ago")
while not os.path.exists("{tmp_path}/go"): time.sleep(0.01)
sys.exit("wrong input")
""", "--grace", "300", count=2)  # fmt: skip
    wait_until(lambda: "rank 1 was lost" in (job.stderr.readline() if job.stderr else ""), "rank 0's end")
    time.sleep(0.3)
    (tmp_path / "go").touch()
    _, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 1
    assert re.search(
        r"peerway: rank 1 \(process \d+\) exited with status 1; rank 0 ended because of it", err
    ), err
    assert err.splitlines()[-1].endswith("; rank 0 ended because of it; the last lines of rank 1 are above")
    assert err.count("wrong input") == 1
    assert "peerway: rank 0" not in err


def test_an_exception_inside_a_context_is_reported_though_the_other_rank_ends_first() -> None:
    """The context leaves the team normally before the exception is printed, and the other rank notices
    that.
    """
    job = job_of("""
import peerway
try:
    with peerway.Context() as ctx:
        signal = ctx.signal()
        ctx.team.barrier()
        if rank == 1: raise ValueError("wrong input")
        signal.wait(1, 300)
finally:
    if rank == 1: time.sleep(1)
""", "--grace", "300", count=2)  # fmt: skip
    _, err = job.communicate(timeout=LIMIT)
    assert re.search(
        r"peerway: rank 1 \(process \d+\) exited with status 1; rank 0 ended because of it", err
    ), err
    assert err.count("ValueError: wrong input") == 1
    assert err.splitlines()[-2] == "ValueError: wrong input"


@pytest.mark.parametrize("options", [[], ["--tracebacks"]])
def test_an_interrupt_ends_with_one_line(options: list[str]) -> None:
    job = job_of("""
try: say("ready\\n"); time.sleep(600)
finally: say("saved\\n", sys.stderr)
""", "--grace", "300", *options)  # fmt: skip
    assert job.stdout is not None
    assert [job.stdout.readline() for _ in range(3)] == ["ready\n"] * 3
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 130
    assert err.count("saved\n") == 3
    lines = err.replace("saved\n", "").splitlines()
    if options:
        assert "KeyboardInterrupt" in lines
        assert lines[-1] == "peerway: interrupted by SIGINT"
    else:
        assert lines == [
            "peerway: interrupted by SIGINT; ranks 0-2 left tracebacks, which --tracebacks shows"
        ]


def test_after_an_interrupt_other_errors_are_shown() -> None:
    job = job_of("""
try: say("ready\\n"); time.sleep(600)
finally:
    if rank == 1: raise OSError("the checkpoint cannot be written")
""", "--grace", "300")  # fmt: skip
    assert job.stdout is not None
    assert [job.stdout.readline() for _ in range(3)] == ["ready\n"] * 3
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 130
    assert "OSError: the checkpoint cannot be written\n" in err
    assert err.count("Traceback") == 2  # of that rank: the interrupt, and the error during it


def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        job = job_of("say('x\\n'); time.sleep(0.1)", stdout=full)
        _, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 1
    assert "peerway: standard output cannot be written: No space left on device" in err


def test_a_slow_reader_does_not_keep_signals_from_the_ranks() -> None:
    job = job_of("""
import signal
def ended(*_): open(2, "w", closefd=False).write(f"got it\\n"); os._exit(0)
signal.signal(signal.SIGUSR1, ended)
say("ready\\n", sys.stderr)
while True: say("x" * 1000 + "\\n")
""")
    assert job.stderr is not None
    assert [job.stderr.readline() for _ in range(3)] == ["ready\n"] * 3
    time.sleep(0.5)  # all buffers are full
    job.send_signal(signal.SIGUSR1)
    assert [job.stderr.readline() for _ in range(3)] == ["got it\n"] * 3
    out, _ = job.communicate(timeout=LIMIT)
    assert set(out.splitlines()[:-1]) == {"x" * 1000}
    assert job.returncode == 0


def test_prefix_keeps_streams_apart_and_lines_whole(run: Run) -> None:
    script = (
        "for i in 1 2 3; do printf a; sleep 0.02; printf b$i; echo; done; echo err >&2; printf '\\377end'"
    )
    # Python gets bytes that are not UTF-8 as surrogates.
    done = run(peerway("run", "-n", "3", "--prefix", "--", "sh", "-c", script), errors="surrogateescape")
    lines = done.stdout.splitlines()
    for rank in range(3):
        mine = [line for line in lines if line.startswith(f"[{rank}] ")]
        assert mine == [f"[{rank}] {text}" for text in ("ab1", "ab2", "ab3", "\udcffend")]
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err", "[2] err"]


def test_standard_input_is_rank_0s(run: Run) -> None:
    done = run(peerway("run", "-n", "2", "--prefix", "--", "cat"), input="hello\n")
    assert done.stdout == "[0] hello\n"


def test_a_terminals_input_reaches_rank_0() -> None:
    ours, theirs = pty.openpty()
    job = subprocess.Popen(
        peerway(
            "run", "-n", "2", "--", "sh", "-c", "[ $PEERWAY_RANK = 1 ] || { read line; echo got $line; }"
        ),
        env=clean_environment(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    os.write(ours, b"typed\n")
    assert job.communicate(timeout=LIMIT)[0] == "got typed\n"
    assert job.returncode == 0
    os.close(ours)


def test_a_reader_that_goes_away_hangs_nothing(run: Run) -> None:
    command = shlex.join(peerway("run", "-n", "2", "--prefix", "--", "yes"))
    done = run(["sh", "-c", f"{command} | head -n 2"])
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-n", "0", "--", "true"], 2, "0 is not in the range"),
        (["-n", "x", "--", "true"], 2, "'x' is not a valid integer"),
        (["--", "true"], 2, "Missing option '-n'"),
        (["-n", "1"], 2, "Missing argument 'PROGRAM'"),
        (["-n", "1", "--", "no-such-program"], 127, "no-such-program was not found in PATH"),
        (["-n", "1", "--", "./no-such-program"], 127, "./no-such-program does not exist"),
        (["-n", "1", "--", "/tmp"], 126, "/tmp is a folder, not a program"),
        (
            ["-n", "1", "--", "./plain.py"],
            126,
            "./plain.py is not executable; start it as: python ./plain.py",
        ),
        (["-n", "1", "--", "./broken"], 126, "./broken cannot be run: Exec format error"),
    ],
)
def test_bad_use_is_told(run: Run, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    (tmp_path / "plain.py").write_text("")
    (tmp_path / "broken").write_bytes(b"\x7fELFnonsense")
    (tmp_path / "broken").chmod(0o755)
    done = run(peerway("run", *arguments), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_arguments_are_passed_as_they_are(run: Run) -> None:
    done = run(peerway("run", "-n", "1", "--", "printf", "%s|", "-n", "--prefix", "a b", "--", ""))
    assert done.stdout == "-n|--prefix|a b|--||"
