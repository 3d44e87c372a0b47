"""What every record of a place says of it: file system, versions, stripes, fill level and other load."""

from __future__ import annotations

import platform
import shutil
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from peerway.storage import place as places
from peerway.storage.operation import Answer, OperationFailed, finished, operate
from peerway.storage.request import BadRequest, Request
from peerway.units import about_text

_WINDOW_S = 0.2
_STRIPE_LIMIT_S = 20


@dataclass(frozen=True)
class Facts:
    """A place, before anything is written there."""

    place: places.Place
    space: Answer
    extra: dict[str, Any]


def gather(request: Request, nodes: int, root: Path = places.ROOT) -> Facts:
    """See whether the place can be measured. Raises BadRequest, or OperationFailed."""
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
    found = places.find(request.place, space["device"], root)
    used, size = space["used"], max(1, space["size"])
    extra: dict[str, Any] = {
        "node_type": request.node_type,
        "mount_point": found.mount_point,
        "file_system": found.file_system,
        "mount_options": found.options,
        "kernel": platform.release(),
        **places.versions(found, root),
        **(_stripes(request.place) if found.kind == "lustre" else {}),
    }
    background = _background(found, root)
    return Facts(
        found,
        space,
        {name: value for name, value in extra.items() if value}
        | {"fill_percent": round(100 * used / size, 1)}
        | ({"background_MBps": background} if background is not None else {}),
    )


def _background(found: places.Place, root: Path) -> float | None:
    """What this client fetches from the servers while we do nothing."""
    before = places.counter(found, root)
    if before is None:
        return None
    start = time.monotonic()
    time.sleep(_WINDOW_S)
    after = places.counter(found, root)
    took = time.monotonic() - start
    return round((after.fetched - before.fetched) / took / 1e6, 1) if after else None


def _stripes(folder: Path) -> dict[str, str]:
    """The layout that new files get there, as Lustre's own tool says."""
    if not shutil.which("lfs"):
        return {}
    try:
        _, out, _ = finished(["lfs", "getstripe", "-d", str(folder)], _STRIPE_LIMIT_S, "lfs getstripe")
    except OperationFailed:
        return {}
    return parse_stripes(out)


def parse_stripes(text: str) -> dict[str, str]:
    """ "stripe_count:  4 stripe_size: 1048576 ..." -> stripe_count and stripe_size."""
    words = text.replace("lmm_", "").split()
    pairs = dict(pairwise(words))
    return {
        name: pairs[f"{name}:"] for name in ("stripe_count", "stripe_size", "pattern") if f"{name}:" in pairs
    }
