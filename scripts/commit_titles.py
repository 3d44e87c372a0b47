"""Check that commit titles read `component: do something` and fit 72 columns.

As a commit-msg hook it gets the file of one message; with --range A..B it reads the titles of those commits.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

COLUMNS = 72
COMPONENT = r"[a-z0-9][\w./+-]*"
TITLE = re.compile(rf"{COMPONENT}(, {COMPONENT})*: (?P<verb>\S+)( .+)?")
# Git writes these titles itself; a fixup disappears in the rebase it is made for.
WRITTEN_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")
# English has no pattern for the imperative, so the check knows how statements and noun phrases begin.
NO_VERB = frozenset(
    [
        "a",
        "an",
        "the",
        "what",
        "which",
        "who",
        "how",
        "when",
        "where",
        "why",
        "that",
        "this",
        "these",
        "no",
        "it",
        "its",
        "one",
        "every",
        "each",
        "all",
    ]
)
# An imperative rarely ends like "adds", "added" or "adding". These do.
IMPERATIVES = frozenset(
    [
        "address",
        "bypass",
        "compress",
        "cross",
        "discuss",
        "dismiss",
        "express",
        "focus",
        "guess",
        "miss",
        "pass",
        "press",
        "process",
        "toss",
        "bring",
        "string",
        "ring",
        "embed",
        "feed",
        "need",
        "proceed",
        "seed",
        "shed",
        "speed",
        "spread",
        "exceed",
        "succeed",
    ]
)


def fault(title: str) -> str:
    """Say what is wrong with a commit title; an empty string if nothing is."""
    if title.startswith(WRITTEN_BY_GIT):
        return ""
    if len(title) > COLUMNS:
        return f"it has {len(title)} columns; shorten it to {COLUMNS} and move the rest to the body"
    match = TITLE.fullmatch(title)
    if match is None:
        return "begin with the component, as in `route: take the lower envelope`"
    verb = match["verb"].lower()
    if verb in NO_VERB:
        return (
            f"`{match['verb']}` is no verb; say what the commit does, as in `route: take the lower envelope`"
        )
    if verb not in IMPERATIVES and re.fullmatch(r"[a-z]{2,}(s|ed|ing)", verb):
        return f"`{match['verb']}` is not imperative; write `add`, not `adds`, `added` or `adding`"
    if title.endswith("."):
        return "it ends with a full stop; remove it"
    return ""


def title_of(message: str) -> str:
    """Give the title of a commit message: its first line that is neither empty nor a comment."""
    lines = (line.rstrip() for line in message.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def titles_in(commits: str) -> list[str]:
    """Give the titles of a range of commits, without merges. Raises CalledProcessError."""
    command = ["git", "log", "--no-merges", "--format=%s", commits, "--"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def main() -> int:
    """Print each bad title with what is wrong; gives 1 if there is one, 2 if the titles cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("message", nargs="?", type=Path, help="file of one commit message")
    source.add_argument("--range", help="commits to check, such as main..HEAD")
    options = parser.parse_args()
    try:
        titles = titles_in(options.range) if options.range else [title_of(options.message.read_text())]
    except subprocess.CalledProcessError as error:
        print(f"git cannot list {options.range}: {error.stderr.strip()}", file=sys.stderr)
        return 2
    faults = [(title, fault(title)) for title in titles if fault(title)]
    for title, reason in faults:
        print(f"commit title {title!r}: {reason}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
