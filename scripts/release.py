"""The checklist of a release: builds all that is published into out/release, tries it, and prints each point
with ok, skipped or FAILED (docs/release.md).

    .venv/bin/python scripts/release.py [--continue]

--continue is for rehearsals: archives, wheels and libraries that the run before built are kept, and tried.
What takes long is kept in build/release: the compiled library, the bare systems, the packages that wheels
need.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import bare_roots
import bill_of_materials
import debian_packages
import distributions
import products
import pythons
import wheels
from checklist import Checklist, Skipped
from steps import ROOT, TIMES, VENV, StepError, main, must, run, say

if TYPE_CHECKING:
    from collections.abc import Callable

OUT = ROOT / "out" / "release"
BUILD = ROOT / "build" / "release"
LOGS = ROOT / "out" / "release-logs"
POLICY = (
    "manylinux_2_34"  # glibc 2.34 and GCC 11's libstdc++: Rocky 9, Ubuntu 22.04, Debian 12, and later ones
)
TOOL = VENV / "bin" / "python"
CONTINUES = "--continue" in sys.argv[1:]
UNTESTED = ("results/", "docs/", "CHANGELOG.md")  # what may change after `make test-long`
TRIED = ("library", "common", "measure", "jobs")  # what packaging/try_wheels.sh installs


def git(*words: str) -> str:
    """The output of a git command. Raises Skipped if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skipped(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def is_tagged() -> bool:
    """Whether HEAD is the commit of this version's tag; before that, everything is a rehearsal."""
    return f"v{distributions.version()}" in git("tag", "--points-at", "HEAD").split()


def check_version() -> str:
    """The version, and whether this is the release or a rehearsal."""
    number = distributions.version()
    if CONTINUES and is_tagged():
        raise StepError("--continue is for rehearsals; a release is built whole, from its commit")
    return f"{number}, {'tagged' if is_tagged() else f'a rehearsal: HEAD has no tag v{number}'}"


def check_tree() -> str:
    """Refuse a tree with uncommitted changes, because nobody could build the same again."""
    changes = git("status", "--porcelain", "--untracked-files=normal").splitlines()
    if changes:
        raise StepError(
            f"{len(changes)} files are not committed, such as {changes[0][3:]}; commit or remove them"
        )
    return git("rev-parse", "--short=12", "HEAD")


def check_long_tests() -> str:
    """Refuse a record of `make test-long` with failures, or of other code than that of this commit."""
    record = json.loads((ROOT / "results" / "tests" / "long.jsonl").read_text().splitlines()[0])
    counts = f"{record['date']}: {record['summary']}"
    if " 0 failed" not in record["summary"]:
        raise StepError(f"{counts}; mend them, and commit a new record of make test-long")
    commit = record.get("commit", "")
    if commit.endswith("+"):
        raise StepError(f"{counts}; it was run with changes that are not committed: run make test-long again")
    is_ancestor = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
    if subprocess.run(is_ancestor, cwd=ROOT, capture_output=True, check=False).returncode != 0:
        raise StepError(f"{counts}; it is of commit {commit!r}, which HEAD does not include: run it again")
    changed = git("diff", "--name-only", commit, "HEAD").splitlines()
    if untested := [name for name in changed if not name.startswith(UNTESTED)]:
        raise StepError(
            f"{counts}; {len(untested)} files have changed since commit {commit:.12}, such as {untested[0]}: "
            "run make test-long again"
        )
    alone = record.get("passed_alone", [])
    again = f"; passed only when run again, alone: {', '.join(alone)}" if alone else ""
    return f"{counts}, of commit {commit:.12}{again}"


def write_notes() -> str:
    """Take the notes from the changelog: this version's section, or [Unreleased] in a rehearsal."""
    number = distributions.version()
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = dict(re.findall(r"^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL))
    title = number if number in sections or is_tagged() else "Unreleased"
    if not sections.get(title, "").strip():
        raise StepError(f"CHANGELOG.md has no section [{title}] with text in it")
    (OUT / "notes.md").write_text(f"# Peerway {number}\n\n{sections[title].strip()}\n")
    hint = "" if title == number else f"; rename it to [{number}] - DATE before the tag"
    return f"from the section [{title}]{hint}"


def unless_built(build: Callable[[], str], pattern: str, count: int = 1) -> Callable[[], str]:
    """Let a point that builds files keep those of the run before, if this run continues it."""

    def keep_or_build() -> str:
        names = sorted(path.name for path in OUT.glob(pattern))
        return f"kept: {', '.join(names)}" if CONTINUES and len(names) == count else build()

    return keep_or_build


def build_sdists() -> str:
    """Make the source archives."""
    os.environ["SOURCE_DATE_EPOCH"] = git("log", "-1", "--format=%ct")
    distributions.build_sdists(TOOL, OUT, LOGS / "sdists.log")
    return f"{len(distributions.FOLDERS)} archives"


def build_pure_wheels() -> str:
    """Make the wheels without compiled code."""
    distributions.build_pure_wheels(TOOL, OUT, OUT, LOGS / "pure-wheels.log")
    return ", ".join(sorted(path.name for path in OUT.glob("*-py3-none-any.whl")))


def build_library_wheel(version: str) -> str:
    """Compile the library for one Python; auditwheel checks the policy and renames the wheel accordingly."""
    python = pythons.interpreter(version)
    if python is None:
        raise Skipped(f"no Python {version} with headers here; the hosted release builds its wheel")
    log = LOGS / f"library-{version}.log"
    inside = BUILD / f"python-{version}"
    needs = products.own("build")
    builder = pythons.make_environment(python, inside, log, *needs, "cmake>=3.25", "ninja")
    raw = BUILD / f"wheel-{version}"
    shutil.rmtree(raw, ignore_errors=True)
    wheel = distributions.build_library_wheel(builder, OUT, raw, BUILD / "library", log)
    repair = [
        TOOL,
        "-m",
        "auditwheel",
        "repair",
        "--only-plat",
        "--plat",
        f"{POLICY}_x86_64",
        "--wheel-dir",
        OUT,
    ]
    must(f"auditwheel repair for Python {version}", [*repair, wheel], LOGS / f"auditwheel-{version}.log")
    (repaired,) = OUT.glob(f"peerway-*-cp{version.replace('.', '')}-*.whl")
    return f"{repaired.name}, {repaired.stat().st_size / 1e6:.1f} MB"


def dependencies(version: str) -> Path:
    """Download what the wheels need for a Python, once; returns the folder."""
    folder = BUILD / "dependencies" / version
    needs = [need for group in TRIED for need in products.own(group)]
    stamp, inputs = folder / "stamp", hashlib.sha256("\n".join(needs).encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != inputs:
        wheels.download(version, folder, needs, LOGS / f"dependencies-{version}.log")
        stamp.write_text(inputs)
    return folder


def gather(version: str, folder: Path) -> None:
    """Put everything that a user of this Python installs into a folder, with the program to try."""
    if not list(OUT.glob(f"peerway-*-cp{version.replace('.', '')}-*.whl")):
        raise Skipped(f"there is no wheel for Python {version}")
    folder.mkdir(parents=True)
    for wheel in [*OUT.glob("*.whl"), *dependencies(version).glob("*.whl")]:
        shutil.copy(wheel, folder)
    shutil.copy(ROOT / "packaging" / "try_wheels.sh", folder)
    shutil.copy(ROOT / "examples" / "python" / "put.py", folder)


def try_here(version: str) -> str:
    """Install and try the wheels with a Python of this machine."""
    python = pythons.interpreter(version)
    if python is None:
        raise Skipped(f"no Python {version} here")
    folder = BUILD / f"try-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    gather(version, folder / "wheels")
    given = [folder / "wheels", python, folder / "environment", folder / "wheels" / "put.py"]
    log = LOGS / f"try-{version}.log"
    must(f"try the wheels with Python {version}", ["sh", folder / "wheels" / "try_wheels.sh", *given], log)
    return summary_of(log)


def try_in(system: bare_roots.System) -> str:
    """Install and try the wheels on a bare system."""
    log = LOGS / f"try-{system.name}.log"
    with bare_roots.fresh(system, BUILD / f"root-{system.name}", log) as root:
        gather(system.python, root / "wheels")
        inside = bare_roots.enter(root)
        bare = ["sh", "-c", "! command -v cc gcc c++ g++ clang"]
        must(f"{system.name} has no compiler", [*inside, *bare], log)
        given = ["/wheels", f"python{system.python}", "/opt/peerway", "/wheels/put.py"]
        must(f"try the wheels on {system.name}", [*inside, "sh", "/wheels/try_wheels.sh", *given], log)
    return summary_of(log)


def summary_of(log: Path) -> str:
    """The lines of packaging/try_wheels.sh that say what was tried."""
    lines = log.read_text().splitlines()
    return ", ".join(line for line in lines if line.startswith(("installed in", "works with")))


def check_debian_packages(checklist: Checklist) -> None:
    """Build the Debian packages, then use each system's where nothing but a compiler is installed."""
    places = (OUT, BUILD, LOGS)
    libraries = partial(debian_packages.build_libraries, *places)
    checklist.check("Debian packages", unless_built(libraries, "libpeerway*.deb", 2))
    for system in bare_roots.SYSTEMS:
        if system.suite:
            build = partial(debian_packages.build_command, system, *places)
            if checklist.check(f"package for {system.name}", build):
                checklist.check(
                    f"C on {system.name}", partial(debian_packages.try_libraries, system, *places)
                )


def build_container() -> str:
    """Build the image of packaging/container from the wheels; its last step runs the command in it."""
    program = shutil.which("podman") or shutil.which("docker")
    if program is None:
        raise Skipped("neither podman nor docker is here: apt-get install podman")
    recipe = ROOT / "packaging" / "container" / "Containerfile"
    base = re.search(r"^FROM (\S+)", recipe.read_text(), re.MULTILINE)
    assert base is not None
    if run("fetch the container's base", [program, "pull", base[1]], LOGS / "container-base.log") != 0:
        raise Skipped(f"{base[1]} is not reached from here, which the container starts from")
    image = f"peerway:{distributions.version()}"
    must("build the container", [program, "build", "-t", image, "-f", recipe, OUT], LOGS / "container.log")
    return image


def write_checksums() -> str:
    """Write the checksums of all files in the format of `sha256sum --check`."""
    files = sorted(path for path in OUT.iterdir() if path.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (OUT / "SHA256SUMS").write_text("".join(sums))
    return f"{len(files)} files"


def write_record(checklist: Checklist) -> None:
    """Write how the points came out and how large the files are, beside the logs, for results/release."""
    command = "scripts/release.py --continue" if CONTINUES else "make release"
    date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    lines: list[dict[str, object]] = [{"command": command, "date": date, "summary": checklist.lines()[-1]}]
    for point, outcome, detail in checklist.outcomes:
        lines.append({"point": point, "outcome": outcome, "detail": detail})
    for path in sorted(OUT.iterdir()):
        lines.append({"file": path.name, "bytes": path.stat().st_size})
    (LOGS / "record.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, *TIMES]))


def release() -> int:
    """Run all points. Later points use what earlier ones built."""
    for folder in (OUT, LOGS):
        if not CONTINUES:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    checklist = Checklist()
    checklist.check("version", check_version)
    checklist.check("committed", check_tree)
    checklist.check("make test-long", check_long_tests)
    checklist.check("notes", write_notes)
    count = len(distributions.FOLDERS)
    if checklist.check("source archives", unless_built(build_sdists, "*.tar.gz", count)):
        pure = unless_built(build_pure_wheels, "*-py3-none-any.whl", count - 1)
        checklist.check("wheels in pure Python", pure)
        for version in pythons.SUPPORTED:
            pattern = f"peerway-*-cp{version.replace('.', '')}-*.whl"
            build = unless_built(partial(build_library_wheel, version), pattern)
            checklist.check(f"wheel for Python {version}", build)
        for version in pythons.SUPPORTED:
            checklist.check(f"try Python {version}", partial(try_here, version))
        for system in bare_roots.SYSTEMS:
            checklist.check(f"try {system.name}", partial(try_in, system))
        check_debian_packages(checklist)
        checklist.check("container", build_container)
        checklist.check("bill of materials", partial(bill_of_materials.write, OUT, BUILD, LOGS))
    checklist.check("checksums", write_checksums)
    write_record(checklist)
    say("\nrelease: " + "\n         ".join(checklist.lines()))
    say(f"release: {OUT.relative_to(ROOT)}; logs in {LOGS.relative_to(ROOT)}")
    return 1 if checklist.count("FAILED") else 0


if __name__ == "__main__":
    main(release)
