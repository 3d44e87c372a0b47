"""Lower bounds of times, from the NIC's numbers alone; each simulation is compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

HOP_US, MESSAGE_US, LINK = 0.129, 0.850, 75e3 / 8  # us, us, bytes per us


def extents_text(machine: str) -> str:
    """The torus's own grid, or the number of a fat tree's children at each level."""
    return machine.split(":")[1].split("/")[0]


def extents(text: str) -> list[int]:
    """The extents in a text: "4x4x2" -> [4, 4, 2]."""
    return [int(extent) for extent in text.split("x")]


def nodes(machine: str) -> int:
    """The number of nodes."""
    return prod(extents(extents_text(machine)))


def diameter(machine: str) -> int:
    """The hops between the two most distant nodes."""
    own = extents(extents_text(machine))
    return sum(extent // 2 for extent in own) if machine.startswith("torus") else 2 * len(own)


def links_of_node(machine: str) -> int:
    """The number of links over which a node can send at once.

    In a dimension of two nodes, one link connects both sides.
    """
    if machine.startswith("torus"):
        return sum(min(2, extent - 1) for extent in extents(extents_text(machine)))
    return extents(machine.split("/")[1])[0]


def message_us(hops: float, size: int) -> float:
    """The time (us) of a message with no other traffic, which the simulator must give exactly."""
    return MESSAGE_US + (hops - 1) * HOP_US + max(size, 8) / LINK


def halo_us(machine: str, grid: str, size: int, most_faces: int, host_gbits: float) -> float:
    """At best, the busiest link carries its faces one after another; and so does the host's own limit."""
    first = MESSAGE_US + (0 if machine.startswith("torus") else HOP_US)
    own_faces = sum(2 for extent in extents(grid) if extent > 1)
    of_host = own_faces * size / (host_gbits * 125) if host_gbits else 0.0
    return first + max(most_faces * size / LINK, of_host)


def allreduce_us(machine: str, size: int, host_gbits: float) -> float:
    """At best, data of the most distant node arrives, and each node sends 2 (N - 1) / N of the vector."""
    count = nodes(machine)
    rate = links_of_node(machine) * LINK
    if host_gbits:
        rate = min(rate, host_gbits * 125)
    return max(MESSAGE_US + (diameter(machine) - 1) * HOP_US, 2 * (count - 1) / count * size / rate)


def least_us(
    machine: str, kind: str, grid: str, size: int, simulated: Mapping[str, object], host_gbits: float = 0
) -> float:
    """The lower bound (us) of this kind of exchange; `simulated` has the simulator's figures of the
    routes.
    """
    if kind == "message":
        return message_us(float(str(simulated["hops"])), size)
    if kind == "halo":
        return halo_us(machine, grid, size, int(str(simulated["most_faces"])), host_gbits)
    return allreduce_us(machine, size, host_gbits)


def hpl_us(simulated: Mapping[str, object], case: Mapping[str, float], links: int) -> float:
    """The lower bound (us) of Linpack with `simulated["n"]` equations: the largest of three times.

    They are a rank's part of all kernels (each rank of a column solves all its rows of U), the time to
    receive the bytes that a node needs, and one pivot after another, each with data from another node. `case`
    has P, Q, NB and the times of the kernels, `links` is the number of a node's links. A thousandth is
    subtracted, because only some panels are simulated.
    """
    n, p, q, nb = float(str(simulated["n"])), case["p"], case["q"], case["nb"]
    behind = [n - (k + 1) * nb for k in range(round(n / nb))]
    gemm = sum(2 * nb * rows * rows for rows in behind) / (1e6 * case["gemm_tflops"])
    moved = sum(nb * rows for rows in behind) * case["element_ps"] / 1e6
    kernels = gemm / (p * q) + moved / q + n / q * case["column_us"]
    rows_of_u, panels = (p - 1) / p * n * n / 2 / q, (q - 1) / q * n * n / 2 / p
    received = 8 * (rows_of_u + panels) / (links * case["link_gbits"] * 125)
    pivots = n * MESSAGE_US if p > 1 else 0.0
    return 0.999 * max(kernels, received * (1 - nb / n), pivots)
