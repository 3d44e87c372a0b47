"""The addresses of a time-series database: that of one server, or those of a cluster of VictoriaMetrics.

In a cluster vminsert takes samples at /insert/TENANT/prometheus, vmselect answers queries at
/select/TENANT/prometheus, and each vmstorage holds a part of the samples: only it shows that it has
restarted.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass

_TENANT = r"(\d{1,10}(?::\d{1,10})?)"
_PATHS = {"insert": re.compile(rf"/insert/{_TENANT}/prometheus"),
          "select": re.compile(rf"/select/{_TENANT}/prometheus")}  # fmt: skip


@dataclass(frozen=True)
class Addresses:
    """Where to write, where to read, and where /metrics of each process is that holds samples."""

    insert: str
    select: str
    storages: tuple[str, ...]


def addresses(url: str, select: str, storages: Iterable[str]) -> Addresses:
    """The addresses of a single server at `url`, or of a cluster. Raises ValueError."""
    storages = sorted({_checked(each) for each in storages})
    insert = _checked(url)
    if not select and not storages:
        if _PATHS["insert"].search(insert):
            raise ValueError(
                f"{url} is the vminsert of a cluster: also give --samples-select, the address of a vmselect, "
                "and --samples-storage for each vmstorage"
            )
        return Addresses(insert, insert, (insert,))
    if not select or not storages:
        raise ValueError(
            "a cluster of VictoriaMetrics needs both --samples-select, the address of a vmselect, and "
            "--samples-storage for each vmstorage, which may restart and lose what it had only in memory"
        )
    tenants = [_tenant(insert, "insert"), _tenant(select := _checked(select), "select")]
    if tenants[0] != tenants[1]:
        raise ValueError(f"samples would be written for tenant {tenants[0]} and read of tenant {tenants[1]}")
    return Addresses(insert, select, tuple(storages))


def _checked(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"a time-series database is an address such as http://127.0.0.1:8428, not {url!r}")
    return url.rstrip("/")


def _tenant(url: str, kind: str) -> str:
    """The tenant in an address; 7 and 7:0 are the same."""
    match = _PATHS[kind].search(url)
    if match is None or match.end() != len(url):
        # vminsert answers 400 to other paths, as to samples that it refuses for ever.
        raise ValueError(f"{url} does not end in /{kind}/TENANT/prometheus, such as /{kind}/0/prometheus")
    return match[1].removesuffix(":0")
