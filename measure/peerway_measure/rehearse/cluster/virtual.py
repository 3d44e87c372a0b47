"""The complete virtual cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from peerway_measure.rehearse.cluster import accounting, cgroups, configuration, files
from peerway_measure.rehearse.cluster.description import Description
from peerway_measure.rehearse.cluster.ending import check_ended
from peerway_measure.rehearse.cluster.needs import PATH, check_folder
from peerway_measure.rehearse.cluster.spaces import Space, connect, die_with_parent, join, limit

HERE = Path(__file__).parent
FIRST_UID = 7001


class VirtualCluster:
    """A cluster; use it in a `with` statement.

    All its files lie under `folder`, which is removed at the end. With a `root`, hosts live in that tree
    instead of this machine's. `folder` then lies in it under its own name, and is neither made nor removed
    here, so that it has the same content at the next start.
    """

    def __init__(
        self, description: Description, folder: Path | None = None, root: Path | None = None
    ) -> None:
        check_folder(folder or Path(tempfile.gettempdir()))
        self.description = description
        self.cgroups = cgroups.has_all()
        self.users = {name: FIRST_UID + place for place, name in enumerate(description.users)}
        self.root = root
        self.folder = folder or Path(tempfile.mkdtemp(prefix="peerway-cluster-"))
        self.folder.chmod(0o755)
        self.spaces: dict[str, Space] = {}
        self.hooks: dict[str, Path] = {}  # Prolog, Epilog -> script; set before the start
        self._cgroup = f"peerway-{os.getpid()}"
        self._nodes = list(description.types())
        self._places = description.hosts()
        self.addresses = configuration.addresses(description)
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> VirtualCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # starting and stopping

    def start(self) -> None:
        """Start everything, and wait until all nodes are idle."""
        cgroups.remove_old()
        if not (self.folder / "slurm.conf").exists():
            files.write(self._contents())
        for stale in (
            "munge.socket",
            *(f"nodes/{name}/ready" for name in (configuration.HEAD, *self._places)),
        ):
            (self.folder / stale).unlink(missing_ok=True)
        hosts = [configuration.HEAD, *self._places]
        for name in hosts:  # one after the other, so that an end meanwhile knows those that exist
            self.spaces[name] = self._space(name)
        self._wait("spaces", lambda: all((self.folder / "nodes" / name / "ready").exists() for name in hosts))
        head = self.spaces[configuration.HEAD]
        connect(
            head,
            {name: self.spaces[name] for name in self._places},
            configuration.HEAD_ADDRESS,
            self.addresses,
        )
        for name in self._places:
            limit(self.spaces[name], self.description.fabric)
        self._start_file_systems()
        munge = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "log/munge.pid"}
        munge |= {"log-file": "log/munged.log", "seed-file": "log/munge.seed"}
        options = (f"--{name}={self.folder / file}" for name, file in munge.items())
        self._daemon(configuration.HEAD, "munged", "--foreground", "--force", *options)
        self._wait("munged", (self.folder / "munge.socket").exists)
        if self.description.accounting:
            accounting.start(
                self.folder,
                lambda *command, environment=None: self._daemon(
                    configuration.HEAD, *command, environment=environment
                ),
                self.run,
            )
        self._daemon(configuration.HEAD, "slurmctld", "-D")
        for name in self._nodes:
            self._daemon(name, "slurmd", "-D", "-N", name)
        self._wait("slurmctld", self._answering)
        if self.description.accounting:
            accounting.add_users(self.description.users, self.run)

    def shut_down_slurm(self) -> None:
        """Let Slurm's controller save its state and end, if it answers."""
        done = self.run("timeout", "5", "scontrol", "shutdown", "slurmctld")
        pid = self.folder / "log" / "slurmctld.pid"
        deadline = time.monotonic() + 10
        while done.returncode == 0 and pid.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def stop(self) -> None:
        """End everything and remove the folder; safe to call twice."""
        for space in self.spaces.values():
            space.kill()
        for program in self._running:  # nsenter, whose command has ended with its space
            program.kill()
            program.wait()
        self.spaces, self._running = {}, []
        cgroups.remove(self._cgroup)
        if self.root is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    # using it

    def idle(self) -> list[str]:
        """The nodes that could take a job now, sorted."""
        done = self.run("timeout", "5", "sinfo", "-h", "-N", "-t", "idle", "-o", "%N")
        return sorted(set(done.stdout.split()))

    def command(self, host: str, *command: str, user: str | None = None, **environment: str) -> list[str]:
        """The command line that runs `command` on a host (a node, or "head"), as a user or as root."""
        setting = {
            "PATH": PATH,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "LC_ALL": "C.UTF-8",
            **environment,
        }
        identity: list[str] = []
        if user is not None:
            uid = str(self.users[user])
            setting |= {"USER": user, "HOME": str(self.home(user))}
            identity = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        words = [f"{name}={value}" for name, value in setting.items()]
        return self.spaces[host].enter(*identity, "env", "-i", *words, *command)

    def run(
        self, *command: str, host: str = configuration.HEAD, user: str | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end and return its output. A hang is ended after a minute."""
        settings: dict[str, Any] = {
            "capture_output": True,
            "text": True,
            "timeout": 60,
            "cwd": self._cwd(user),
            **options,
        }
        return subprocess.run(self.command(host, *command, user=user), check=False, **settings)

    def popen(
        self, host: str, *command: str, log: Path, user: str | None = None, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a command on a host. If it still runs at the end, it is killed with the host."""
        with log.open("ab") as out:
            program = subprocess.Popen(
                self.command(host, *command, user=user, **environment), stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, cwd=self._cwd(user), preexec_fn=die_with_parent,
            )  # fmt: skip
        self._running.append(program)
        return program

    @staticmethod
    def kill(program: subprocess.Popen[bytes]) -> None:
        """Kill -9 a program of `popen`: nsenter, and its command in the space."""
        inside = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        for pid in (*map(int, inside), program.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.wait()

    def sbatch(self, user: str, *options: str, script: str) -> int:
        """Submit a script as a user and return the job's number. The job's output is job-N.out in the user's
        home.
        """
        done = self.run(
            "sbatch",
            "--parsable",
            "-o",
            f"{self.home(user)}/job-%j.out",
            *options,
            user=user,
            input=f"#!/bin/bash\n{script}\n",
        )
        if done.returncode != 0:
            raise RuntimeError(f"sbatch {' '.join(options)}: {done.stderr.strip()}")
        return int(str(done.stdout).split(";")[0])

    def state(self, job: int) -> str:
        """The state of a job from squeue; "" for a job that it no longer knows."""
        done = self.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T")
        return done.stdout.strip()

    def output(self, user: str, job: int) -> str:
        """The output of the job so far."""
        path = self.home(user) / f"job-{job}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def home(self, user: str) -> Path:
        return files.home(self.folder, user)

    def gpu_folder(self, node: str) -> Path:
        """The folder that fake_nvml and gpu_program.py read for this node."""
        return self.folder / "gpus" / node

    def kill_node(self, name: str) -> None:
        """End everything on the node at once, as a loss of power would."""
        self.spaces[name].kill()

    def boot_node(self, name: str) -> None:
        """Start a killed node again."""
        (self.folder / "nodes" / name / "ready").unlink(missing_ok=True)
        self.spaces[name] = self._space(name)
        self._wait(name, (self.folder / "nodes" / name / "ready").exists)
        join(
            self.spaces[configuration.HEAD],
            self._places.index(name),
            self.spaces[name],
            self.addresses[name],
        )
        limit(self.spaces[name], self.description.fabric)
        for system in self.description.file_systems:
            self._must(name, f"{'serve' if name == system.host else 'mount'}-{system.name}")
        if name in self._nodes:
            self._daemon(name, "slurmd", "-D", "-N", name)

    # within

    def _contents(self) -> files.Contents:
        return files.Contents(
            self.description, self.folder, self.root, self.users, self.addresses, self.hooks, self.cgroups
        )

    def _answering(self) -> bool:
        """Whether all nodes take jobs, except those that an administrator drained earlier."""
        done = self.run("timeout", "5", "sinfo", "-h", "-N", "-o", "%N %T")
        states = dict(line.split() for line in done.stdout.splitlines())
        up = {name for name, state in states.items() if state in ("idle", "mixed", "drained", "allocated")}
        return up == set(self._nodes)

    def _start_file_systems(self) -> None:
        for system in self.description.file_systems:
            self._must(system.host, f"serve-{system.name}")
            for name in (configuration.HEAD, *self._nodes):
                self._must(name, f"mount-{system.name}")

    def _must(self, host: str, script: str) -> None:
        done = self.run(script, host=host)
        if done.returncode:
            raise RuntimeError(f"{script} on {host}: {(done.stderr or done.stdout).strip()[-600:]}")

    def _cwd(self, user: str | None) -> Path:
        return self.folder if user is None else self.home(user)

    def _space(self, name: str) -> Space:
        setting = {
            "NAME": name, "FOLDER": str(self.folder), "CGROUP": self._cgroup, "TREE": str(HERE.parents[3]),
            "ROOT": str(self.root or ""),
            "CGROUPS": " ".join(cgroups.CONTROLLERS) if self.cgroups and name != configuration.HEAD else "",
        }  # fmt: skip
        lines = [f"export {key}='{value}'" for key, value in setting.items()]
        script = "\n".join([*lines, (HERE / "node.sh").read_text()])
        return Space(name, script, self.folder / "log" / f"{name}.space")

    def _daemon(self, host: str, *command: str, environment: dict[str, str] | None = None) -> None:
        log = self.folder / "log" / f"{Path(command[0]).name}-{host}.out"
        self.popen(host, *command, log=log, **(environment or {}))

    def _wait(self, service: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            check_ended()
            if time.monotonic() > deadline:
                logs = [
                    f"{path.name}: {path.read_text(errors='replace')[-600:]}"
                    for path in (self.folder / "log").iterdir()
                ]
                raise RuntimeError(f"{service} of the virtual cluster does not come up:\n" + "\n".join(logs))
            time.sleep(0.05)
