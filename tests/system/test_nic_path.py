"""Network cards as paths between real processes, within a host and as between hosts; what is wrong with a
setting or a plugin is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import cards
import numpy as np
import pytest
from ranks import Ranks

import peerway
from peerway import _core
from peerway.tune import draft

PLUGIN_WITHOUT = """
#include "peerway/nic.h"
extern "C" const pw_nic_ops* pw_nic_plugin(void) {
  static pw_nic_ops ops{};
  ops.abi = %s;
  ops.size = sizeof ops;
  ops.name = "broken";
  return &ops;
}
"""


def start(path: str, scenario: str, size: int = 1 << 20, far: bool = True, **settings: object) -> Ranks:
    environment = {"PEERWAY_PATHS": path, **cards.settings_of(path)}
    if far:
        environment["FAR_RANKS"] = "1"
    environment |= {name: str(value) for name, value in settings.items()}
    return Ranks("ucx_ranks.py", 2, scenario, size, **environment)


def told(path: str, scenario: str, **options: object) -> list[dict[str, object]]:
    with start(path, scenario, **options) as ranks:  # type: ignore[arg-type]
        found = ranks.read_all()
        ranks.end()
    return found


@pytest.mark.parametrize("far", [True, False])
@pytest.mark.parametrize("path", cards.ALL_PATHS)
def test_a_signal_never_overtakes_its_data(path: str, far: bool) -> None:
    for one in told(path, "order", size=200_000, far=far):
        assert one == {"wrong": 0, "value": 200}


@pytest.mark.parametrize(
    ("op", "group"), [("put", "contiguous"), ("get", "contiguous"), ("put", "kinds"), ("put", "signal")]
)
@pytest.mark.parametrize("path", cards.ALL_PATHS[1:])
def test_every_layout_arrives(path: str, op: str, group: str) -> None:
    with Ranks("transfers.py", 2, path, op, "malloc", "allocated", group, **cards.settings_of(path)) as ranks:
        found = ranks.read_all()
        ranks.end()
    for one in found:
        assert one["available"], one["why"]
        assert one["cases"] > 0
        assert one["wrong"] == []


@pytest.mark.parametrize("wait", ["performance", "economy"])
@pytest.mark.parametrize("path", cards.ALL_PATHS)
def test_threads_share_the_path(path: str, wait: str) -> None:
    for one in told(path, "threads", PEERWAY_WAIT=wait):
        assert one == {"failures": [], "arrived": True, "back": True}


@pytest.mark.parametrize("path", cards.ALL_PATHS)
def test_raises_go_on_after_an_earlier_import(path: str) -> None:
    for one in told(path, "signals"):
        assert one == {"reached": "", "beyond": "Timeout", "value": 15}


@pytest.mark.parametrize("path", cards.ALL_PATHS)
def test_a_region_that_was_closed_on_another_host_is_refused(path: str) -> None:
    first, second = told(path, "stale")
    assert first == {"refused": "StaleKey", "after": ""}
    assert second == {"arrived": True}


@pytest.fixture
def nic(own_settings: None, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def compiled(folder: Path, abi: str) -> Path:
    (folder / "broken.cpp").write_text(PLUGIN_WITHOUT % abi)
    library = folder / "libbroken.so"
    flags = ["-std=c++20", "-shared", "-fPIC", f"-I{cards.ROOT / 'include'}"]
    subprocess.run(["c++", *flags, str(folder / "broken.cpp"), "-o", str(library)], check=True)
    return library


@pytest.mark.parametrize(
    ("abi", "words"),
    [("PW_NIC_ABI", ["has no open, close", "progress"]), ("PW_NIC_ABI + 1", ["version 2", "version 1"])],
)
def test_what_is_no_plugin_is_refused(
    nic: pytest.MonkeyPatch, tmp_path: Path, abi: str, words: list[str]
) -> None:
    library = compiled(tmp_path, abi)
    nic.setenv("PEERWAY_NIC", str(library))
    with pytest.raises(peerway.Unavailable) as error:
        peerway.Context()
    for word in [*words, str(library), "PEERWAY_NIC"]:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("name", "why"), [("nothere", "torus is here"), ("/nowhere/libtoy.so", "No such file")]
)
def test_a_plugin_that_is_not_there_is_told(nic: pytest.MonkeyPatch, name: str, why: str) -> None:
    nic.setenv("PEERWAY_NIC", name)
    with pytest.raises(peerway.Unavailable, match=name) as error:
        peerway.Context()
    assert why in str(error.value)


def test_a_card_named_twice_is_refused(nic: pytest.MonkeyPatch) -> None:
    library = cards.plugin("nic:example")
    nic.setenv("PEERWAY_NIC", f"{library};{library}")
    with pytest.raises(peerway.BadConfig, match=f"two cards nic:example.*other={library}"):
        peerway.Context()


def test_two_cards_of_one_plugin_are_two_paths(nic: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ring, lonely = tmp_path / "ring.json", tmp_path / "lonely.json"
    ring.write_text('{"extents": [2]}')
    lonely.write_text('{"extents": [2], "cut": [[0, 1]]}')
    nic.setenv("PEERWAY_NIC", f"near=torus?{lonely};far=torus?file={ring},counters={tmp_path / 'far'}")
    with Ranks("ucx_ranks.py", 2, "order", 1 << 20, PEERWAY_PATHS="nic:near,nic:far") as ranks:
        assert ranks.read_all() == [{"wrong": 0, "value": 200}] * 2
        ranks.end()
    assert "put_bytes" in (tmp_path / "far").read_text()
    with Ranks("transfers.py", 2, "nic:near", "put", "malloc", "allocated", "contiguous") as ranks:
        for one in ranks.read_all():
            assert not one["available"]
            assert "no way" in one["why"]
        ranks.end()


def test_a_team_of_one_is_its_own_neighbour_over_a_card(nic: pytest.MonkeyPatch) -> None:
    nic.setenv("PEERWAY_NIC", str(cards.plugin("nic:example")))
    with peerway.Context() as ctx:
        ctx.use("nic:example")
        target, source = ctx.allocate("host", 4096), ctx.register(np.arange(4096, dtype=np.uint8))
        remote = ctx.import_key(target.key())
        signal = ctx.signal()
        ctx.put(remote, source, ctx.import_key(signal.key()))
        signal.wait(1, 10)
        assert np.array_equal(target.array(), np.arange(4096, dtype=np.uint8))


def hybrid_table() -> str:
    """A route table by which a card and cross-memory attach carry large puts together; the card alone the
    small ones."""
    case = ("put", "contiguous", "host->host")
    sizes = (8, 1 << 20, 16 << 20)
    costs = {
        case: {
            "nic:example": [(size, 1 + size / 4000, 0.0) for size in sizes],
            "peer/cma": [(size, 5 + size / 4000, 0.0) for size in sizes],
        }
    }
    parts = [("nic:example", 128), ("peer/cma", 128)]
    both = draft.split_entry(case, parts, [(size, 10 + size / 8000, 0.0) for size in sizes[1:]])
    return _core.fit_table(json.dumps(draft.table(costs, [both], {}, {}, 65536)))


def test_a_card_and_another_path_carry_one_put_together(tmp_path: Path) -> None:
    table = tmp_path / "hybrid.json"
    table.write_text(hybrid_table())
    settings = {**cards.settings_of("nic:example"), "PEERWAY_ROUTES": str(table)}
    with Ranks("ucx_ranks.py", 2, "order", 16 << 20, **settings) as ranks:
        for one in ranks.read_all():
            assert one == {"wrong": 0, "value": 200}
        ranks.end()
    command = ["explain", "--from", "host", "--to", "host", "--op", "put", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "peerway", *command],
        env={**os.environ, **settings}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (decision,) = json.loads(done.stdout)
    ways = [part["via"] for part in decision["decision"]["rows"]]
    assert ways[0] == "nic:example"
    assert ways[-1] == "nic:example 50 % + peer/cma 50 %"
