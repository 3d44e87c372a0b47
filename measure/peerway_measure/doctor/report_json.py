"""The JSON of `peerway doctor --json`: written, and read back to show the page of another node."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from peerway_common import atomic_file
from peerway_common.printable import json_text

from .decode import decode, encode
from .facts import Facts

if TYPE_CHECKING:
    from pathlib import Path

    from .finding import Finding

SCHEMA = "peerway_measure.doctor/1"
MOST_BYTES = 64 << 20  # of a saved report; that of a node with 8 GPUs has about 100,000


def to_json(facts: Facts, findings: list[Finding]) -> str:
    """Facts and findings; the schema's number changes when a field is removed or changes its meaning."""
    data = {
        "schema": SCHEMA,
        "findings": [encode(finding) for finding in findings],
        "facts": encode(facts),
    }
    return json_text(data, indent=2)


def read(path: Path) -> Facts:
    """The facts of a saved report. Raises OSError, or ValueError saying what is wrong with the file."""
    try:
        data = json.loads(atomic_file.read(path, MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise ValueError(
            f"{path} is not a report of `peerway doctor --json`: its schema is {schema!r}, not {SCHEMA!r}"
        )
    try:
        facts = decode(Facts, data.get("facts"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if missing := [each.name for each in dataclasses.fields(Facts) if each.name not in data["facts"]]:
        raise ValueError(
            f"{path}: facts lacks {', '.join(missing)}, which `peerway doctor --json` writes; what is left "
            "would look like a node without them, so make the file again on that node"
        )
    return facts
