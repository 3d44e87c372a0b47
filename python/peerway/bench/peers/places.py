"""Where libraries and compilers are on this machine: Python wheels of this interpreter or the one beneath it, what an
environment variable names, or the system."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Library:
    """Headers and libraries of one installation. `file` is the library itself."""

    include: Path
    lib: Path
    file: Path

    @property
    def run_path(self) -> list[str]:
        """Compiler flags that find it when linking and when running; none where the system does so."""
        return [f"-L{self.lib}", f"-Wl,-rpath,{self.lib}"]


def library(root: Path, header: str, names: tuple[str, ...]) -> Library | None:
    """The library under `root` that has `header` and a file of one of `names` (patterns)."""
    for include in (root / "include",):
        if not (include / header).is_file():
            continue
        for folder in ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
            for name in names:
                for file in sorted((root / folder).glob(name)):
                    return Library(include, root / folder, file)
    return None


def search(variables: str, wheel: str, header: str, *names: str) -> Library | None:
    """Look where environment variables say, then in wheels (a folder of site-packages), then in the system."""
    roots = [Path(os.environ[name]) for name in variables.split() if os.environ.get(name)]
    roots += [folder / wheel for folder in site_folders()]
    roots += [Path("/usr/local"), Path("/usr")]
    return next((found for root in roots if (found := library(root, header, names))), None)


def site_folders() -> Iterator[Path]:
    """Folders with Python packages: of this interpreter first, then of the one a virtual environment was made from."""
    seen = set()
    beneath = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    extra = [
        beneath / "lib" / version / "site-packages",
        beneath / "local" / "lib" / version / "dist-packages",
    ]
    extra += [Path("/usr/local/lib") / version / "dist-packages", Path("/usr/lib/python3/dist-packages")]
    for folder in (*map(Path, sys.path), *extra):
        if folder.name in {"site-packages", "dist-packages"} and folder not in seen:
            seen.add(folder)
            yield folder


def wheel_version(*names: str) -> str:
    """The version of the first of these distributions that is installed, "" if none is."""
    paths = [str(folder) for folder in site_folders()]
    for name in names:
        for found in importlib.metadata.distributions(name=name, path=paths):
            return str(found.version)
    return ""


def cuda_root() -> Path | None:
    """The CUDA toolkit: the one CUDA_HOME or PATH names, /usr/local/cuda, or the wheels'. It has bin/nvcc."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    on_path = shutil.which("nvcc")
    roots += [Path(on_path).resolve().parent.parent] if on_path else []
    roots += [Path("/usr/local/cuda")]
    roots += [folder / "nvidia" / name for folder in site_folders() for name in ("cu13", "cuda_nvcc")]
    return next((root for root in roots if os.access(root / "bin" / "nvcc", os.X_OK)), None)


def nvcc_flags(root: Path) -> list[str]:
    """What nvcc needs to link: the wheels' has its libraries in lib, where it does not look."""
    return [f"-L{root / 'lib'}"] if (root / "lib" / "libcudart_static.a").is_file() else []


def before(variable: str, folder: Path) -> str:
    """The value of a search path variable with `folder` put first."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable, ""))))
