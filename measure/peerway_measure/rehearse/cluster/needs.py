"""Checks whether this machine has what a virtual cluster needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from peerway_measure.rehearse.cluster import accounting, servers
from peerway_measure.rehearse.cluster.description import BadDescription, Description

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo", "squeue", "scancel")
PACKAGES = "munge slurmctld slurmd slurm-client"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment() -> dict[str, str]:
    """The environment for programs of administrators (tc, mkfs.ext4): users' PATH may lack their folder."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PATH}"}


def check_folder(folder: Path) -> None:
    """Raise BadDescription if Slurm, munge or the file servers cannot use a folder of this name."""
    if any(character.isspace() for character in str(folder)):
        raise BadDescription(
            f"a virtual cluster cannot be in {str(folder)!r}: Slurm's files end a name at a space; name "
            "a folder without one (TMPDIR, where none was named)"
        )


def why_not(description: Description | None = None) -> str:
    """Why the cluster cannot start here; "" if it can."""
    if os.geteuid() != 0:
        return (
            "only root can start Slurm's daemons in namespaces; run it with sudo, or as root in a container"
        )
    wanted, packages = list(PROGRAMS), PACKAGES
    if description is not None and description.accounting:
        wanted += accounting.PROGRAMS
        packages += f" {accounting.PACKAGES}"
    if description is not None and description.file_systems:
        theirs, also = servers.programs(description.file_systems)
        wanted += theirs
        packages += f" {also}"
        if why := servers.why_not(description.file_systems):
            return why
    if missing := [name for name in wanted if shutil.which(name, path=PATH) is None]:
        return f"{', '.join(missing)} not installed (apt-get install {packages})"
    command = [
        "unshare",
        "--net",
        "--uts",
        "--mount",
        "--pid",
        "--fork",
        "mount",
        "-t",
        "sysfs",
        "sysfs",
        "/sys",
    ]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no namespaces of our own here: {tried.stderr.strip()}" if tried.returncode else ""
