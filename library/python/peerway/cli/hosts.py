"""The options of verbs that start ranks on several hosts."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from peerway.launch import hosts
from peerway.launch.places import Place, assign, read_host
from peerway.launch.rendezvous import NoRendezvous
from peerway_common import atomic_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

_MOST_BYTES = 1 << 20  # the most bytes of a file of hosts


@dataclass(frozen=True)
class Hosts:
    """The hosts that the user named, and the agent that reaches them. Empty: only this host, without an
    agent.
    """

    named: tuple[hosts.Host, ...] = ()
    agent: tuple[str, ...] = ()

    def places(self, ranks: int, bind: str, held: ExitStack) -> list[Place]:
        """Where each rank runs. If they run on several hosts, rank 0's port is held until `held` closes.
        Raises ClickException.
        """
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        try:
            if self.named:
                of_ranks = hosts.spread(self.named, ranks)
                addresses = held.enter_context(hosts.rendezvous_of(of_ranks, self.agent))
                return hosts.places(of_ranks, self.agent, bind, visible, addresses)
        except (hosts.BadHosts, NoRendezvous) as error:
            raise click.ClickException(str(error)) from None
        result = assign(ranks, read_host(visible=visible))
        return [Place()] * ranks if bind == "none" else result

    def pair(self) -> Hosts:
        """Two hosts with one rank each, for tune; or this host if none was named. Raises UsageError for one
        host or three.
        """
        names = list(dict.fromkeys(host.name for host in self.named))
        if len(names) not in (0, 2):
            raise click.UsageError(
                f"tune measures between two hosts, not {len(names)}: {', '.join(names)}; "
                "name two with --hosts"
            )
        return Hosts(tuple(hosts.Host(name, 1) for name in names), self.agent)

    def names(self) -> str:
        """All hosts, as records name them."""
        return ",".join(dict.fromkeys(host.name for host in self.named))

    def words(self) -> list[str]:
        """The options that name the same hosts again."""
        if not self.named:
            return []
        listed = ",".join(
            (f"[{host.name}]" if ":" in host.name else host.name) + (f":{host.slots}" if host.slots else "")
            for host in self.named
        )
        agent = ["--launch-agent", shlex.join(self.agent)] if self.agent else []
        return ["--hosts", listed, *agent]


def hosts_options(body: Callable[..., Any]) -> Callable[..., Any]:
    """Add --hosts, --hostfile and --launch-agent, as one parameter `hosts`."""

    def command(*arguments: Any, host_list: str, hostfile: Path | None, agent: str, **rest: Any) -> Any:
        return body(*arguments, hosts=_hosts_of_options(host_list, hostfile, agent), **rest)

    command.__doc__ = body.__doc__
    command.__click_params__ = getattr(body, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option(
            "--launch-agent", "agent", default="", metavar="COMMAND",
            help="Command that runs a command line on a host, called like ssh  [default: ssh; srun in Slurm]",
        ),
        click.option(
            "--hostfile", type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The same from a file, one host a line: node1 slots=2",
        ),
        click.option(
            "--hosts", "host_list", default="", metavar="LIST",
            help="node1:2,node2:2: hosts and their ranks  [default: a Slurm allocation's, or this]",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def _of_file(file: Path) -> list[hosts.Host]:
    text = atomic_file.text(file, _MOST_BYTES)
    try:
        return hosts.parse_file(text)
    except hosts.BadHosts as error:
        raise click.UsageError(f"{file}: {error}") from None


def _hosts_of_options(listed: str, file: Path | None, agent: str) -> Hosts:
    if listed and file:
        raise click.UsageError("--hosts and --hostfile say the same; give one of them")
    try:
        words = tuple(shlex.split(agent))
        named = _of_file(file) if file else hosts.parse(listed)
        if not (listed or file) and (nodes := hosts.of_slurm(os.environ, hosts.slurm_names)):
            return Hosts(tuple(nodes), words or hosts.SRUN)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if file and not named:
        raise click.UsageError(f"{file} names no host")
    if listed and not named:
        raise click.UsageError(f"--hosts '{listed}' names no host; write node1,node2 or node1:2,node2:2")
    if agent and not named:
        raise click.UsageError("--launch-agent reaches hosts; name them with --hosts")
    return Hosts(tuple(named), words)
