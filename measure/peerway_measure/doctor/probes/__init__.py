"""Probes gather facts through a System and judge nothing.

`gather` runs them all, side by side, within the time limits of the System.
"""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ..facts import Facts
from . import amd, gpus, host, kernel, libraries, network, storage

if TYPE_CHECKING:
    from ..system import System


def gather(system: System) -> Facts:
    """All facts about the node. Never raises because the node lacks something."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        nvml = pool.submit(system.child, "nvml")
        cuda = pool.submit(system.child, "cuda")
        attach = pool.submit(system.child, "attach")
        plugins = pool.submit(network.plugins, system)
        library_facts = libraries.start(system, pool)
        verbs = pool.submit(libraries.load, system, "verbs", ["libibverbs.so.1"])
        gdrapi = pool.submit(libraries.load, system, "gdrapi", libraries.gdrapi_candidates())
        cufile = pool.submit(libraries.load, system, "cufile", libraries.cufile_candidates())

        facts = Facts(date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
        facts.host = host.probe(system)
        facts.driver = gpus.driver(system, nvml.result(), cuda.result())
        facts.driver.amd = amd.probe(system)
        facts.gpus = gpus.devices(system, nvml.result(), cuda.result())
        facts.pairs = gpus.pairs(facts.gpus, nvml.result(), cuda.result())
        facts.network = network.probe(system, facts.gpus)
        facts.storage = storage.probe(system, facts.gpus)
        facts.kernel = kernel.probe(system, facts.gpus, facts.network.nics)
        facts.mapping.gdrdrv_node = system.exists("/dev/gdrdrv")
        facts.mapping.gdrdrv_usable = system.usable("/dev/gdrdrv")
        facts.mapping.libgdrapi = gdrapi.result()
        facts.network.libibverbs = verbs.result()
        facts.network.plugins, facts.network.plugins_error = plugins.result()
        facts.storage.libcufile = cufile.result()
        host.attach(facts.host, attach.result())
        facts.libraries = library_facts()
    if facts.host.container:  # a container may hide other processes
        facts.driver.fabric_manager = facts.driver.fabric_manager or None
        facts.driver.mps = facts.driver.mps or None
    facts.problems = sorted(set(system.problems))
    return facts
