"""Every block of docs/tutorials runs: a page is one script of a shell in an empty folder, with a clone's
`examples` and `library` in it. A block with a title is saved under it, and what a page prints below a
command is among what the page's commands print; numbers, which differ from machine to machine, only by their
places.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from documented_code import TUTORIALS
from launching import ROOT, clean_environment

PAGES = sorted(path for path in TUTORIALS.glob("*.md") if path.name != "index.md")
BLOCK = re.compile(r"^```(\w+)(?: title=\"(\S+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# One has 12 runs, the other a cluster; the tests of bench, of compare and of jobs have fewer.
LONG = dict.fromkeys(("05-cluster-engineer", "06-jobs-administrator"), pytest.mark.long)
NUMBER = re.compile(r"\d[\d.,]*")


def script_of(text: str) -> tuple[str, list[str]]:
    """The commands and files of a page, in its order, as a script; and the lines that it says they print."""
    steps, printed = ["set -eo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"], []
    for language, title, body in BLOCK.findall(text):
        if language != "console":
            assert title, f"a block of {language} that is in no file:\n{body}"
            steps.append(f"cat >{shlex.quote(title)} <<'END_OF_{title}'\n{body}END_OF_{title}")
            continue
        for line in body.splitlines():
            if line.startswith("$ "):
                steps.append(line.removeprefix("$ "))
            else:
                printed.append(line)
    return "\n".join(steps) + "\n", printed


def comparable(line: str) -> str:
    return NUMBER.sub("#", " ".join(line.split()))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=LONG.get(page.stem, ()), id=page.stem) for page in PAGES]
)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path) -> None:
    script, printed = script_of(page.read_text())
    for name in ("examples", "library"):
        (tmp_path / name).symlink_to(ROOT / name)
    programs = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=clean_environment(PATH=f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {comparable(line) for line in done.stdout.splitlines()}
    lines.add("...")  # where a page leaves lines out
    assert [line for line in printed if comparable(line) not in lines] == [], done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_is_numbered_and_ends_with_a_picture(page: Path) -> None:
    text = page.read_text()
    number = int(page.stem[:2])
    assert text.startswith(f"# {number}. ")
    steps = [int(step) for step in re.findall(r"^## (\d+)\. ", text, re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1))
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert pictures
    assert all((page.parent / picture).is_file() for picture in pictures)
    assert f"({page.name})" in (TUTORIALS / "index.md").read_text()


def test_there_is_a_tutorial_for_each_group_of_users() -> None:
    assert [page.stem[:2] for page in PAGES] == ["01", "02", "03", "04", "05", "06"]
