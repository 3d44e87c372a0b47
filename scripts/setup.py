"""Make .venv, install what was asked for into it, build the C++ core and install the package for development.

    python3 scripts/setup.py [--system-packages] [EXTRA...]

EXTRA is a product (trace, xacc, jobs, jobs-server), or a group of optional dependencies in pyproject.toml
(peers, ucx, test, docs, lint, gpu-test). Nothing
is done twice: .venv/peerway-setup.json remembers a hash of what each step was made from. With
PEERWAY_BUILD_WHEELS=DIR the network is not used: packages come from that folder of wheels and from the
Python that runs this script.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import products
import system
from steps import BUILD, ROOT, VENV, StepError, main, must, run, say

PYTHON = VENV / "bin" / "python"
STAMPS = VENV / "peerway-setup.json"
LOGS = ROOT / "out" / "setup"
OLDEST = (3, 11)

# Everything that the package is built from: the folders that CMakeLists.txt adds, or folders above them.
BUILT_FROM = (
    "cmake", "library/src", "library/include", "library/python/src", "nic/torus", "nic/uct", "nic/check",
    "trace/cuda", "measure/storage_engine", "xacc/include", "xacc/runtime", "library/tests/added",
)  # fmt: skip


def stamps() -> dict[str, str]:
    """The input hash of each finished step."""
    try:
        result = json.loads(STAMPS.read_text())
    except (OSError, ValueError):
        return {}
    return result if isinstance(result, dict) else {}


def stamp(name: str, digest: str) -> None:
    """Remember that step `name` was done from inputs with this hash."""
    STAMPS.write_text(json.dumps({**stamps(), name: digest}, indent=1) + "\n")


def digest(*parts: object) -> str:
    """Hash texts, and the names and contents of files."""
    total = hashlib.sha256()
    for part in parts:
        total.update(str(part).encode() + b"\0")
        if isinstance(part, Path):
            total.update(part.read_bytes())
    return total.hexdigest()


def make_venv(wheels: str | None) -> None:
    """Make .venv with pip in it, unless it is there and works."""
    base = f"{sys.version} {sys.base_prefix} {sys.prefix} {bool(wheels)}"
    if PYTHON.exists() and stamps().get("venv") == digest(base):
        return
    shutil.rmtree(VENV, ignore_errors=True)
    has_pip = system.python_has("ensurepip")
    make = [sys.executable, "-m", "venv", *([] if has_pip else ["--without-pip"]), VENV]
    must(f"make .venv with Python {sys.version.split()[0]}", make, LOGS / "venv.log")
    if not has_pip:
        pip = system.fetch_pip(wheels, ROOT / "build" / "pip")
        must("install pip", [PYTHON, pip / "pip", "install", "--no-index", pip], LOGS / "pip.log")
    if wheels:
        share_packages_of_this_python()
    stamp("venv", digest(base))


def share_packages_of_this_python() -> None:
    """Let .venv see the packages of the Python that runs this script (itself perhaps in a .venv)."""
    purelib = subprocess.check_output(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip()
    folders = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (Path(purelib) / "peerway-system-packages.pth").write_text("".join(f"{path}\n" for path in folders))


def pip_install(title: str, arguments: list[object], wheels: str | None, log: Path) -> None:
    """Call pip in .venv, with the network or with the folder of wheels."""
    source: list[object] = ["--no-index", "--find-links", wheels] if wheels else []
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", *source, *arguments]
    must(title, [*command], log)


def uv_install(title: str, arguments: list[object], lock: Path) -> bool:
    """Install packages with uv, which is faster than pip. Returns false if that failed, such as where only
    pip knows of a mirror.
    """
    pip_install("install uv", ["--constraint", lock, "uv"], None, LOGS / "uv.log")
    # As pip does, it trusts the certificates of the system: a network may have its own.
    command = [VENV / "bin" / "uv", "pip", "install", "--system-certs", "--python", PYTHON]
    return run(title, [*command, *arguments], LOGS / "uv-packages.log") == 0


def install_requirements(extras: list[str], wheels: str | None) -> None:
    """Install what the build, the package and each extra need, at the versions in requirements.lock."""
    known = products.groups()
    unknown = sorted(set(extras) - set(known))
    if unknown:
        raise StepError(f"no such extra: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    groups = {name: known[name] for name in ("base", *extras)}
    groups["base"] += build_tools()
    lock = ROOT / "requirements.lock"
    digests = {name: digest(sorted(needs), lock, wheels) for name, needs in groups.items()}
    todo = [name for name in groups if stamps().get(name) != digests[name]]
    if not todo:
        return
    needs = sorted({need for name in todo for need in groups[name]})
    title = f"install packages for: {', '.join(todo)}"
    if wheels:  # a host without a network has given versions; the folder of wheels was made with the lock
        pip_install(title, list(needs), wheels, LOGS / "packages.log")
    elif not uv_install(title, ["--constraint", lock, *needs], lock):
        pip_install(f"{title}, by pip", ["--constraint", lock, *needs], None, LOGS / "packages.log")
    # The wheel of fmt's headers runs this file at every start of Python, to look for modules that it does not
    # have. It takes 35 ms of CPU, twice as long as starting Python.
    for start in (VENV / "lib").glob("python*/site-packages/cmeel.pth"):
        start.unlink()
    for name in todo:
        stamp(name, digests[name])


def build_tools() -> list[str]:
    """The requirements for wheels of CMake and ninja, if the system's are missing or too old."""
    cmake = system.version_of(["cmake", "--version"])
    return [*([] if cmake >= (3, 25) else ["cmake>=3.25"]), *([] if shutil.which("ninja") else ["ninja"])]


def install_mpich(wheels: str | None) -> None:
    """Install MPICH into a folder of its own, because it and Open MPI both have an `mpirun`."""
    folder = ROOT / "build" / "mpich"
    inputs = digest("mpich", ROOT / "requirements.lock")
    if stamps().get("mpich") == inputs and (folder / "bin" / "mpirun").exists():
        return
    options = [
        "--no-deps",
        "--ignore-installed",
        "--constraint",
        ROOT / "requirements.lock",
        "--prefix",
        folder,
    ]
    pip_install("install MPICH into build/mpich", [*options, "mpich"], wheels, LOGS / "mpich.log")
    stamp("mpich", inputs)


def install_package(wheels: str | None) -> None:
    """Build the core and the extension module, and install the package in editable mode."""
    files = sorted(path for folder in BUILT_FROM for path in (ROOT / folder).rglob("*") if path.is_file())
    own = [f"{name}/peerway_{name}" for name in products.PRODUCTS]
    packages = ("library/python/peerway", "nic/peerway_nic", *own)
    names = sorted(str(path) for folder in packages for path in (ROOT / folder).rglob("*.py"))
    projects = [ROOT / name / "pyproject.toml" for name in products.PRODUCTS]
    headers = system.python_headers()
    inputs = digest(
        *files, ROOT / "CMakeLists.txt", ROOT / "pyproject.toml", *projects, names, headers, sys.version,
        sorted(VENV.glob("lib/python*/site-packages/jaxlib-*")),
    )  # fmt: skip
    if stamps().get("package") == inputs and (BUILD / "CMakeCache.txt").exists():
        return
    settings = ["--config-settings=cmake.build-type=RelWithDebInfo", "--config-settings=install.strip=false"]
    # Line numbers for stack traces; all of -g takes a third longer to compile.
    settings += ["--config-settings=cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG"]
    settings += [f"--config-settings=cmake.define.{name}={value}" for name, value in headers.items()]
    pip_install(
        "build the core and install peerway for development",
        ["--no-build-isolation", "--no-deps", "--verbose", *settings, "--editable", ROOT],
        wheels,
        LOGS / "package.log",
    )
    editable = [word for name in products.PRODUCTS for word in ("--editable", ROOT / name)]
    pip_install(
        "install the other products for development",
        ["--no-build-isolation", "--no-deps", *editable],
        wheels,
        LOGS / "products.log",
    )
    stamp("package", inputs)


def python_packages(extras: list[str], wheels: str | None) -> None:
    """Make .venv, and install into it what was asked for and the products of this repository."""
    make_venv(wheels)
    install_requirements(extras, wheels)
    if "test" in extras:
        install_mpich(wheels)
    install_package(wheels)


def setup() -> int:
    """Install what is missing; Debian packages of tests meanwhile, which nothing else here needs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--system-packages", action="store_true", help="also install Debian packages for tests"
    )
    parser.add_argument("extras", nargs="*", metavar="EXTRA")
    options = parser.parse_args()
    if sys.version_info < OLDEST:
        system.start_again_with_newer_python(OLDEST)
    if Path(sys.prefix).resolve() == VENV.resolve():  # an activated .venv, which may have to be made again
        system.start_again_with_python_beneath()
    wheels = os.environ.get("PEERWAY_BUILD_WHEELS") or None
    if wheels:
        wheels = str(Path(wheels).resolve(strict=False))
        if not any(Path(wheels).glob("*.whl")):
            raise StepError(
                f"PEERWAY_BUILD_WHEELS={wheels} holds no wheel; make it with `make wheels` on a host with a "
                "network"
            )
    say(
        f"setup: .venv with {', '.join(['peerway', *options.extras])}"
        + (f", wheels of {wheels}" if wheels else "")
    )
    # What .venv needs of Debian comes first: one apt at a time.
    system.ensure_compiler()
    system.ensure_python_can_make_venv()
    system.python_headers()
    with ThreadPoolExecutor(max_workers=1) as pool:  # at its end apt has ended, whatever happens
        packages = pool.submit(system.install_test_packages) if options.system_packages else None
        python_packages(options.extras, wheels)
        if packages is not None:
            packages.result()
    return 0


if __name__ == "__main__":
    main(setup)
