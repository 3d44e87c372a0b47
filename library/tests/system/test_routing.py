"""Route tables and rules in the user's files are followed by real ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launching import Run, clean_environment, peerway, ranks

from peerway import _core
from peerway_measure.tune import draft

EXPLAIN = """
    import json, numpy as np, peerway
    from peerway import _core
    with peerway.Context() as ctx:
        found = {}
        for kind in ("host", "host:malloc"):
            array = np.zeros(1 << 20, np.uint8)
            mine = ctx.allocate("host", array.nbytes) if kind == "host" else ctx.register(array)
            keys = ctx.team.all_gather(mine.key())
            far = ctx.import_key(keys[1 - ctx.rank])
            for op in ("put", "get"):
                text = _core.explain_for(ctx._core, far._core, mine._core, op, "contiguous")
                found[f"{op} {kind}"] = json.loads(text)
            ctx.team.barrier()  # before the region goes
        if ctx.rank == 0:
            print(json.dumps(found))
        ctx.team.barrier()
"""


def table_of(costs: dict[tuple[str, str], dict[str, float]]) -> str:
    """A table of this machine: (op, pair) -> path -> microseconds, for every size."""
    cases: draft.Costs = {
        (op, "contiguous", pair): {path: [(8, us, 0.01), (1 << 20, us, 0.01)] for path, us in by_path.items()}
        for (op, pair), by_path in costs.items()
    }
    return _core.table_text(json.dumps(draft.table(cases, [], {}, {}, 65536)))


def explained() -> dict[str, Any]:
    found = json.loads(ranks(EXPLAIN))
    assert isinstance(found, dict)
    return found


def test_tables_and_rules_are_found_and_no_memory_goes_by_the_costs_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    table = Path(_core.default_table_file())
    table.parent.mkdir(parents=True)
    cheap = {"staged": 1.0, "peer/cma": 9.0}
    table.write_text(table_of({("put", "host->host"): cheap, ("get", "host:malloc->host"): cheap}))
    found = explained()
    told = {name: (e["pair"], e["rows"][0]["via"], e["rows"][0]["us_from"]) for name, e in found.items()}
    assert told == {
        "put host": ("host->host", "staged", 1.0),
        "get host": ("host->host", "peer/shm", None),
        "put host:malloc": ("host->host:malloc", "peer/cma", None),
        "get host:malloc": ("host:malloc->host", "staged", 1.0),
    }
    next_best = found["put host"]["rows"][0]["next"]
    assert (next_best["via"], next_best["margin"]) == ("peer/cma", [8.0, 8.0])

    Path(_core.default_rules_file()).write_text('{"rules": [{"use": "peer/cma"}]}')
    assert {e["rows"][0]["via"] for e in explained().values()} == {"peer/cma"}

    table.unlink()
    Path(_core.default_rules_file()).write_text('{"rules": [{"forbid": "peer/shm"}]}')
    row = explained()["put host"]["rows"][0]
    assert row["via"] != "peer/shm"
    assert row["why"].endswith(f"; {_core.default_rules_file()}: rules[0] forbids peer/shm")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("rules.json", b'{"rules": [{"use": "peer/shn"}]}', "did you mean"),
        ("rules.json", b'{"rules": "\xff\xfe"}', "not JSON"),
        ("table", b"peer/shn", "did you mean"),
        ("table", b"\xff", "not JSON"),
    ],
)
def test_a_file_that_cannot_be_followed_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run, name: str, text: bytes, problem: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    settings = {"XDG_CONFIG_HOME": str(tmp_path)}
    if name == "table":
        file = tmp_path / "routes.json"
        file.write_bytes(
            table_of({("put", "host->host"): {"peer/shm": 1.0}}).encode().replace(b"peer/shm", text)
        )
        settings["PEERWAY_ROUTES"] = str(file)
    else:
        file = Path(_core.default_rules_file())
        file.parent.mkdir(parents=True)
        file.write_bytes(text)
    command = peerway("explain", "--from", "host")
    done = run(command, env={**clean_environment(), **settings})
    assert done.returncode != 0
    assert problem in done.stderr
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
