"""What holds on every kind of device between two ranks: transfers, plans, halos and the death of a rank. The
ranks run `other_device.py`; `settings` are their environment."""

from __future__ import annotations

from itertools import product

from ranks import Ranks

Settings = dict[str, str]


def check_transfers(device: str, path: str, settings: Settings) -> None:
    """Put and get between memories of the device, and between them and host memory."""
    memories = [(device, device), (device, "host"), ("host", device)]  # target and source
    requests = [(path, op, *pair) for op, pair in product(["put", "get"], memories)]
    _expect_right(device, [",".join(("transfers", *request)) for request in requests], settings)


def check_mapped(device: str, settings: Settings) -> None:
    """The CPU stores to and loads from its own GPU's memory."""
    requests = [f"transfers,mapped,put,host,{device}", f"transfers,mapped,get,{device},host"]
    _expect_right(device, requests, settings)


def check_plans_and_halos(device: str, settings: Settings) -> None:
    """Plans and halos, started by the host and on a stream."""
    plans = product(["ring", "puts"], ["256", "200000"], ["host", "ahead"])
    runs = ["between,200000", "conditional,200000"]
    _expect_right(device, [*map(",".join, plans), *runs, "halo,host", "halo,stream"], settings)


def check_death(device: str, settings: Settings) -> None:
    """The neighbour of a killed rank gets an error that names it."""
    with Ranks("other_device.py", 2, device, "lost", **settings) as ranks:
        assert ranks.read_all() == ["running"] * 2
        ranks.kill(1)
        kind, message = ranks.read(0)
        assert kind == "PeerLost"
        assert "rank 1" in message
        ranks.end(1)


def _expect_right(device: str, requests: list[str], settings: Settings) -> None:
    with Ranks("other_device.py", 2, device, *requests, **settings) as ranks:
        for request in requests:
            assert ranks.read_all() == [[]] * 2, request
        ranks.end()
