"""Asks a Prometheus, or a VictoriaMetrics, for series over time."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.address import is_address, is_open, stays_here

_TIMEOUT_S = 120.0
_MOST_ANSWER = 256 << 20  # bytes
Labels = dict[str, str]
Values = dict[int, float]  # time (s since 1970) -> value


class PrometheusFailed(Exception):
    """There is no usable answer; the message says which query failed, and why."""


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because the token is meant only for the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        """Return None, so that urllib raises HTTPError."""


@dataclass(frozen=True)
class Prometheus:
    """A server at `url`. The token, if there is one, is sent only over TLS or to this host."""

    url: str
    token: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError if the address cannot be used."""
        if not is_address(self.url):
            raise ValueError(f"a Prometheus is an address such as http://127.0.0.1:9090, not {self.url!r}")
        if self.token and is_open(self.url):
            raise ValueError(f"{self.url} would get the token unencrypted; use https://")

    def _opener(self) -> urllib.request.OpenerDirector:
        # A proxy would be another host, for which 127.0.0.1 is itself.
        here = [urllib.request.ProxyHandler({})] if stays_here(self.url) else []
        return urllib.request.build_opener(_Stays(), *here)

    def series(self, query: str, start: int, end: int, step: int) -> list[tuple[Labels, Values]]:
        """The series of a query at each multiple of `step` from `start` to `end`. Raises PrometheusFailed."""
        parameters = {"query": query, "start": start, "end": end, "step": step}
        address = f"{self.url.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(parameters)}"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            request = urllib.request.Request(address, headers=headers)
            with self._opener().open(request, timeout=_TIMEOUT_S) as answer:
                text = answer.read(_MOST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                why = shortened(error.read(2000).decode(errors="replace"), 300)
            raise PrometheusFailed(f"{self.url} answered {error.code} to {query}: {why}") from None
        except OSError as error:
            why = str(getattr(error, "reason", error))
            raise PrometheusFailed(f"cannot ask {self.url}: {why}") from None
        if len(text) > _MOST_ANSWER:
            raise PrometheusFailed(f"{self.url} answered more than {_MOST_ANSWER:,} bytes to {query}")
        try:
            return [_series(each) for each in json.loads(text)["data"]["result"]]
        except (ValueError, TypeError, LookupError, RecursionError, AttributeError) as error:
            raise PrometheusFailed(
                f"{self.url} gave no series for {query}: {type(error).__name__}; give the address of a "
                "Prometheus or a VictoriaMetrics"
            ) from None


def _series(content: Any) -> tuple[Labels, Values]:
    labels = {str(name): str(value) for name, value in content["metric"].items()}
    values: Values = {}
    for time, text in content["values"]:
        value = float(text)
        if abs(value) < 1e18:  # no NaN, no infinity, and not DCGM's "blank"
            values[round(float(time))] = value
    return labels, values
