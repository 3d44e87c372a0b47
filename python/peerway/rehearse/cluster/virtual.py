"""The virtual cluster as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from peerway.rehearse.cluster import accounting, configuration, gpus, servers
from peerway.rehearse.cluster.description import Description
from peerway.rehearse.cluster.spaces import Space, connect, die_with_parent, join, limit

HERE = Path(__file__).parent
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo", "squeue", "scancel")
PACKAGES = "munge slurmctld slurmd slurm-client"
CGROUP_ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "cpuacct", "freezer", "devices")
FIRST_UID = 7001
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_not(description: Description | None = None) -> str:
    """Why the cluster cannot start here; empty when it can."""
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons in namespaces"
    wanted, packages = list(PROGRAMS), PACKAGES
    if description is not None and description.accounting:
        wanted += accounting.PROGRAMS
        packages += f" {accounting.PACKAGES}"
    if description is not None and description.file_systems:
        wanted += servers.PROGRAMS
        packages += f" {servers.PACKAGES}"
    if missing := [name for name in wanted if shutil.which(name, path=_PATH) is None]:
        return f"{', '.join(missing)} not installed (apt-get install {packages})"
    command = [
        "unshare",
        "--net",
        "--uts",
        "--mount",
        "--pid",
        "--fork",
        "mount",
        "-t",
        "sysfs",
        "sysfs",
        "/sys",
    ]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no namespaces of our own here: {tried.stderr.strip()}" if tried.returncode else ""


def has_cgroups() -> bool:
    """Whether jobs can be put into cgroups of version 1, with limits of memory."""
    return all((CGROUP_ROOT / each / "cgroup.procs").exists() for each in CONTROLLERS)


class VirtualCluster:
    """Use it in a with statement. Everything lies under `folder`, which is removed at the end.

    With a `root`, hosts live in that tree instead of this machine's, `folder` lies in it under its own name,
    and is neither made nor removed here: what was there at the last end is there at the next start.
    """

    def __init__(
        self, description: Description, folder: Path | None = None, root: Path | None = None
    ) -> None:
        self.description = description
        self.cgroups = has_cgroups()
        self.users = {name: FIRST_UID + place for place, name in enumerate(description.users)}
        self.root = root
        self.folder = folder or Path(tempfile.mkdtemp(prefix="peerway-cluster-"))
        self.folder.chmod(0o755)
        self.spaces: dict[str, Space] = {}
        self.hooks: dict[str, Path] = {}  # Prolog, Epilog: scripts for slurm.conf, to be set before the start
        self._cgroup = f"peerway-{os.getpid()}"
        self._nodes = list(description.types())
        self._places = description.hosts()
        self._addresses = configuration.addresses(description)
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
        """Bring everything up, until all nodes are idle."""
        _remove_old_cgroups()
        if not (self.folder / "slurm.conf").exists():
            self._write_files()
        for stale in (
            "munge.socket",
            *(f"nodes/{name}/ready" for name in (configuration.HEAD, *self._places)),
        ):
            (self.folder / stale).unlink(missing_ok=True)
        hosts = [configuration.HEAD, *self._places]
        self.spaces = {name: self._space(name) for name in hosts}
        self._wait("spaces", lambda: all((self.folder / "nodes" / name / "ready").exists() for name in hosts))
        head = self.spaces[configuration.HEAD]
        connect(
            head,
            {name: self.spaces[name] for name in self._places},
            configuration.HEAD_ADDRESS,
            self._addresses,
        )
        for name in self._places:
            limit(self.spaces[name], self.description.fabric)
        self._start_file_systems()
        files = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "log/munge.pid"}
        files |= {"log-file": "log/munged.log", "seed-file": "log/munge.seed"}
        options = (f"--{name}={self.folder / file}" for name, file in files.items())
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
        for program in self._running:  # nsenter; what it ran has ended with its space
            program.kill()
            program.wait()
        self.spaces, self._running = {}, []
        _remove_cgroups(self._cgroup)
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
            "PATH": _PATH,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "LC_ALL": "C.UTF-8",
            **environment,
        }
        who: list[str] = []
        if user is not None:
            uid = str(self.users[user])
            setting |= {"USER": user, "HOME": str(self.home(user))}
            who = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        words = [f"{name}={value}" for name, value in setting.items()]
        return self.spaces[host].enter(*who, "env", "-i", *words, *command)

    def run(
        self, *command: str, host: str = configuration.HEAD, user: str | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end and give the output; a hang is ended after a minute."""
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
        """Start something on a host; what still runs at the end is killed with it."""
        with log.open("ab") as out:
            program = subprocess.Popen(
                self.command(host, *command, user=user, **environment), stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, cwd=self._cwd(user), preexec_fn=die_with_parent,
            )  # fmt: skip
        self._running.append(program)
        return program

    @staticmethod
    def kill(program: subprocess.Popen[bytes]) -> None:
        """Kill -9 what `popen` started: nsenter, and what it runs in the space."""
        inside = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        for pid in (*map(int, inside), program.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.wait()

    def sbatch(self, user: str, *options: str, script: str) -> int:
        """Submit a script as a user and give the job's number; its output is job-N.out in the user's home."""
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
        """What squeue says of a job; empty for one that it no longer knows."""
        done = self.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T")
        return done.stdout.strip()

    def output(self, user: str, job: int) -> str:
        """What the job wrote until now."""
        path = self.home(user) / f"job-{job}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def home(self, user: str) -> Path:
        return self.folder / "home" / user

    def gpu_folder(self, node: str) -> Path:
        """What fake_nvml and gpu_program.py read for this node."""
        return self.folder / "gpus" / node

    def kill_node(self, name: str) -> None:
        """The node loses power: all in it ends at once."""
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
            self._addresses[name],
        )
        limit(self.spaces[name], self.description.fabric)
        for system in self.description.file_systems:
            self._must(name, f"{'serve' if name == system.host else 'mount'}-{system.name}")
        if name in self._nodes:
            self._daemon(name, "slurmd", "-D", "-N", name)

    # within

    def _answering(self) -> bool:
        """Whether all nodes take jobs, or would but for an administrator who drained them earlier."""
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

    def _open_interpreter(self) -> None:
        """Users of the copy run this Python, which may lie in the home of root: in the copy, only there, they
        may pass through its folders.
        """
        for folder in Path(os.path.realpath(sys.executable)).parents if self.root else ():
            inside = self.root / folder.relative_to("/")  # type: ignore[operator]
            inside.chmod(inside.stat().st_mode | 0o111)

    def _write_file_systems(self) -> None:
        """Into the root, which is the copy's own: without one there is no place for them."""
        if self.description.file_systems and self.root is None:
            raise RuntimeError("file systems need a copy with a root of its own: `peerway rehearse start`")
        for system in self.description.file_systems:
            assert self.root is not None
            folder = servers.brick(system, self.folder)
            folder.mkdir(parents=True)
            folder.chmod(0o1777)
            (self.root / system.name).mkdir(exist_ok=True)
            for place, text in servers.texts(system, self.folder, self._addresses[system.host]).items():
                path = self.root / place.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                path.chmod(0o755 if "sbin" in place else 0o644)

    def _cwd(self, user: str | None) -> Path:
        return self.folder if user is None else self.home(user)

    def _write_files(self) -> None:
        for name in ("state", "spool", "log", "nodes", "home"):
            (self.folder / name).mkdir()
        (self.folder / "log").chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        accounts = {"passwd": "{0}:x:{1}:{1}::{2}:/bin/bash\n", "group": "{0}:x:{1}:\n"}
        for file, line in accounts.items():
            added = "".join(line.format(name, uid, self.home(name)) for name, uid in self.users.items())
            (self.folder / file).write_text(Path("/etc", file).read_text() + added)
        for name, uid in self.users.items():
            self.home(name).mkdir()
            os.chown(self.home(name), uid, uid)
        text = configuration.slurm_conf(self.description, self.folder, self.cgroups)
        text += "".join(f"{name}={path}\n" for name, path in self.hooks.items())
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "gres.conf").write_text(configuration.gres_conf(self.description, self.folder))
        if self.cgroups:
            (self.folder / "cgroup.conf").write_text(configuration.CGROUP)
        gpus.prepare(self.description, self.folder)
        self._write_file_systems()
        self._open_interpreter()
        if self.description.accounting:
            accounting.prepare(self.folder)

    def _space(self, name: str) -> Space:
        setting = {
            "NAME": name, "FOLDER": str(self.folder), "CGROUP": self._cgroup, "TREE": str(HERE.parents[3]),
            "ROOT": str(self.root or ""),
            "CGROUPS": " ".join(CONTROLLERS) if self.cgroups and name != configuration.HEAD else "",
        }  # fmt: skip
        lines = [f"export {key}='{value}'" for key, value in setting.items()]
        script = "\n".join([*lines, (HERE / "node.sh").read_text()])
        return Space(name, script, self.folder / "log" / f"{name}.space")

    def _daemon(self, host: str, *command: str, environment: dict[str, str] | None = None) -> None:
        log = self.folder / "log" / f"{Path(command[0]).name}-{host}.out"
        self.popen(host, *command, log=log, **(environment or {}))

    def _wait(self, what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                logs = [
                    f"{path.name}: {path.read_text(errors='replace')[-600:]}"
                    for path in (self.folder / "log").iterdir()
                ]
                raise RuntimeError(f"{what} of the virtual cluster does not come up:\n" + "\n".join(logs))
            time.sleep(0.05)


def _remove_old_cgroups() -> None:
    """What clusters left whose process was killed."""
    for path in (CGROUP_ROOT / CONTROLLERS[0]).glob("peerway-*"):
        number = path.name.removeprefix("peerway-")
        if number.isdigit() and not Path("/proc", number).exists():
            _remove_cgroups(path.name)


def _remove_cgroups(name: str) -> None:
    for controller in CONTROLLERS:
        top = CGROUP_ROOT / controller / name
        if not top.is_dir():
            continue
        folders = sorted(
            (path for path in top.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts)
        )
        for folder in [*folders, top]:
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:  # its last processes are still on their way out
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.02)
