"""The backend of torch.distributed on CPUs: each operation between processes, training by DDP and FSDP2
beside gloo, and the death of a rank.
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import Ranks

with_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="no PyTorch (pip install 'peerway[torch]')"
)


@with_torch
@pytest.mark.parametrize("size", [1, 2, 3])
def test_operations_on_tensors_of_the_host(size: int, tmp_path: Path) -> None:
    with Ranks("torch_operations.py", size, tmp_path / "meeting") as ranks:
        answers = ranks.read_all()
        ranks.end()
    assert [wrong for wrong, _ in answers] == [[]] * size
    assert all(right > 200 for _, right in answers)


@with_torch
def test_ranks_meet_by_a_store_over_tcp() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with Ranks("torch_training.py", 2, address, "ddp", "cpu", "gloo", "cpu") as ranks:
        (ours, theirs), _ = ranks.read_all()
        ranks.end()
    assert ours == pytest.approx(theirs, rel=1e-6)


@with_torch
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_losses_of_training_are_those_over_gloo(kind: str, tmp_path: Path) -> None:
    with Ranks("torch_training.py", 3, tmp_path / "meeting", kind, "cpu", "gloo", "cpu") as ranks:
        losses = ranks.read_all()
        ranks.end()
    for ours, theirs in losses:
        assert ours == pytest.approx(theirs, rel=1e-5)
        assert ours[-1] < ours[0]


@with_torch
def test_a_block_with_its_tensors_in_parallel_computes_what_the_whole_block_does(tmp_path: Path) -> None:
    with Ranks("torch_tensor_parallel.py", 2, tmp_path / "meeting", "cpu") as ranks:
        assert ranks.read_all() == [[]] * 2
        ranks.end()


@with_torch
@pytest.mark.parametrize("how", ["sync", "async", "recv"])
def test_the_other_ranks_are_told_of_a_killed_rank(how: str, tmp_path: Path) -> None:
    with Ranks("torch_lost.py", 3, tmp_path / "meeting", how) as ranks:
        assert ranks.read_all() == ["running"] * 3
        ranks.kill(1)
        for rank in (0, 2):
            kind, message = ranks.read(rank)
            assert kind == "DistBackendError"
            assert "rank 1" in message
            assert "destroy_process_group()" in message
            operation = "recv of 1000 float32" if how == "recv" else "all_reduce (SUM) of 1000 float32"
            assert operation in message
        ranks.send_line(0)
        ranks.send_line(2)
        ranks.end(1)


def in_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_torch_only_the_backend_is_missing() -> None:
    hidden = "import sys; sys.modules['torch'] = None; import peerway; peerway.Context; "
    done = in_python(hidden + "print('fine')")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    done = in_python(hidden + "import peerway.torch_distributed")
    assert "needs PyTorch, which is not installed: pip install 'peerway[torch]'" in done.stderr


def test_peerway_does_not_import_torch() -> None:
    done = in_python("import sys, peerway; peerway.Context; print('torch' in sys.modules)")
    assert done.stdout == "False\n"
