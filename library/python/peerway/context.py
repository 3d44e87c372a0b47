"""Contexts: the devices, routes and connections of one team, and everything that is made from them."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from peerway import _core
from peerway._arguments import arrays
from peerway._arguments.validation import device as split_device
from peerway._arguments.validation import number, of_kind, shown
from peerway.collective import Collectives
from peerway.errors import InvalidArgument
from peerway.halo import Halo, HaloOptions, Sides, make_halo
from peerway.memory import Region, Remote, Signal
from peerway.operations import ANY_RANK
from peerway.plan import Fifo, Plan, PlanBuilder
from peerway.request import Request
from peerway.stream import Stream
from peerway.team import Closing, Team

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from peerway.paths import PathInfo

POLICIES = ("busy-poll", "blocking")

_open: weakref.WeakSet[Context] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Closes contexts that the program left open, while the interpreter still runs, so that no wait hangs."""
    for context in list(_open):
        context.close()


class Context(Collectives, Closing):
    """The devices, routes and connections of one team. Making one is collective. Use it in a `with`
    statement.

    Without `team`, the context makes the launcher's team and closes it with itself.
    """

    def __init__(self, team: Team | None = None) -> None:
        self.team = (
            Team.from_launcher()
            if team is None
            else of_kind("Context: `team`", team, Team, "give a peerway.Team, or nothing for the launcher's.")
        )
        self._owns_team = team is None
        self._rank, self._size = self.team.rank, self.team.size
        try:
            super().__init__(_core.Context(self.team._core))
        except BaseException:  # Ctrl-C, too
            if self._owns_team:
                self.team.close()
            raise
        _open.add(self)

    @property
    def rank(self) -> int:
        """This process's rank in the team."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks in the team."""
        return self._size

    @property
    def wait_policy(self) -> str:
        """How the host waits: "busy-poll" polls, "blocking" sleeps until it is woken. Setting it applies to
        waits that begin afterwards; until then the setting `wait` applies.
        """
        return POLICIES[int(self._core.blocking)]

    @wait_policy.setter
    def wait_policy(self, policy: str) -> None:
        if policy not in POLICIES:
            raise InvalidArgument(
                f"peerway: {policy!r} is not a wait policy; there are {' and '.join(POLICIES)}"
            )
        self._core.blocking = policy == "blocking"

    def allocate(self, device: str, bytes: int) -> Region:
        """Allocates and registers memory on "host", "cuda" (the GPU bound to this rank) or "cuda:1". Peers
        can map it. `bytes` is at least 1. Host memory is zeroed; GPU memory is uninitialised.

        Raises NoMemory, or Unavailable if there is no such device.
        """
        where = split_device(device)
        return self._known(Region(self._core.allocate(number("allocate: `bytes`", bytes, 1), *where)))

    def register(self, array: object) -> Region:
        """Registers the memory of an array of any library (NumPy, CuPy, PyTorch, a bytearray, mmap), in C or
        Fortran order. Nothing is copied, and the region keeps the array alive. Afterwards put, get and plans
        accept the array and its slices.

        A read-only array (of JAX on a GPU, of NumPy, bytes) becomes a read-only region: a source of puts and
        of peers' gets. Whatever would write to it is refused, a peer's put too.

        Raises InvalidArgument for arrays that have gaps or hold Python objects.
        """
        layout = arrays.contiguous_layout_of(array)
        if layout.extent_bytes == 0:
            raise InvalidArgument(f"peerway: register: {shown(array)} has no bytes; a region has at least 1.")
        core = self._core.register(layout.address, layout.extent_bytes, layout.read_only)
        return self._known(Region(core, layout.keep))

    def register_memory(self, address: int, bytes: int) -> Region:
        """Registers memory by its address. The caller must keep it until the region and its arrays are gone.
        Raises InvalidArgument if this process has no such memory.
        """
        where = number("register_memory: `address`", address)
        return self._known(Region(self._core.register(where, number("register_memory: `bytes`", bytes))))

    def import_key(self, key: Buffer) -> Remote:
        """Imports another rank's region or signal. `key` is bytes, or a buffer of bytes such as a NumPy array
        that a gather filled. Raises BadKey, StaleKey or ForeignKey.
        """
        return self._keep(Remote(self._core.import_key(_bytes_of(key))))

    def signal(self, sender: int = ANY_RANK, device: str = "host") -> Signal:
        """Makes a signal. `sender` is the only rank that will notify it, or ANY_RANK.

        If `device` is a GPU, the signal lies in that GPU's memory: its kernels and plans wait for it without
        leaving the GPU, and only kernels and plans of GPUs can notify it.
        """
        by = number("signal: `sender`", sender, -(2**31), 2**31 - 1)
        return self._keep(Signal(self._core.signal(by, *split_device(device))))

    def use(self, *paths: str) -> None:
        """Restricts later operations to these paths ("peer", "peer/copy", "staged"). Without arguments, or
        with "route", the route table chooses again.
        """
        self._core.use(",".join(paths) or "route")

    def paths(self, remote: Remote, region: Region, op: str = "put") -> list[PathInfo]:
        """Lists all paths, each with whether it can serve this pair of memories and, if not, why."""
        from peerway.paths import paths_for

        of_kind("paths: `remote`", remote, Remote, "give what ctx.import_key made.")
        of_kind("paths: `region`", region, Region, "give a region of this rank.")
        return paths_for(self._core, remote._core, region._core, op)

    def stream(self, device: str = "host") -> Stream:
        """Makes a stream: on the host a worker thread with a queue, on "cuda" or "cuda:1" a CUDA stream."""
        return self._keep(Stream(_core.make_stream(self._core, *split_device(device))))

    def plan(self, device: str = "host") -> PlanBuilder:
        """Begins a plan that runs on `device`. The local regions of its operations must lie in memory of that
        device.
        """
        core = _core.make_plan(self._core, *split_device(device))
        return self._keep(PlanBuilder(core, device, self._registered, self._keep))

    def fifo(
        self,
        remotes: Sequence[Remote],
        regions: Sequence[Region],
        device: str = "cuda",
        entries: int = 256,
    ) -> Fifo:
        """Makes a FIFO: kernels of `device` post puts, and the context's proxy carries them out. They name
        targets and signals by their index in `remotes`, sources by their index in `regions`. At most
        `entries` puts, a power of two, can be under way at once.
        """
        near = [of_kind("fifo: a region", target, Region, "give regions of this rank.") for target in regions]
        far = [
            of_kind("fifo: a remote", target, Remote, "give what ctx.import_key made.") for target in remotes
        ]
        core = _core.make_fifo(
            self._core,
            [remote._core for remote in far],
            [region._core for region in near],
            *split_device(device),
            number("fifo: `entries`", entries, 2, 65536),
        )
        return self._keep(Fifo(core, device, [region._memory for region in near]))

    def halo(
        self,
        u: object,
        grid: int | Sequence[int],
        shadow: Sides = 1,
        periodic: bool | Sequence[bool] = False,
        corners: bool = False,
        width: Sides | None = None,
        dims: Sequence[int | None] | None = None,
    ) -> Halo:
        """Makes a plan that refreshes the halos of a distributed array, or of a list of them, at once.
        Collective.

        `u` is this rank's part with its shadow, an array of NumPy, CuPy, PyTorch or JAX, used without a copy.
        Dimension dims[i] of the array is distributed over dimension i of the process `grid`; by default these
        are the array's first dimensions. `shadow` is the number of layers around the distributed dimensions,
        or a list with an entry for each dimension of the array: an int, or (lower, upper). `width`, the
        layers to refresh, is given in the same form; by default it is all of the shadow. `periodic` is one
        value for all dimensions, or a list with an entry for each.
        """
        options = HaloOptions(grid, shadow, periodic, corners, width, dims)
        return self._keep(make_halo(self._core, self.rank, self.size, u, options))

    def close(self) -> None:
        """Closes the context and everything made from it. Waits of other threads in it raise Closed. Arrays
        of its regions stay valid. Closing twice does nothing.
        """
        if not self._core.closed:
            self._core.end_waits()
        self._registered.close()
        for child in sorted(self._children, key=_closing_order):
            child.close()
        self._core.close()
        if self._owns_team:
            self.team.close()

    def __repr__(self) -> str:
        state = ", closed" if self._core.closed else f", rank {self.rank} of {self.size}"
        return f"<peerway.Context{state}>"

    def _known(self, region: Region) -> Region:
        self._registered.add(region)
        return self._keep(region)


def _bytes_of(key: object) -> bytes:
    try:
        return bytes(memoryview(key).cast("B"))  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgument(
            f"peerway: import_key: `key` is {shown(key)}; give the bytes that region.key() or signal.key() "
            "gave at its owner."
        ) from None


def _closing_order(child: object) -> int:
    """Users first: streams and requests, then plans and FIFOs, then regions, remotes and signals."""
    return (
        0 if isinstance(child, Stream | Request) else 1 if isinstance(child, PlanBuilder | Plan | Fifo) else 2
    )
