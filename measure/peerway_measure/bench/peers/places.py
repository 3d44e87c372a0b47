"""Finds libraries and compilers on this machine: where environment variables say, in Python wheels of this
interpreter or the one beneath its virtual environment, or in the system.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Library:
    """The headers and libraries of one installation. `file` is the library itself."""

    include: Path
    lib: Path
    file: Path

    @property
    def run_path(self) -> list[str]:
        """Compiler flags that find the library when linking and when running."""
        return [f"-L{self.lib}", f"-Wl,-rpath,{self.lib}"]

    @property
    def nvcc_link(self) -> list[str]:
        """Flags with which nvcc links exactly this file, whose name may always have a version."""
        return [f"-L{self.lib}", f"-l:{self.file.name}", "-Xlinker", f"-rpath={self.lib}"]

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make programs, and the libraries that they load, find this library and no other."""
        return {"LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", self.lib)}


def library(root: Path, header: str, names: tuple[str, ...]) -> Library | None:
    """The installation under `root` that has the header and a file with one of these names (patterns); None
    if there is none.
    """
    if not (root / "include" / header).is_file():
        return None
    folders = [root / folder for folder in ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")]
    files = (file for folder in folders for name in names for file in sorted(folder.glob(name)))
    path = next(files, None)
    return Library(root / "include", path.parent, path) if path else None


def search(variables: str, wheel: str, header: str, *names: str) -> Library | None:
    """Look where these environment variables say, then in wheels, then in the system."""
    roots = [Path(os.environ[name]) for name in variables.split() if os.environ.get(name)]
    roots += [folder / wheel for folder in site_folders()]
    roots += [Path("/usr/local"), Path("/usr")]
    return next((match for root in roots if (match := library(root, header, names))), None)


def site_folders() -> Iterator[Path]:
    """Folders with Python packages: those of this interpreter, then those of the one beneath its virtual
    environment.
    """
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


def tool(name: str) -> str | None:
    """Find a program on PATH, or beside this Python, where wheels install theirs."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def cuda_root() -> Path | None:
    """Find a CUDA toolkit with bin/nvcc: in CUDA_HOME, on PATH, in /usr/local/cuda, or in the wheels."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    on_path = shutil.which("nvcc")
    roots += [Path(on_path).resolve().parent.parent] if on_path else []
    roots += [Path("/usr/local/cuda")]
    roots += [folder / "nvidia" / name for folder in site_folders() for name in ("cu13", "cuda_nvcc")]
    return next((root for root in roots if os.access(root / "bin" / "nvcc", os.X_OK)), None)


def nvcc_flags(root: Path) -> list[str]:
    """Flags with which nvcc links. The toolkit of the wheels has its libraries in lib, where nvcc does not
    look by itself.
    """
    return [f"-L{root / 'lib'}"] if (root / "lib" / "libcudart_static.a").is_file() else []


def before(variable: str, folder: Path) -> str:
    """The value of a search path variable, with `folder` put first."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable, ""))))
