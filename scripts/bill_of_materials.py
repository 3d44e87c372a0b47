"""Writes the software bill of materials of a release, in CycloneDX.

It lists what the distributions need at run time, and what is compiled or copied into them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import distributions
import products
import pythons
from steps import ROOT, VENV, StepError, must

BUILT_IN = ("nanobind", "cmeel-fmt", "nlohmann-json")  # compiled into the library's wheel


def write(folder: Path, build: Path, logs: Path) -> str:
    """Write peerway-VERSION.cdx.json beside the wheels, from an environment with all of them installed."""
    log = logs / "bill-of-materials.log"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    library = [*folder.glob(f"peerway-*-cp{version.replace('.', '')}-*.whl")]
    if not library:
        raise StepError(f"there is no wheel of the library for Python {version}, which is to be described")
    all_wheels = [*library, *folder.glob("*-py3-none-any.whl")]
    needs = [need for need in products.own("build") if need.startswith(BUILT_IN)]
    needs += products.own("jobs-server")
    environment = build / "everything"
    pythons.make_environment(
        Path(sys.base_prefix) / "bin" / f"python{version}", environment, log, *map(str, all_wheels), *needs
    )
    target = folder / f"peerway-{distributions.version()}.cdx.json"
    command = [VENV / "bin" / "cyclonedx-py", "environment", "--pyproject", ROOT / "pyproject.toml"]
    command += ["--output-reproducible", "--output-format", "JSON", "--output-file", target, environment]
    must("write the bill of materials", command, log)
    bill = json.loads(target.read_text())
    bill["components"].append(_plotly())
    target.write_text(json.dumps(bill, indent=2) + "\n")
    return f"{target.name}, {len(bill['components'])} components"


def _plotly() -> dict[str, object]:
    """Describe the one file that is copied from npm, by its line in requirements.lock."""
    lock = (ROOT / "requirements.lock").read_text()
    match = re.search(r"^# npm: (plotly\S+)==(\S+) sha256:(\w+)$", lock, re.MULTILINE)
    assert match is not None
    name, version, digest = match.groups()
    return {
        "type": "library", "name": name, "version": version, "bom-ref": f"{name}=={version}",
        "purl": f"pkg:npm/{name}@{version}", "licenses": [{"license": {"id": "MIT"}}],
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }  # fmt: skip
