"""`peerway jobs serve`: the server."""

from __future__ import annotations

import ipaddress
import logging
import socket
from contextlib import suppress
from pathlib import Path

import click

from peerway.jobs.places import data_option, monitor_at
from peerway.terminal import say


@click.command()
@click.option(
    "--listen", default="127.0.0.1:8740", show_default=True, metavar="HOST:PORT", help="Where it answers."
)
@click.option("--tls-cert", type=click.Path(path_type=Path), help="Certificate, in PEM.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its key, in PEM.")
@click.option(
    "--rules",
    type=click.Path(path_type=Path),
    help="The rules; read anew when they change  [default: rules.toml in the folder, else the shipped ones]",
)
@click.option("--slurm/--no-slurm", default=True, show_default=True, help="Query Slurm for jobs and nodes.")
@click.option(
    "--samples",
    metavar="URL",
    help="Keep samples in the VictoriaMetrics or Prometheus there  [default: in the folder]",
)
@click.option("--portal-header", metavar="NAME", help="A portal in front names people in this header.")
@click.option(
    "--portal-from",
    multiple=True,
    metavar="ADDRESS",
    help="The portal's address; the header of any other is ignored.",
)
@click.option("--oidc", type=click.Path(path_type=Path), help="TOML of an OpenID provider.")
@click.option(
    "--mail", type=click.Path(path_type=Path), help="TOML of notices to owners  [default: send none]"
)
@data_option
def command(
    listen: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    rules: Path | None,
    slurm: bool,
    samples: str | None,
    portal_header: str | None,
    portal_from: tuple[str, ...],
    oidc: Path | None,
    mail: Path | None,
    data: Path,
) -> None:
    """Take what agents send, judge jobs, show the pages and answer the API.

    Over TLS, or on this host alone: put a proxy in front, or give --tls-cert and --tls-key.
    """
    import uvicorn

    from peerway.jobs.mail.settings import read
    from peerway.jobs.serve.access import Portal
    from peerway.jobs.serve.app import create_app
    from peerway.jobs.serve.oidc import Provider

    host, port = _address(listen)
    for file in (tls_cert, tls_key, rules, oidc, mail):
        if file and not file.is_file():
            raise click.ClickException(f"there is no file {file}")
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    if bool(portal_header) != bool(portal_from):
        raise click.UsageError("--portal-header needs --portal-from: nobody else may name people")
    if not tls_cert and not _loopback(host):
        raise click.ClickException(
            f"{listen} is open to the network: tokens and passwords need TLS. "
            "Give --tls-cert and --tls-key, or "
            "listen on 127.0.0.1 behind a proxy"
        )
    try:
        networks = tuple(ipaddress.ip_network(each) for each in portal_from)
        provider = Provider.read(oidc) if oidc else None
        notices = read(mail) if mail else None
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    with monitor_at(data, rules, make=True) as monitor:
        if samples:
            from peerway.jobs.store.ahead import AheadStore
            from peerway.jobs.store.promql import PromStore

            try:
                database = PromStore(samples)
            except ValueError as error:
                raise click.ClickException(f"--samples: {error}") from None
            monitor.samples.close()
            monitor.samples = AheadStore(database, data / "samples")
        portal = Portal(portal_header, networks) if portal_header else None
        app = create_app(
            monitor,
            portal=portal,
            provider=provider,
            secure=tls_cert is not None or provider is not None,
            slurm=slurm,
            mail=notices,
        )
        listening = _listening(host, port)
        say(f"http{'s' if tls_cert else ''}://{listen}", err=True)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
            timeout_keep_alive=75,
            h11_max_incomplete_event_size=65536,
        )
        with suppress(KeyboardInterrupt):  # how it ends
            uvicorn.Server(config).run(sockets=[listening])


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen is HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {host}:{port}: {error.strerror}") from None


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
