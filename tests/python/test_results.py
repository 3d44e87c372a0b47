"""results/README.md tells of each folder of records, and of each file that does not tell by what command it
was made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
FOLDERS = sorted(path.name for path in RESULTS.iterdir() if path.is_dir())
PAGE = (RESULTS / "README.md").read_text()


def rows(folder: str) -> str:
    """What the table says of a folder, in one row or several."""
    of_folder = [line for line in PAGE.splitlines() if re.match(rf"\| `{re.escape(folder)}`[, ]", line)]
    assert of_folder, f"results/{folder} is not in the table of results/README.md"
    return "\n".join(of_folder)


def tell_their_command(file: Path) -> bool:
    return file.suffix == ".jsonl" and all(
        json.loads(line).get("command") for line in file.read_text().splitlines()
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_file_tells_its_command_or_the_page_does(folder: str) -> None:
    text = rows(folder)
    own = RESULTS / folder / "README.md"
    if own.exists():
        assert f"({folder}/README.md)" in text
        text += own.read_text()
    for file in (path for path in (RESULTS / folder).rglob("*") if path.is_file() and path != own):
        place = file.relative_to(RESULTS / folder)
        named = re.search(rf"[` ]{re.escape(place.parts[0])}`", text)
        assert named or tell_their_command(file), (
            f"results/README.md does not say how {folder}/{place} was made"
        )


def named_files() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for name in re.findall(r"`([\w*.-]+\.jsonl)`", rows(folder)):
            yield folder, name


def test_the_page_names_no_folder_and_no_file_that_is_not_there() -> None:
    listed = re.findall(r"^\| `([\w-]+)`", PAGE, re.MULTILINE)
    assert sorted(set(listed)) == FOLDERS
    gone = [f"{folder}/{name}" for folder, name in named_files() if not [*(RESULTS / folder).glob(name)]]
    assert gone == []
    assert len([*named_files()]) > 30
