"""The HIP device on AMD GPUs (`make amd-test`). Nobody who works on Peerway has one."""

from __future__ import annotations

import pytest
from device_checks import check_death, check_mapped, check_plans_and_halos, check_transfers

Settings = dict[str, str]


@pytest.mark.parametrize("path", ["peer/copy", "peer/store", "staged"])
def test_transfers(path: str, amd: Settings) -> None:
    check_transfers("hip", path, amd)


def test_the_cpu_loads_and_stores_where_the_bar_is_large(amd: Settings) -> None:
    check_mapped("hip", amd)


def test_plans_and_halos(amd: Settings) -> None:
    check_plans_and_halos("hip", amd)


def test_the_neighbour_of_a_killed_rank_is_told(amd: Settings) -> None:
    check_death("hip", amd)
