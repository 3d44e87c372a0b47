"""Checks the address of a jobs server, and whether a token may be sent there, for agents and users alike."""

from __future__ import annotations

from urllib.parse import urlsplit

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def is_address(text: str) -> bool:
    """Whether this is http[s]://HOST[:PORT][/PATH]."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # parses the port
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.hostname) and not (parts.query or parts.username)


def stays_here(address: str) -> bool:
    """Whether data sent to this address stays on this host."""
    return urlsplit(address).hostname in _LOOPBACK


def is_open(address: str) -> bool:
    """Whether a token sent there would cross a network unencrypted."""
    return urlsplit(address).scheme == "http" and not stays_here(address)
