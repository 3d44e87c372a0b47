"""`peerway jobs serve`: runs the server."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import socket
import ssl
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.cli.numbers import Whole
from peerway_common.terminal import say
from peerway_jobs.lock_file import locked
from peerway_jobs.serve.tiles import RACKS, BadPattern, rack_pattern
from peerway_jobs.server_folder import check_folder, data_option, monitor_at
from peerway_jobs.store.database import ADDRESS, set_address
from peerway_jobs.store.postgres import is_postgres
from peerway_jobs.store.retention import Retention
from peerway_jobs.store.samples import Thinning

if TYPE_CHECKING:
    from peerway_jobs.monitor import Monitor

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:8740",
    show_default=True,
    metavar="HOST:PORT",
    help="The address to listen on.",
)
@click.option("--tls-cert", type=_FILE, help="The TLS certificate, in PEM.")
@click.option("--tls-key", type=_FILE, help="The certificate's key, in PEM, without a passphrase.")
@click.option(
    "--rules",
    type=_FILE,
    help="The rules; reloaded when they change  [default: rules.toml in the folder, else the shipped ones]",
)
@click.option("--slurm/--no-slurm", default=True, show_default=True, help="Query Slurm for jobs and nodes.")
@click.option(
    "--samples",
    metavar="URL",
    help="Keep samples in the VictoriaMetrics or Prometheus at this URL  [default: in the folder]",
)
@click.option(
    "--samples-select",
    metavar="URL",
    help="With a cluster of VictoriaMetrics as --samples (http://vminsert:8480/insert/0/prometheus): its"
    " vmselect, such as http://vmselect:8481/select/0/prometheus",
)
@click.option(
    "--samples-storage",
    metavar="URL",
    multiple=True,
    help="With --samples-select: a vmstorage, such as http://vmstorage:8482; give each of them.",
)
@click.option(
    "--database",
    metavar="URL",
    help="Keep jobs and verdicts in PostgreSQL, such as postgresql://db.example.org/peerway; needs --samples"
    "  [default: the one of the last start, else SQLite in the folder]",
)
@click.option(
    "--raw-days",
    type=Whole(1),
    help=f"Days for which samples stay at full resolution  [default: {Thinning.raw_days}]",
)
@click.option(
    "--thin-days",
    type=Whole(1),
    help=f"Days for which their means over 5 minutes stay  [default: {Thinning.thin_days}]",
)
@click.option("--job-days", type=Whole(1), help="Days for which jobs and verdicts stay  [default: for ever]")
@click.option(
    "--script-days", type=Whole(1), help="Days for which batch scripts stay  [default: as long as jobs]"
)
@click.option(
    "--portal-header", metavar="NAME", help="The header in which a portal in front names who is logged in."
)
@click.option(
    "--portal-from",
    multiple=True,
    metavar="ADDRESS",
    help="The portal's address or network; may be repeated. From elsewhere the header is ignored.",
)
@click.option(
    "--proxy",
    multiple=True,
    metavar="ADDRESS",
    help="A trusted proxy's address or network; may be repeated. Its X-Forwarded-For and X-Forwarded-Proto "
    "tell who asks, and whether over TLS.",
)
@click.option("--oidc", type=_FILE, help="TOML file that describes an OpenID provider.")
@click.option(
    "--mail",
    type=_FILE,
    help="TOML file with the settings of mails to owners  [default: send none]",
)
@click.option("--webhooks", type=_FILE, help="TOML file that describes webhooks  [default: none]")
@click.option(
    "--policies",
    type=_FILE,
    help="TOML file with policies that act on jobs with idle GPUs  [default: none]",
)
@click.option(
    "--admin-comment/--no-admin-comment",
    default=False,
    show_default=True,
    help="Write verdicts into the AdminComment of ended jobs in Slurm.",
)
@click.option(
    "--racks",
    default=RACKS,
    show_default=True,
    metavar="PATTERN",
    callback=lambda _context, _option, text: _racks(text),
    help="A regular expression whose one group is the rack in a node's name; '' for no racks.",
)
@data_option
def command(
    listen: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    rules: Path | None,
    slurm: bool,
    samples: str | None,
    samples_select: str | None,
    samples_storage: tuple[str, ...],
    database: str | None,
    raw_days: int | None,
    thin_days: int | None,
    job_days: int | None,
    script_days: int | None,
    portal_header: str | None,
    portal_from: tuple[str, ...],
    proxy: tuple[str, ...],
    oidc: Path | None,
    mail: Path | None,
    webhooks: Path | None,
    policies: Path | None,
    admin_comment: bool,
    racks: re.Pattern[str],
    data: Path,
) -> None:
    """Run the server: store what agents send, judge jobs, and serve the pages and the API.

    Without TLS it listens only on this host. For others, put a proxy in front, or give --tls-cert and
    --tls-key.
    """
    import uvicorn

    from peerway_jobs.serve.access import Portal
    from peerway_jobs.serve.app import create_app
    from peerway_jobs.serve.connections import settings
    from peerway_jobs.serve.oidc import Provider
    from peerway_jobs.serve.outward import read_outward

    host, port = _address(listen)
    for file in (tls_cert, tls_key, rules, oidc, mail, webhooks, policies):
        if file and not file.is_file():
            raise click.ClickException(f"there is no file {file}")
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key must be given together: the certificate and its key")
    if bool(portal_header) != bool(portal_from):
        raise click.UsageError("--portal-header needs --portal-from: nobody else may name people")
    thinning = _thinning(samples, raw_days, thin_days)
    _check_cluster(samples, samples_select, samples_storage)
    check_folder(data, make=True)
    _check_database(data, database, samples)
    if not tls_cert and not _loopback(host):
        raise click.ClickException(
            f"{listen} is open to the network: tokens and passwords need TLS. "
            "Give --tls-cert and --tls-key, or "
            "listen on 127.0.0.1 behind a proxy"
        )
    try:
        provider = Provider.read(oidc) if oidc else None
        outward = read_outward(mail, webhooks, policies, admin_comment, slurm)
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    networks = tuple(_network(each, "--portal-from") for each in portal_from)
    proxies = tuple(_network(each, "--proxy") for each in proxy)
    if tls_cert and tls_key:
        _check_tls(tls_cert, tls_key)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if os.geteuid() == 0:
        say(
            "the server runs as root, which it does not need: give it a user of its own, as in "
            "peerway-jobs.service",
            err=True,
        )
    with (
        locked(data, "server", 0o700, slurm=slurm),
        monitor_at(data, rules, make=True, database=database) as monitor,
    ):
        if database:
            set_address(data, database)
        monitor.retention = Retention(job_days, script_days)
        if data.stat().st_mode & stat.S_IROTH:  # an older version made it, or a person
            say(f"every user of this host can read scripts and more in {data}: chmod o-rx {data}", err=True)
        for note in monitor.rules.notes:
            say(f"{monitor.rules_file}: {note}", err=True)
        monitor.thinning = thinning
        if samples:
            _keep_samples_at(monitor, samples, samples_select or "", samples_storage)
        portal = Portal(portal_header, networks) if portal_header else None
        app = create_app(
            monitor,
            portal=portal,
            provider=provider,
            secure=tls_cert is not None or provider is not None,
            slurm=slurm,
            outward=outward,
            proxies=proxies,
            racks=racks,
        )
        listening = _listening(host, port)
        say(f"http{'s' if tls_cert else ''}://{listen}", err=True)
        config = settings(app, tls_cert, tls_key)
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the server
            uvicorn.Server(config).run(sockets=[listening])


def _keep_samples_at(monitor: Monitor, url: str, select: str, storages: tuple[str, ...]) -> None:
    """Keep the samples in a time-series database in place of the folder."""
    from peerway_jobs.store.promql import PromStore
    from peerway_jobs.store.write_ahead import AheadStore

    try:
        series = PromStore(url, select, storages)
    except ValueError as error:
        raise click.ClickException(f"--samples: {error}") from None
    monitor.samples.close()
    monitor.samples = AheadStore(series, monitor.folder / "samples")


def _check_database(folder: Path, database: str | None, samples: str | None) -> None:
    """Raise click.UsageError for a database that does not go with the folder and the samples."""
    if database and not is_postgres(database):
        raise click.UsageError(
            f"--database is an address such as postgresql://db.example.org/peerway, not {database!r}; "
            "without it jobs are in the folder"
        )
    if (database or (folder / ADDRESS).exists()) and not samples:
        raise click.UsageError(
            "with the jobs in PostgreSQL, samples must be where all servers find them: give --samples"
        )
    if database and not (folder / ADDRESS).exists() and (folder / "jobs.db").exists():
        raise click.UsageError(
            f"{folder} has jobs in jobs.db: move them with `peerway jobs migrate --data {folder} "
            "--to postgresql://…`, or name another folder"
        )


def _racks(text: str) -> re.Pattern[str]:
    try:
        return rack_pattern(text)
    except BadPattern as error:
        raise click.UsageError(f"--racks: {error}") from None


def _network(text: str, option: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise click.UsageError(f"{option} takes an address such as 10.0.0.5: {error}") from None


def _check_tls(cert: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except OSError as error:  # includes ssl.SSLError
        raise click.ClickException(
            f"cannot use --tls-cert {cert} with --tls-key {key}: {error}; both are files in PEM, and the key "
            "is the certificate's, without a passphrase"
        ) from None


def _thinning(samples: str | None, raw_days: int | None, thin_days: int | None) -> Thinning:
    if samples and (raw_days or thin_days):
        raise click.UsageError(
            "with --samples that database decides how long it keeps samples: leave out --raw-days and "
            "--thin-days"
        )
    thinning = Thinning(raw_days or Thinning.raw_days, thin_days or Thinning.thin_days)
    if thinning.thin_days < thinning.raw_days:
        raise click.UsageError(
            f"means are kept for {thinning.thin_days} days and samples for {thinning.raw_days}: give "
            "--thin-days, at least as many"
        )
    return thinning


def _check_cluster(samples: str | None, select: str | None, storages: tuple[str, ...]) -> None:
    if (select or storages) and not samples:
        raise click.UsageError(
            "--samples-select and --samples-storage go with --samples, the address of a vminsert"
        )


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
        # create_server adds the address to the text, but this message has it already.
        why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise click.ClickException(
            f"cannot listen on {host}:{port}: {why}; name another address with --listen"
        ) from None


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
