"""Says keys and tries keys that another job has said.

keys.py say          print this team's region and signal key (hexadecimal), and wait until told to end
keys.py try KEY      print what importing this key raises
"""

from __future__ import annotations

import json
import sys

import peerway


def main() -> int:
    """Say or try."""
    with peerway.Context() as ctx:
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
