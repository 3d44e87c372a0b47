"""The addresses at which other hosts may reach this host."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

_SIOCGIFADDR = 0x8915


def own_addresses() -> list[str]:
    """The addresses of all interfaces, without link-local ones. Loopback addresses are left out unless there
    are no others.
    """
    result = [*_of_version_4(), *_of_version_6()]
    return [
        text
        for text in dict.fromkeys(result)
        if not (address := ipaddress.ip_address(text)).is_loopback and not address.is_link_local
    ] or ["127.0.0.1"]


def _of_version_4() -> list[str]:
    result = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # the interface has no address
            result.append(socket.inet_ntoa(answer[20:24]))
    return result


def _of_version_6() -> list[str]:
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except OSError:
        return []
    return [str(ipaddress.IPv6Address(bytes.fromhex(line.split()[0]))) for line in lines]
