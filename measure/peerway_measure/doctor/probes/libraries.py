"""Libraries and programs: libpeerway, NVRTC, UCX builds, Open MPI, route tables."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..decode import decode
from ..facts import Libraries, Library, OpenMpi, RouteTable, Ucx

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

    from ..system import System


def start(system: System, pool: ThreadPoolExecutor) -> Callable[[], Libraries]:
    """Begin the search. The returned function waits for it and returns the facts."""
    core = pool.submit(load, system, "core", core_candidates())
    nvrtc = pool.submit(_nvrtc, system)
    ucx = [pool.submit(_ucx, system, origin, path) for origin, path in ucx_places(system)]
    mpi = [pool.submit(_openmpi, system, program) for program in openmpi_programs(system)]

    def finish() -> Libraries:
        library, targets = nvrtc.result()
        folder = routes_folder(system)
        return Libraries(
            core=core.result(),
            nvrtc=library,
            nvrtc_targets=targets,
            ucx=_different(ucx),
            openmpi=[future.result() for future in mpi],
            routes_folder=folder,
            routes=[_route(system, f"{folder}/{n}") for n in system.list(folder) if n.endswith(".json")],
        )

    return finish


def load(system: System, kind: str, candidates: list[str]) -> Library:
    """Load the first candidate that can be loaded, in a child process."""
    return decode(Library, system.child("library", {"kind": kind, "candidates": candidates}))


# ---- where to look: libraries of the site, then wheels of this Python, then the loader's default ----


def wheel_files(pattern: str) -> list[str]:
    """Files of installed Python packages, newest name first."""
    folders = [Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    return [f for folder in folders for f in sorted(map(str, folder.glob(pattern)), reverse=True)]


def core_candidates() -> list[str]:
    """The places where libpeerway may be, first in this package. An editable installation keeps compiled
    parts elsewhere.
    """
    extension = importlib.util.find_spec("peerway._core")
    package = Path(extension.origin).parent if extension and extension.origin else Path(__file__).parents[2]
    inside = sorted(map(str, package.glob("lib*/libpeerway.so")))
    return [*inside, "libpeerway.so.0", "libpeerway.so"]


def gdrapi_candidates() -> list[str]:
    """List where GDRCopy's library may be."""
    return ["libgdrapi.so.2", "/usr/local/lib/libgdrapi.so.2", "/opt/gdrcopy/lib/libgdrapi.so.2"]


def cufile_candidates() -> list[str]:
    """List where cuFile may be."""
    site = ["libcufile.so.0", "/usr/local/cuda/lib64/libcufile.so.0"]
    return [*site, *wheel_files("nvidia/*/lib/libcufile.so.0")]


def nvrtc_candidates() -> list[str]:
    """List where NVRTC may be."""
    site = ["/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12"]
    names = ["libnvrtc.so.13", "libnvrtc.so.12"]
    return [*wheel_files("nvidia/*/lib/libnvrtc.so.1[0-9]"), *names, *site]


def ucx_places(system: System) -> list[tuple[str, str]]:
    """(origin, libucp) of each UCX to look at."""
    root = system.environment.get("UCX_ROOT", "")
    places = [("UCX_ROOT", f"{root}/lib/libucp.so.0")] if root else []
    places.append(("site", "libucp.so.0"))
    return places + [("wheel", path) for path in wheel_files("libucx/lib/libucp.so.0")]


def openmpi_programs(system: System) -> list[str]:
    """List the ompi_info programs."""
    on_path = shutil.which("ompi_info", path=system.environment.get("PATH", ""))
    beside = Path(sys.executable).parent / "ompi_info"
    known = [on_path, str(beside) if beside.exists() else None]
    return list(dict.fromkeys(program for program in known if program))


def routes_folder(system: System) -> str:
    """Give the folder of the route tables."""
    home = system.environment.get("HOME", "")
    return system.environment.get("XDG_CONFIG_HOME", f"{home}/.config") + "/peerway/routes"


# ---- the version and features of each ----


def _nvrtc(system: System) -> tuple[Library, list[int]]:
    answer = system.child("library", {"kind": "nvrtc", "candidates": nvrtc_candidates()})
    return decode(Library, answer), [int(target) for target in answer.get("targets") or []]


def _ucx(system: System, origin: str, path: str) -> Ucx:
    library = load(system, "ucp", [path])
    facts = Ucx(origin=origin, path=library.path, version=library.version, error=library.error)
    facts.untried = library.untried
    if not library.path:
        return facts
    folder = Path(library.path).resolve().parent
    modules = {f.name.split(".so")[0] for f in (folder / "ucx").glob("libu*.so*")}
    facts.cuda = "libuct_cuda" in modules
    facts.rocm = "libuct_rocm" in modules
    facts.verbs = "libuct_ib" in modules
    facts.gdrcopy = "libuct_cuda_gdrcopy" in modules
    beside = folder.parent / "bin" / "ucx_info"
    program = (
        str(beside) if beside.exists() else shutil.which("ucx_info", path=system.environment.get("PATH", ""))
    )
    if program:
        # Without this the loader could choose a UCX other than that of ucx_info.
        output = system.run([program, "-d"], {"LD_LIBRARY_PATH": str(folder)})
        lines = (line.partition("Transport:") for line in output.stdout.splitlines())
        facts.transports = list(dict.fromkeys(name.strip() for _, separator, name in lines if separator))
        facts.error = output.problem
    return facts


def _different(futures: list[Future[Ucx]]) -> list[Ucx]:
    """Each build once. A build that does not exist is dropped, unless UCX_ROOT names it."""
    builds: dict[str, Ucx] = {}
    for future in futures:
        ucx = future.result()
        if ucx.path or ucx.untried or ucx.origin == "UCX_ROOT":
            builds.setdefault(ucx.path, ucx)
    return list(builds.values())


def _openmpi(system: System, program: str) -> OpenMpi:
    output = system.run([program, "--parsable", "--all"])
    lines = output.stdout.splitlines()

    def value(start: str) -> str:
        return next((line[len(start) :] for line in lines if line.startswith(start)), "")

    cuda = value("mca:mpi:base:param:mpi_built_with_cuda_support:value:")
    cuda = cuda or value("mca:opal:base:param:opal_built_with_cuda_support:value:")
    return OpenMpi(
        origin=program,
        version=value("ompi:version:full:"),
        cuda={"true": True, "false": False}.get(cuda),
        ucx=any(line.startswith("mca:pml:ucx:") for line in lines) if lines else None,
        error=output.problem,
    )


def _route(system: System, path: str) -> RouteTable:
    table = RouteTable(path=path)
    try:
        data = json.loads(system.read(path, limit=1 << 26))
        table.fingerprint = _first(data, "machine") or _first(data, "fingerprint")
        table.date = _first(data, "date") or _first(data, "time")
        paths = {str(cost["path"]) for cost in data.get("costs", [])}
        table.nics = sorted(path for path in paths if path.startswith("nic:"))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        table.error = f"not a route table: {error}"
    return table


def _first(data: dict[str, object], name: str) -> str:
    """Give a field as text, whether it is text itself or an object with a "hash"."""
    value = data.get(name, "")
    if isinstance(value, dict):
        value = value.get("hash", "")
    return str(value or "")
