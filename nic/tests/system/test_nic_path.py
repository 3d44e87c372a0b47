"""NICs as paths between real processes, within a host and as between hosts; what is wrong with a
setting or a plugin is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nics
import numpy as np
import pytest
from launching import compile_nic
from ranks import Ranks

import peerway

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


def expect(path: str, scenarios: dict[str, list[object]], **settings: str) -> None:
    """Two ranks run the scenarios; each must print what is expected."""
    environment = {"PEERWAY_PATHS": path, **nics.settings_of(path), **settings}
    with Ranks("ucx_ranks.py", 2, ",".join(scenarios), 1 << 18, **environment) as ranks:
        for scenario, expected in scenarios.items():
            assert ranks.read_all() == expected, scenario
        ranks.end()


IN_ORDER: list[object] = [{"wrong": 0, "value": 200}] * 2
SHARED: list[object] = [{"failures": [], "arrived": True, "back": True}] * 2
RAISED: list[object] = [{"reached": "", "beyond": "Timeout", "value": 15}] * 2
REFUSED: list[object] = [{"refused": "StaleKey", "after": ""}, {"arrived": True}]


@pytest.mark.parametrize("path", [*nics.PATHS, *nics.others()])
def test_data_signals_threads_and_closed_regions_between_hosts(path: str) -> None:
    scenarios = {"order": IN_ORDER, "threads": SHARED, "signals": RAISED}
    if path not in nics.UNTOLD:
        scenarios["stale"] = REFUSED
    expect(path, scenarios, FAR_RANKS="1", PEERWAY_WAIT="busy-poll")


@pytest.mark.parametrize("path", [*nics.PATHS, *nics.others()])
def test_data_signals_and_threads_within_a_host(path: str) -> None:
    expect(path, {"order": IN_ORDER, "threads": SHARED}, PEERWAY_WAIT="blocking")


@pytest.fixture
def nic(own_settings: None, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def compiled(folder: Path, abi: str) -> Path:
    (folder / "broken.cpp").write_text(PLUGIN_WITHOUT % abi)
    return compile_nic(folder / "broken.cpp", folder)


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


def test_a_nic_named_twice_is_refused(nic: pytest.MonkeyPatch) -> None:
    library = nics.plugin("nic:example")
    nic.setenv("PEERWAY_NIC", f"{library};{library}")
    with pytest.raises(peerway.BadConfig, match=f"two NICs nic:example.*other={library}"):
        peerway.Context()


def test_two_nics_of_one_plugin_are_two_paths(nic: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ring, lonely = tmp_path / "ring.json", tmp_path / "lonely.json"
    ring.write_text('{"extents": [2]}')
    lonely.write_text('{"extents": [2], "cut": [[0, 1]]}')
    nic.setenv("PEERWAY_NIC", f"near=torus?{lonely};far=torus?file={ring},counters={tmp_path / 'far'}")
    with Ranks("ucx_ranks.py", 2, "order", 1 << 20, PEERWAY_PATHS="nic:near,nic:far") as ranks:
        assert ranks.read_all() == [{"wrong": 0, "value": 200}] * 2
        ranks.end()
    assert "put_bytes" in (tmp_path / "far").read_text()
    with Ranks("transfers.py", 2, "nic:near", "put,malloc,allocated,contiguous") as ranks:
        for answer in ranks.read_all():
            assert not answer["available"]
            assert "no way" in answer["why"]
        ranks.end()


def test_a_nic_that_cannot_be_opened_keeps_its_path_off_with_the_reason(
    nic: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nic.setenv("PEERWAY_NIC", "torus?node=99")
    with peerway.Context() as ctx:
        region = ctx.allocate("host", 64)
        (info,) = [
            path for path in ctx.paths(ctx.import_key(region.key()), region) if path.name == "nic:torus"
        ]
    assert not info.available
    assert info.why_not.startswith("the NIC torus (")
    assert "node=99 is dead or not on this host" in info.why_not
    assert capfd.readouterr().err == f"peerway: {info.why_not}\n"
    nic.setenv("PEERWAY_STRICT", "on")
    with pytest.raises(peerway.Unavailable) as error:
        peerway.Context()
    assert str(error.value) == f"peerway: {info.why_not} (asked for by PEERWAY_NIC)"


def test_a_nic_that_is_not_set_is_told_with_the_setting(nic: pytest.MonkeyPatch) -> None:
    with peerway.Context() as ctx, pytest.raises(peerway.InvalidArgument, match="set PEERWAY_NIC=torus"):
        ctx.use("nic:torus")
    nic.setenv("PEERWAY_PATHS", "nic:torus")
    with pytest.raises(peerway.InvalidArgument, match="set PEERWAY_NIC=torus"):
        peerway.Context()
    nic.setenv("PEERWAY_PATHS", "nic:tours")
    nic.setenv("PEERWAY_NIC", "torus")
    with pytest.raises(peerway.InvalidArgument, match='did you mean "nic:torus"'):
        peerway.Context()


def test_a_team_of_one_is_its_own_neighbour_over_a_nic(nic: pytest.MonkeyPatch) -> None:
    nic.setenv("PEERWAY_NIC", str(nics.plugin("nic:example")))
    with peerway.Context() as ctx:
        ctx.use("nic:example")
        target, source = ctx.allocate("host", 4096), ctx.register(np.arange(4096, dtype=np.uint8))
        remote = ctx.import_key(target.key())
        signal = ctx.signal()
        ctx.put(remote, source, ctx.import_key(signal.key()))
        signal.wait(1, 10)
        assert np.array_equal(target.array(), np.arange(4096, dtype=np.uint8))


def test_a_nic_and_another_path_carry_one_put_together(tmp_path: Path) -> None:
    table = tmp_path / "hybrid.json"
    table.write_text(nics.table_that_splits("nic:example", "peer/cma"))
    settings = {**nics.settings_of("nic:example"), "PEERWAY_ROUTES": str(table)}
    with Ranks("ucx_ranks.py", 2, "order", 16 << 20, **settings) as ranks:
        for answer in ranks.read_all():
            assert answer == {"wrong": 0, "value": 200}
        ranks.end()
    command = ["explain", "--from", "host", "--to", "host", "--op", "put", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "peerway", *command],
        env={**os.environ, **settings}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (decision,) = json.loads(done.stdout)
    paths = [part["via"] for part in decision["decision"]["rows"]]
    assert paths[0] == "nic:example"
    assert paths[-1] == "nic:example 50 % + peer/cma 50 %"
