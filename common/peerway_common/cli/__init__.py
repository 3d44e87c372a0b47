"""The command `peerway`: a table of commands ("verbs"), each in a file of its own that is imported only when
it is used.

A verb is a module of a product, and defines `command`. For errors that a user can mend, a verb raises
click.ClickException or lets a peerway.Error through. Everything else is a defect and keeps its traceback.
"""

from __future__ import annotations

import errno
import importlib.util
import io
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from peerway_common.cli.verbs import Verb, Verbs
from peerway_common.ending import Ended
from peerway_common.printable import printable

VERBS = {
    "doctor": Verb(
        "Report which GPUDirect technologies work on this node, and why the others do not.",
        "peerway_measure.cli.doctor", "peerway-measure",
    ),
    "bench": Verb(
        "Measure latency and bandwidth of every path, and compare the tools people use today.",
        "peerway_measure.cli.bench", "peerway-measure",
    ),
    "tune": Verb(
        "Measure all paths and write the route table.",
        "peerway_measure.cli.tune", "peerway-measure",
    ),
    "storage": Verb(
        "Measure a mounted file system, and prove what its caches held.",
        "peerway_measure.cli.storage", "peerway-measure",
    ),
    "campaign": Verb(
        "Measure a whole cluster over days, and compare two such campaigns.",
        "peerway_measure.cli.campaign", "peerway-measure",
    ),
    "rehearse": Verb(
        "Rehearse an upgrade on a copy of a cluster, on this machine.",
        "peerway_measure.cli.rehearse", "peerway-measure",
    ),
    "explain": Verb(
        "Show which path a transfer takes for which size, and why.",
        "peerway_measure.cli.explain", "peerway-measure",
    ),
    "compare": Verb(
        "Compare two sets of records, and say whether a difference is more than noise.",
        "peerway_measure.cli.compare", "peerway-measure",
    ),
    "report": Verb(
        "Make a page with plots from records; it opens offline.",
        "peerway_measure.cli.report", "peerway-measure",
    ),
    "worth": Verb(
        "Compute how many hours a year a change frees, by application and node type.",
        "peerway_measure.cli.worth", "peerway-measure",
    ),
    "run": Verb(
        "Start a program as several ranks, on this host or on several.",
        "peerway.cli.run", "peerway",
    ),
    "trace": Verb(
        "Record every operation of a program's ranks, and find where time is lost.",
        "peerway_trace.cli", "peerway-trace",
    ),
    "cc": Verb(
        "Compile a C program with directives of XcalableMP, XcalableACC and OpenACC.",
        "peerway_xacc.cli", "peerway-xacc",
    ),
    "fc": Verb(
        "Compile a Fortran program with directives of XcalableMP.",
        "peerway_xacc.fortran.cli", "peerway-xacc",
    ),
    "nic-check": Verb(
        "Run conformance tests of a NIC plugin: ordering guarantees, faults, load.",
        "peerway_nic.nic_check", "peerway",
    ),
    "mpirun": Verb(
        "Start an unmodified MPI program over any NIC that has a plugin.",
        "peerway_nic.mpirun", "peerway",
    ),
    "jobs": Verb(
        "Find the inefficient and wrongly submitted jobs of a Slurm cluster.",
        "peerway_jobs.cli", "peerway-jobs", "server",
    ),
    "config": Verb(
        "Print every setting, its value and where it came from.",
        "peerway.cli.config", "peerway",
    ),
}  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OUTPUT_ENDED = (errno.EPIPE, errno.ENOSPC)


def _prints(option: str, below: str, folder_help: str) -> Callable[[_Function], _Function]:
    """An option for build systems that prints a folder of the installation and exits."""

    def show(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
        if wanted:
            library = importlib.util.find_spec("peerway")
            core = library and importlib.util.find_spec("peerway._core")
            if not core or not core.origin:
                raise click.ClickException("the library is not installed; run pip install peerway")
            click.echo(os.path.join(os.path.dirname(core.origin), *below.split("/")).rstrip("/"))  # noqa: PTH118, PTH120
            ctx.exit()

    return click.option(
        option,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help=f"Print {folder_help}, and exit.",
    )


@click.group(cls=Verbs, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="peerway-common", message="%(prog)s %(version)s")
@_prints("--prefix", "", "the folder with include/ and lib/ of this installation")
@_prints("--cmakedir", "lib/cmake/peerway", "the folder for CMake's peerway_DIR")
def command() -> None:
    """Peerway moves data between GPUs and hosts: measure every path, choose the fastest, use it."""


def main() -> None:
    """Runs the command line; errors go to standard error as `peerway: ...`."""
    _open_closed_outputs()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # letters that the encoding lacks become escapes
            stream.reconfigure(errors="backslashreplace")
    try:
        status = command.main(prog_name="peerway", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        sys.exit(130)
    except Ended as end:  # the command itself had nothing to report about the signal
        sys.exit(end.code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx:
            click.echo(error.ctx.get_usage(), err=True)
        _say(error.format_message().expandtabs(2))  # click indents the choices of an option
        sys.exit(error.exit_code)
    except Exception as error:
        _end(error)
    sys.exit(status if isinstance(status, int) else 0)


def _end(error: Exception) -> NoReturn:
    """Print an error that a user can mend, and exit; anything else is a defect, and is raised again."""
    if isinstance(error, _library_errors()):
        _say(str(error))
        sys.exit(1)
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        verb = next((VERBS[word] for word in sys.argv[1:] if word in VERBS), None)
        if verb is not None and package and importlib.util.find_spec(package) is None:
            _say(f"this needs {error.name}, which is not installed; run pip install {verb.requirement}")
            sys.exit(1)
    if isinstance(error, OSError) and error.errno in _OUTPUT_ENDED and not error.filename:
        _leave_output(error)
    raise error


def _library_errors() -> tuple[type[Exception], ...]:
    """The exceptions of the library, if it was imported."""
    errors = sys.modules.get("peerway.errors")
    return (errors.Error,) if errors else ()


def _open_closed_outputs() -> None:
    """Replace streams that were closed at the start (by cron, or a daemon) by one that discards its input.

    Python has None for such streams, and a file that is opened later would get their descriptors.
    """
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w", errors="backslashreplace", closefd=False))


def _leave_output(error: OSError) -> NoReturn:
    """Handle a standard output that takes no more. Its reader has closed it, which is not an error, or its
    disk is full.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # takes what Python writes at the exit
    if error.errno != errno.EPIPE:
        _say(f"cannot write to standard output: {error.strerror}")
    sys.exit(1)


def _say(message: str) -> None:
    """Print an error. Errors of the library already begin with its name."""
    message = printable(message.removeprefix("peerway: "), lines=True)
    click.echo(f"peerway: {message}", err=True)
