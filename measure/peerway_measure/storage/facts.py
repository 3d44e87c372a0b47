"""Facts about a file system that every record keeps: file system, versions, stripes, fill level and other
load.
"""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peerway_common.units import about_text
from peerway_measure.storage import place as places
from peerway_measure.storage import stripes
from peerway_measure.storage.operation import Answer, operate
from peerway_measure.storage.request import BadRequest, Request

_WINDOW_S = 0.2
_MEMORY_GOES_BACK = (
    "this virtual machine gives free memory back to its host (virtio balloon): after a pause the page cache "
    "waits for memory, and buffered reads and writes can take several times as long; --mode direct does not"
)


@dataclass(frozen=True)
class Facts:
    """A place as it was before anything was written there."""

    place: places.Place
    space: Answer
    extra: dict[str, Any]
    notes: tuple[str, ...] = ()


def gather(request: Request, nodes: int, root: Path = places.ROOT) -> Facts:
    """Collect the facts, and check that the place can be measured. Raises BadRequest, or OperationFailed."""
    space = operate("space", request.limit_s, place=request.place)
    if not space["folder"]:
        raise BadRequest(f"{request.place} is not a folder")
    if space["read_only"]:
        raise BadRequest(f"{request.place} is mounted read-only; name a folder that can be written")
    needed = request.most_bytes(nodes)
    if needed > space["free"]:
        raise BadRequest(
            f"{request.place} has {about_text(space['free'])} free for you, and {about_text(needed)} "
            "are needed; "
            "choose a smaller --size or fewer --streams"
        )
    place = places.find(request.place, space["device"], root)
    used, size = space["used"], max(1, space["size"])
    extra: dict[str, Any] = {
        "node_type": request.node_type,
        "mount_point": place.mount_point,
        "file_system": place.file_system,
        "mount_options": place.options,
        "kernel": platform.release(),
        **places.versions(place, root),
        "client_settings": places.settings(place, root),
        **(stripes.layout_of(request.place, request.limit_s, folder=True) if place.kind == "lustre" else {}),
    }
    background = _background(place, space["device"], root)
    return Facts(
        place,
        space,
        {name: value for name, value in extra.items() if value}
        | {"fill_percent": round(100 * used / size, 1)}
        | ({"background_MBps": background} if background is not None else {}),
        (_MEMORY_GOES_BACK,)
        if places.memory_goes_back(root) and not all("direct" in m for m in request.modes)
        else (),
    )


def _background(place: places.Place, device: str, root: Path) -> float | None:
    """The MB/s that this client fetches from the servers, or that a local disk reads and writes, while
    Peerway does nothing.
    """

    def moved() -> int | None:
        if place.kind == "local":
            return places.moved_by_disk(device, root)
        counter = places.counter(place, root)
        return counter.fetched if counter else None

    before, start = moved(), time.monotonic()
    if before is None:
        return None
    time.sleep(_WINDOW_S)
    after, took = moved(), time.monotonic() - start
    return round((after - before) / took / 1e6, 1) if after is not None else None
