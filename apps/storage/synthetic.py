"""Makes records like those of `peerway storage`, without any measurement."""

from __future__ import annotations

from peerway_measure.records import Record

TESTS = 40  # of one `peerway storage` with three numbers of streams


def synthetic_record(luck: int, node: str = "v01", kind: str = "v", number: int = 0, test: int = 0) -> Record:
    """A record of one node in one round."""
    return Record.from_samples(
        [1e9 * (1 + 0.1 * ((luck * 7919) % 1000) / 1000)],
        test=("file_write_bw", "file_read_cold_bw", "file_read_warm_here_bw")[test % 3],
        via="posix",
        op="write",
        shape=f"sequential {1 << test % TESTS // 12} MiB",
        bytes=1 << 30,
        ranks=test % TESTS // 3 + 1,
        source="host",
        target="file",
        validated=True,
        cpu_percent=None,
        host=node,
        device="",
        driver="",
        version="0",
        command="peerway storage /scratch/me write read --size 1G --streams 1,4,all --out -",
        extra={
            "node_type": f"{kind}100", "mount_point": "/scratch", "file_system": "lustre", "kernel": "6.1.0",
            "mount_options": "rw,flock,lazystatfs", "fill_percent": 61.2, "load": 0.4, "io": "io_uring",
            "iterations_fixed": True, "state": "cold", "state_proved": True, "fetched_bytes": 1 << 30,
            "state_proof": "cachestat and Lustre osc", "round": number, "run": f"r{luck // 87}",
            "campaign": "before",
        },
    )  # fmt: skip
