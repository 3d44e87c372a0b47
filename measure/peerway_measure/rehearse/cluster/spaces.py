"""A space: the network, UTS, PID and mount namespaces in which one virtual host lives.

The first process of a space gets a signal when its parent dies. So all processes of the space die with the
process that made it, in whatever way that ends. The namespaces and their network interfaces go with the last
process.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from peerway_measure.rehearse.cluster.needs import environment

if TYPE_CHECKING:
    from peerway_measure.rehearse.cluster.description import Fabric

_PR_SET_PDEATHSIG = 1
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """A preexec_fn: the process is killed when the thread that forked it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Space:
    """The namespaces of one virtual host. A script prepares its mounts and then waits as its process 1."""

    def __init__(self, name: str, script: str, log: Path) -> None:
        self.name = name
        self._log = log
        command = [
            "unshare",
            "--net",
            "--uts",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "bash",
            "-c",
            script,
        ]
        with log.open("ab") as out:
            self._unshare = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=die_with_parent,
                start_new_session=True, env=environment(),
            )  # fmt: skip
        try:
            self.pid = self._first()
        except BaseException:  # no caller knows the space yet, so it is ended here
            self._unshare.kill()
            self._unshare.wait()
            raise

    def _first(self) -> int:
        """The id, outside, of process 1 of the space."""
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self._unshare.poll() is None:
            pids = children.read_text().split()
            # unshare executes the script only after it has made the namespaces, so wait until it has.
            if pids and Path(f"/proc/{pids[0]}/comm").read_text().strip() == "bash":
                return int(pids[0])
            time.sleep(0.01)
        raise RuntimeError(
            f"the space {self.name} does not start: {self._log.read_text(errors='replace')[-500:]}"
        )

    def enter(self, *command: str) -> list[str]:
        """The command line that runs `command` in this space."""
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-n", "-p", "--", *command]

    @property
    def alive(self) -> bool:
        return self._unshare.poll() is None

    def kill(self) -> None:
        """End everything in it at once, as a loss of power would."""
        self._unshare.kill()
        self._unshare.wait()
        # The kernel ends process 1 asynchronously. Its mounts and cgroups are free only after that.
        deadline = time.monotonic() + 10
        while Path(f"/proc/{self.pid}/stat").exists() and time.monotonic() < deadline:
            if Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.01)


def in_network(space: Space) -> ThreadPoolExecutor:
    """While the block runs, sockets that this thread makes are in the network namespace."""
    return ThreadPoolExecutor(1, initializer=enter_network, initargs=(space,))


def enter_network(space: Space) -> None:
    """From now on, sockets that this thread makes are in the network namespace."""
    with Path(f"/proc/{space.pid}/ns/net").open() as network:
        if _libc.setns(network.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network of {space.name}")


def connect(head: Space, nodes: dict[str, Space], head_address: str, addresses: dict[str, str]) -> None:
    """Make a bridge in the head's namespaces, and an eth0 in each node's."""
    lines = [
        "link add bridge0 type bridge",
        f"addr add {head_address}/16 dev bridge0",
        "link set bridge0 up",
        "link set lo up",
    ]
    for place, node in enumerate(nodes.values()):
        lines += [
            f"link add port{place} type veth peer name eth0 netns {node.pid}",
            f"link set port{place} master bridge0 up",
        ]
    _ip(head, lines, pid_space=False)
    for name, node in nodes.items():
        _ip(node, [f"addr add {addresses[name]}/16 dev eth0", "link set eth0 up", "link set lo up"])


def join(head: Space, place: int, node: Space, address: str) -> None:
    """Connect a node that was started again."""
    lines = [
        f"link add port{place} type veth peer name eth0 netns {node.pid}",
        f"link set port{place} master bridge0 up",
    ]
    deadline = time.monotonic() + 10
    while True:  # the old interface disappears a moment after the old space
        try:
            _ip(head, lines, pid_space=False)
            break
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    _ip(node, [f"addr add {address}/16 dev eth0", "link set eth0 up", "link set lo up"])


def limit(space: Space, fabric: Fabric) -> None:
    """Limit the bandwidth and latency at which a host sends to those of the fabric."""
    words = []
    if fabric.bandwidth:
        words.append(f"root handle 1: tbf rate {fabric.bandwidth} burst 256kb latency 50ms")
    if fabric.latency_us:
        parent = "parent 1:1 handle 2:" if fabric.bandwidth else "root"
        words.append(f"{parent} netem delay {fabric.latency_us}us")
    for each in words:
        command = space.enter("tc", "qdisc", "add", "dev", "eth0", *each.split())
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
        if done.returncode:
            why = "; this kernel has no netem, leave latency_us out" if "netem" in each else ""
            raise RuntimeError(f"tc in {space.name}: {each}: {done.stderr.strip()}{why}")


def _ip(space: Space, lines: list[str], *, pid_space: bool = True) -> None:
    """Run lines of ip in the space's network. Without `pid_space`, process ids are those of the caller."""
    enter = space.enter() if pid_space else ["nsenter", "-t", str(space.pid), "-n", "--"]
    done = subprocess.run(
        [*enter, "ip", "-batch", "-"], input="\n".join(lines), text=True, capture_output=True, check=False,
        env=environment(),
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"ip in {space.name}: {done.stderr.strip()}")
