"""A transformer block in inference whose tensors are distributed over the ranks, by hand and by PyTorch's
parallelize_module, compared with the whole block. On a GPU also in a CUDA graph. Prints what was wrong.

torch_tensor_parallel.py MEETING DEVICE
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
import torch.distributed as dist
import torch_ranks
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional

WIDTH, HEADS, TOKENS = 256, 8, 32


class Attention(nn.Module):
    """Causal attention over the heads of this rank."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [
            layer(x).unflatten(-1, (self.heads, -1)).transpose(-2, -3) for layer in (self.q, self.k, self.v)
        ]
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
        result: torch.Tensor = self.out(mixed.transpose(-2, -3).flatten(-2))
        return result


class Block(nn.Module):
    """Attention and a perceptron, each after a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x))
        result: torch.Tensor = x + self.down(functional.gelu(self.up(self.norms[1](x))))
        return result


class Summed(nn.Linear):
    """A linear layer over this rank's part of the input; the ranks' results are summed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = super().forward(x)
        dist.all_reduce(result)
        return result


def whole_block(device: str, dtype: torch.dtype) -> Block:
    torch.manual_seed(3)
    return Block(WIDTH, HEADS).to(device, dtype).eval()


def part_of(block: Block) -> Block:
    """This rank's part of a block."""
    rank, size = dist.get_rank(), dist.get_world_size()
    part = Block(WIDTH, HEADS // size)
    part.norms = block.norms

    def rows(layer: nn.Linear) -> nn.Linear:
        weight = layer.weight.detach().chunk(size)[rank]
        return with_weight(nn.Linear(weight.shape[1], weight.shape[0], bias=False), weight)

    def columns(layer: nn.Linear) -> nn.Linear:
        weight = layer.weight.detach().chunk(size, dim=1)[rank]
        return with_weight(Summed(weight.shape[1], weight.shape[0], bias=False), weight)

    near, far = part.attention, block.attention
    near.q, near.k, near.v = rows(far.q), rows(far.k), rows(far.v)
    near.out, part.up, part.down = columns(far.out), rows(block.up), columns(block.down)
    return part.eval()


def with_weight(layer: nn.Linear, weight: torch.Tensor) -> nn.Linear:
    layer.weight = nn.Parameter(weight.clone())
    return layer


def by_pytorch(device: str) -> Block:
    """The block distributed by parallelize_module."""
    block = whole_block(device, torch.float32)
    mesh = DeviceMesh.from_group(dist.group.WORLD, device)
    columnwise: Any = dict.fromkeys(("attention.q", "attention.k", "attention.v", "up"), ColwiseParallel())
    rowwise: Any = dict.fromkeys(("attention.out", "down"), RowwiseParallel())
    parallelize_module(block, mesh, {**columnwise, **rowwise})
    block.attention.heads //= dist.get_world_size()
    return block


def replayed(part: Block, x: torch.Tensor) -> torch.Tensor:
    """The result of a CUDA graph of the block, captured with another input."""
    held = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            part(held)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = part(held)
    for scale in (0.0, 2.0, 1.0):
        held.copy_(x * scale)
        graph.replay()
    return result.clone()


def main() -> int:
    """Print the names of the ways whose results are wrong."""
    meeting, device = sys.argv[1:]
    torch_ranks.begin(meeting, device, "cpu:gloo,cuda:peerway")
    wrong = []
    with torch.no_grad():
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 5e-2)):
            block = whole_block(device, dtype)
            torch.manual_seed(4)
            x = torch.randn(2, TOKENS, WIDTH).to(device, dtype)
            wanted, part = block(x), part_of(block)
            results = {f"by hand, {dtype}": part(x)}
            if device == "cuda":
                results[f"in a graph, {dtype}"] = replayed(part, x)
            if dtype == torch.float32:
                results["parallelize_module"] = by_pytorch(device)(x)
            for name, result in results.items():
                if not torch.allclose(result, wanted, rtol=tolerance, atol=tolerance):
                    wrong.append(f"{name}: {(result - wanted).abs().max().item()}")
    print(json.dumps(wrong), flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
