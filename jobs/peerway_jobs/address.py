"""The address of a jobs server, and whether a token may be sent there: agents and users have one rule."""

from __future__ import annotations

from urllib.parse import urlsplit

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def is_address(text: str) -> bool:
    """Whether this is http[s]://HOST[:PORT][/PATH]."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # which is read here
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.hostname) and not (parts.query or parts.username)


def stays_here(address: str) -> bool:
    """Whether what is sent to this address never leaves this host."""
    return urlsplit(address).hostname in _LOOPBACK


def is_open(address: str) -> bool:
    """Whether a token would go there unencrypted over a network."""
    return urlsplit(address).scheme == "http" and not stays_here(address)
