"""Prints keys, and tries keys that another job has printed.

keys.py say          print this team's region and signal key (hexadecimal), and wait until told to end
keys.py try KEY      print what importing this key raises
keys.py forge        two ranks: rank 0 forges keys from those of rank 1, and prints what using them raises
"""

from __future__ import annotations

import json
import os
import struct
import sys

import peerway

# The places in a key that a forger would change.
PROCESS, RANK, ADDRESS, BYTES = 92, 72, 64, 32


def fnv(data: bytes) -> int:
    """The checksum, which anybody can compute."""
    sum = 2166136261
    for byte in data:
        sum = (sum ^ byte) * 16777619 & 0xFFFFFFFF
    return sum


def forgeries(key: bytes, pid: int) -> dict[str, bytes]:
    """The key with another rank, process, address or size, each with the old and with a new checksum."""
    changes = {
        "rank": (RANK, struct.pack("i", 0)),
        "process": (PROCESS, struct.pack("i", pid)),
        "address": (ADDRESS, struct.pack("Q", 0x10000)),
        "bytes": (BYTES, struct.pack("Q", 1 << 40)),
    }
    made = {}
    for name, (place, value) in changes.items():
        forged = key[:place] + value + key[place + len(value) :]
        assert forged != key
        made[name] = forged
        zeroed = forged[:8] + bytes(4) + forged[12:]
        made[f"{name}, checksum made anew"] = zeroed[:8] + struct.pack("I", fnv(zeroed)) + zeroed[12:]
    return made


def forge(ctx: peerway.Context) -> None:
    """Rank 0 tries every forgery of a key of rank 1, and the genuine key."""
    region = ctx.allocate("host", 4096)
    region.array()[:] = ctx.rank + 1
    genuine = ctx.team.all_gather(region.key())[1]
    told = {}
    if ctx.rank == 0:
        for name, key in {"none": genuine, **forgeries(genuine, os.getpid())}.items():
            try:
                ctx.get(region, ctx.import_key(key)[0:4096])
                ctx.flush()
                told[name] = f"fine: {region.array()[0]}"
            except peerway.Error as error:
                told[name] = type(error).__name__
    ctx.team.barrier()
    print(json.dumps(told), flush=True)


def main() -> int:
    """Print, try or forge keys."""
    with peerway.Context() as ctx:
        if sys.argv[1] == "forge":
            forge(ctx)
            return 0
        if sys.argv[1] == "say":
            region, signal = ctx.allocate("host", 4096), ctx.signal()
            print(json.dumps([region.key().hex(), signal.key().hex()]), flush=True)
            sys.stdin.readline()
            return 0
        try:
            ctx.import_key(bytes.fromhex(sys.argv[2]))
        except peerway.Error as error:
            print(json.dumps([type(error).__name__, str(error)]), flush=True)
        else:
            print(json.dumps(["fine", ""]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
