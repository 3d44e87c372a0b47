"""Forwards a port of this machine to a TLS server in a virtual host, so that a browser here reaches the
server's page.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from pathlib import Path

from peerway_measure.rehearse.cluster.spaces import Space, enter_network


def relay(space: Space, address: tuple[str, int], certificate: Path, port: int) -> None:
    """Listen on 127.0.0.1:`port` and forward everything while this process lives. Raises OSError."""
    # Made in this thread: sockets that the other thread makes are in the space's network.
    listener = socket.create_server(("127.0.0.1", port))
    trust = ssl.create_default_context(cafile=str(certificate))

    def serve() -> None:
        enter_network(space)
        asyncio.run(_serve(listener, address, trust))

    # A daemon thread, because an executor's would keep the process alive.
    threading.Thread(target=serve, daemon=True).start()


async def _serve(listener: socket.socket, address: tuple[str, int], trust: ssl.SSLContext) -> None:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_connection(*address, ssl=trust)
        except OSError:  # the server is down at the moment
            writer.close()
            return
        try:
            await asyncio.wait(
                {asyncio.ensure_future(_pump(reader, outer)), asyncio.ensure_future(_pump(inner, writer))},
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            outer.close()
            writer.close()

    async with await asyncio.start_server(pass_on, sock=listener) as server:
        await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
