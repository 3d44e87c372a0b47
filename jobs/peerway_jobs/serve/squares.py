"""Squares for many nodes as HTML. Thousands are drawn every 10 s, for which a template is too slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import quote

from markupsafe import Markup, escape

from peerway_common.printable import printable
from peerway_jobs.serve.tiles import Node, use_of
from peerway_jobs.store.cluster import NODE_STATES


def squares(
    nodes: Iterable[Node], t: Callable[[str], str], percent: Callable[[float], str], address: str = ""
) -> Markup:
    """A square for each node. `address` is that of a page with one node, without its name; without it the
    squares lead nowhere. `t` and `percent` are those of the page.
    """
    states = {state: (state.replace(" ", "-"), t(f"one {state}")) for state in NODE_STATES}
    cores, measured, nothing = t("cores").lower(), t("measured").lower(), t("no_agent")
    prefix = escape(f"{address}&text=")
    drawn = []
    for node in nodes:
        name, (style, state), use = node["name"], states[node["state"]], use_of(node)
        label = f"{printable(name)}: {state}, {cores} {node['cores_busy']:.0f}/{node['cores']:.0f}"
        if node["gpus"]:
            label += f", GPU {node['gpus_busy']}/{node['gpus']}"
        label += f", {nothing}" if use is None else f", {measured} {percent(use)}"
        link = f' href="{prefix}{quote(name, safe="")}" tabindex="-1"' if address else ""
        fill = "" if use is None else f' style="--use:{use * 100:.0f}%"'
        own = "" if use is None else " own"
        drawn.append(f'<a class="square n-{style}{own}"{link} title="{escape(label)}"{fill}></a>')
    return Markup("".join(drawn))
