"""docs/library/operations-and-signals.md, "What is ordered after what", between memory of two ranks' GPUs.

The same lines for host memory are in ../system/test_transfers.py; plan_check (test_plans.py, "one-sided")
has puts with signals out of kernels, with every byte compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Ranks = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.mark.parametrize("paths", [["peer/copy", "peer/store", "staged"], ["nic:torus", "staged"]])
def test_a_signal_arrives_after_all_that_the_table_of_the_documents_says(
    paths: list[str], two_ranks: Ranks
) -> None:
    settings = {"PEERWAY_NIC": "torus"} if "nic:torus" in paths else {}
    status, printed, errors = two_ranks("gpu_order.py", *paths, **settings)
    assert status == 0, errors
    assert len(printed) == 2 * len(paths)
    for wrong in printed:
        assert wrong == dict.fromkeys(wrong, 0)
