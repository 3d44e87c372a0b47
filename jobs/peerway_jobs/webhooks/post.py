"""Sends one message to a webhook. No error contains its address, which is a secret."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from peerway_common.printable import shortened
from peerway_jobs.address import stays_here
from peerway_jobs.webhooks.settings import BadWebhooks, Webhook, secret

_TIMEOUT_S = 15.0
_MOST_PAUSE_S = 3600.0
_LATER = (408, 425, 429)  # besides all from 500 on


class NotNow(Exception):
    """The service cannot be reached or takes no message now; `pause_s` is how long it asks to wait."""

    def __init__(self, why: str, pause_s: float | None = None) -> None:
        super().__init__(why)
        self.pause_s = pause_s


class Never(Exception):
    """The service will not take this message later either."""


def send(hook: Webhook, body: bytes) -> None:
    """Send a message. Raises NotNow, Never, BadWebhooks."""
    import httpx

    address = hook.url()
    host = shortened(urlsplit(address).hostname or "", 100)
    headers = {"Content-Type": "application/json", "User-Agent": "peerway-jobs"}
    if hook.secret_file:
        digest = hmac.new(secret(hook.secret_file).encode(), body, hashlib.sha256).hexdigest()
        headers["Peerway-Signature"] = f"sha256={digest}"
    try:
        # A proxy of the site is used, except for this host, of which the proxy knows nothing.
        with httpx.Client(
            timeout=_TIMEOUT_S, follow_redirects=False, trust_env=not stays_here(address)
        ) as client:
            answer = client.post(address, content=body, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        why = "no answer in time" if isinstance(error, httpx.TimeoutException) else _without(error, address)
        raise NotNow(f"{host}: {type(error).__name__}: {why}") from None
    if answer.is_success:
        return
    # What a service answers may repeat the address.
    said = shortened(answer.text.replace(address, "…")[:400], 200)
    why = f"{host} answered {answer.status_code}" + (f": {said}" if said.strip() else "")
    if answer.status_code in _LATER or answer.status_code >= 500:
        raise NotNow(why, _pause(answer.headers.get("Retry-After", "")))
    raise Never(why)


def _pause(text: str) -> float | None:
    """The seconds of Retry-After; None for a date, which no service of these kinds sends."""
    return min(float(text), _MOST_PAUSE_S) if text.isascii() and text.isdecimal() else None


def _without(error: Exception, address: str) -> str:
    """The text of an error without the address or its path, where services keep the secret."""
    words = str(error).replace(address, "…")
    path = urlsplit(address).path
    return shortened(words.replace(path, "…") if len(path) > 1 else words, 200)


__all__ = ["BadWebhooks", "Never", "NotNow", "send"]
