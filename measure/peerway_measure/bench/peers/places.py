"""Find libraries and compilers on this machine.

What an environment variable names, Python wheels of this interpreter or the one beneath it, or the system.
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
    """Headers and libraries of one installation. `file` is the library itself."""

    include: Path
    lib: Path
    file: Path

    @property
    def run_path(self) -> list[str]:
        """Compiler flags that find it when linking and when running."""
        return [f"-L{self.lib}", f"-Wl,-rpath,{self.lib}"]

    @property
    def nvcc_link(self) -> list[str]:
        """Flags with which nvcc links exactly this file, which may exist only under a name with a version."""
        return [f"-L{self.lib}", f"-l:{self.file.name}", "-Xlinker", f"-rpath={self.lib}"]

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make programs, and the libraries that they load, find this library and no other."""
        return {"LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", self.lib)}


def library(root: Path, header: str, names: tuple[str, ...]) -> Library | None:
    """Look under `root` for `header` and a file of one of `names` (patterns)."""
    if not (root / "include" / header).is_file():
        return None
    folders = [root / folder for folder in ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")]
    files = (file for folder in folders for name in names for file in sorted(folder.glob(name)))
    path = next(files, None)
    return Library(root / "include", path.parent, path) if path else None


def search(variables: str, wheel: str, header: str, *names: str) -> Library | None:
    """Look where environment variables say, then in wheels, then in the system."""
    roots = [Path(os.environ[name]) for name in variables.split() if os.environ.get(name)]
    roots += [folder / wheel for folder in site_folders()]
    roots += [Path("/usr/local"), Path("/usr")]
    return next((match for root in roots if (match := library(root, header, names))), None)


def site_folders() -> Iterator[Path]:
    """Give folders with Python packages: of this interpreter, then of the one beneath its environment."""
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
    """Find a program on PATH, or beside this Python, where wheels put theirs."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def cuda_root() -> Path | None:
    """Find a CUDA toolkit with bin/nvcc: what CUDA_HOME or PATH names, /usr/local/cuda, or the wheels'."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    on_path = shutil.which("nvcc")
    roots += [Path(on_path).resolve().parent.parent] if on_path else []
    roots += [Path("/usr/local/cuda")]
    roots += [folder / "nvidia" / name for folder in site_folders() for name in ("cu13", "cuda_nvcc")]
    return next((root for root in roots if os.access(root / "bin" / "nvcc", os.X_OK)), None)


def nvcc_flags(root: Path) -> list[str]:
    """Give what nvcc needs to link: the wheels' has its libraries in lib, where it does not look."""
    return [f"-L{root / 'lib'}"] if (root / "lib" / "libcudart_static.a").is_file() else []


def before(variable: str, folder: Path) -> str:
    """The value of a search path variable with `folder` put first."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable, ""))))
