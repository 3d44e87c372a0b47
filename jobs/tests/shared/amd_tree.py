"""Makes the files that amdgpu and KFD show of AMD GPUs, in a folder, for the agent to read."""

from __future__ import annotations

import struct
from pathlib import Path

from node_tree import write

GIB = 1 << 30
CARD = "sys/class/drm/card{}/device"
KFD = "sys/class/kfd/kfd"
PROC = f"{KFD}/proc"


def gpu_id(card: int, part: int = 0) -> int:
    """KFD's id of a GPU or of a part of it."""
    return 50_000 + 10 * card + part


def add_gpu(
    root: Path, card: int, unique_id: str, *, busy: int = 0, parts: int = 1, in_function: bool = False
) -> None:
    """Add an MI300X with one or more partitions, of which each has a render node.

    KFD's location of a partition has its number in the upper bits, or `in_function` in those of PCI's
    function, as the packages of ROCm 6 have it.
    """
    folder = CARD.format(card)
    mode = {1: "SPX", 2: "DPX", 4: "QPX", 8: "CPX"}[parts]
    files = {
        "vendor": "0x1002", "device": "0x74a1", "product_name": "AMD Instinct MI300X OAM",
        "uevent": f"DRIVER=amdgpu\nPCI_ID=1002:74A1\nPCI_SLOT_NAME=0000:{card + 1:02X}:00.0",
        "unique_id": unique_id, "gpu_busy_percent": str(busy), "mem_busy_percent": "20",
        "mem_info_vram_total": str(192 * GIB), "mem_info_vram_used": str(48 * GIB),
        "current_compute_partition": mode, "current_memory_partition": "NPS1",
        "hwmon/hwmon3/power1_input": "450000000", "hwmon/hwmon3/power1_cap": "750000000",
        "hwmon/hwmon3/freq1_input": "2100000000",
        "hwmon/hwmon3/temp2_label": "junction", "hwmon/hwmon3/temp2_input": "71000",
        "hwmon/hwmon3/temp3_label": "mem", "hwmon/hwmon3/temp3_input": "60000",
        f"drm/renderD{128 + card}/dev": f"226:{128 + card}",
    }  # fmt: skip
    for name, text in files.items():
        write(root, f"{folder}/{name}", f"{text}\n")
    for part in range(parts):
        node = kfd_node(card, part)
        write(root, f"{node}/gpu_id", f"{gpu_id(card, part)}\n")
        location = (card + 1) << 8 | (part if in_function else part << 28)
        properties = f"location_id {location}\ndomain 0\ndrm_render_minor {128 + card + part}\n"
        write(root, f"{node}/properties", f"simd_count {1216 // parts}\n{properties}")
        write(root, f"{node}/mem_banks/0/properties", f"heap_type 1\nsize_in_bytes {192 * GIB // parts}\n")
        if part:  # a card without a PCI device
            write(root, f"sys/class/drm/card{40 + 8 * card + part}/device/driver_override", "(null)\n")
    write(root, f"{KFD}/topology/nodes/0/gpu_id", "0\n")
    write(root, f"{KFD}/topology/nodes/0/properties", "cpu_cores_count 96\nlocation_id 0\n")
    counters(root, card, 1000, 0, 0, 0)


def kfd_node(card: int, part: int) -> str:
    """The folder of KFD of a GPU or of a part of it."""
    return f"{KFD}/topology/nodes/{1 + 8 * card + part}"


ABSENT = (1 << 32) - 1  # what the driver writes where it has no figure


def counters(
    root: Path,
    card: int,
    cycles: int,
    power: int,
    heat: int,
    hardware: int,
    busy: list[list[int]] | None = None,
) -> None:
    """Write gpu_metrics 1.8 with these counters of the firmware's cycles, and 2^20 J.

    `busy` has, for each partition, the per cent of each of its dies.
    """
    head = struct.pack("<HBB12xQQ8x6I", 3872, 1, 8, 0, 1 << 36, cycles, hardware, power, heat, heat // 2, 0)
    stats = [
        struct.pack("<8I408x", *(dies + [ABSENT] * (8 - len(dies)))) for dies in [*(busy or []), *[[]] * 8]
    ]
    table(root, card, (head.ljust(344, b"\0") + b"".join(stats[:8])).ljust(3872, b"\0"))


def fields(root: Path, card: int, *values: tuple[int, str, list[int]]) -> None:
    """Write gpu_metrics 1.9 with these fields: number, type as of struct, and values."""
    content = b""
    for number, kind, numbers in values:
        head = "BbHhIiQq".index(kind) << 20 | number << 10 | len(numbers)
        content += struct.pack(f"<Q{len(numbers)}{kind}", head, *numbers)
    table(root, card, struct.pack("<HBBi", 8 + len(content), 1, 9, len(values)) + content)


def status(root: Path, card: int, bits: int) -> None:
    """Write gpu_metrics 1.3 with this throttle status."""
    table(root, card, struct.pack("<HBB108xQ", 120, 1, 3, bits))


def table(root: Path, card: int, content: bytes) -> None:
    (root / CARD.format(card) / "gpu_metrics").write_bytes(content)


def use(root: Path, pid: int, card: int, *, part: int = 0, vram: int = 0, queue: bool = False) -> None:
    """Let a process have a GPU open, with memory or a queue on it."""
    write(root, f"{PROC}/{pid}/vram_{gpu_id(card, part)}", f"{vram}\n")
    (root / PROC / str(pid) / "queues").mkdir(exist_ok=True)
    if queue:
        write(root, f"{PROC}/{pid}/queues/{card}/gpuid", f"{gpu_id(card, part)}\n")
