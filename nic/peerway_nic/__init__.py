"""The NIC kit: MPI over any NIC that has a plugin, and the conformance tests of plugins."""
