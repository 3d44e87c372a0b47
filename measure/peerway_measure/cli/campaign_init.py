"""`peerway campaign init`: write a campaign.toml to edit."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common import disk_space
from peerway_common.terminal import say
from peerway_measure.campaign import plan_file
from peerway_measure.cli.campaign_pass import run_of

if TYPE_CHECKING:
    from peerway_measure.campaign.slurm import NodeType

_BEGINNING = """# A campaign of `peerway campaign run {folder}`; docs/measure/campaigns.md has all keys.
name = {name}
repeats = 25
seed = {seed}

[nodes]
{nodes}
[launch]
by = "{by}"

[limits]
nodes_at_once = 1
time = "15m"

[[tests]]
name = "storage"
command = "peerway storage /a/folder/to/measure write read --size 1G --streams 1 --out -"
"""
# Tests for node types with GPUs, each with the number of GPUs that it needs.
_GPU_TESTS = (
    (1, """
[[tests]]
name = "gpudirect"
command = "peerway bench put_bw --gpudirect --device cuda --out -"
"""),
    (2, """
[[tests]]
name = "p2p"
command = "peerway bench put_bw --device cuda --paths staged,peer/copy,peer/store --out -"
"""),
    (1, """
[[tests]]
name = "gds"
command = "peerway storage /a/folder/to/measure write read --engine gds --size 1G --streams 1 --out -"
"""),
)  # fmt: skip


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--nodes",
    default="",
    metavar="LIST",
    help="The nodes, such as node[01-16], or v100=node[01-16] with their type; separate several by "
    "spaces. They are reached by ssh, not by Slurm jobs.  [default: all nodes of Slurm, by its jobs; without "
    "sinfo: this host]",
)
def init(folder: Path, nodes: str) -> None:
    """Make FOLDER with a campaign.toml to edit. Node types come from Slurm's partitions and features, unless
    --nodes names the nodes. Node types that have GPUs in Slurm (GRES) get tests of GPUs.
    """
    from peerway_measure.campaign.slurm import node_types
    from peerway_measure.campaign.starters import Unusable

    path = folder / plan_file.NAME
    if path.exists():
        raise click.ClickException(f"{path} exists; edit it, or name another folder")
    by = "slurm" if not nodes and shutil.which("sinfo") else "hosts"
    try:
        kinds = node_types() if by == "slurm" else _named(nodes)
    except (OSError, Unusable) as error:
        raise click.ClickException(
            f"cannot get the nodes from Slurm: {error}; name them with --nodes"
        ) from None
    if not kinds:
        raise click.ClickException("Slurm has no nodes here (sinfo lists none); name them with --nodes")
    listed = "".join(f"{json.dumps(kind.name)} = {json.dumps(kind.nodes)}\n" for kind in kinds)
    text = _BEGINNING.format(
        folder=folder, name=json.dumps(folder.absolute().name), seed=int(time.time()), nodes=listed, by=by
    )
    for least, proposed in _GPU_TESTS:
        if types := [kind.name for kind in kinds if kind.gpus >= least]:
            text += f"{proposed}types = {json.dumps(types)}\n"
    if nodes:  # names from Slurm can be corrected in the file, names of --nodes on the command line
        try:
            plan_file.parse(text, "--nodes")
        except plan_file.BadPlan as error:
            raise click.UsageError(str(error).partition(": ")[2]) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        with suppress(OSError):  # on a full disk an empty file may be left
            path.unlink(missing_ok=True)
        raise click.ClickException(
            f"cannot make {path}: {disk_space.why(path, error)}; name another folder"
        ) from None
    if nodes and shutil.which("sinfo"):
        say(
            "its measurements begin by ssh, beside what Slurm runs on these nodes; for jobs of Slurm write "
            'by = "slurm" under [launch]'
        )
    say(f"{path}: edit its tests, then run {run_of(folder)}")


def _named(nodes: str) -> list[NodeType]:
    """The node types of a list such as "v100=node[01-16] extra". All nodes without a type form one type."""
    from peerway_measure.campaign.slurm import NodeType

    kinds: dict[str, NodeType] = {}
    for word in nodes.split() or ["localhost"]:
        name, equals, pattern = word.rpartition("=")
        if "=" in name or (equals and not (name and pattern)):
            raise click.UsageError(
                f"--nodes has {word!r}; write for example v100=node[01-16], and separate several types by "
                "spaces"
            )
        kinds.setdefault(name or "all", NodeType(name or "all", [])).nodes.append(pattern)
    return [*kinds.values()]
