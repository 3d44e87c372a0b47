"""A program of two ranks that put to each other in turn, within a trace region. Arguments: count, exit
code.
"""

PING_PONG = """
    import sys, peerway, peerway_trace
    with peerway.Context() as ctx:
        region, signal = ctx.allocate("host", 4096), ctx.signal()
        regions, signals = ctx.team.all_gather(region.key()), ctx.team.all_gather(signal.key())
        other = 1 - ctx.rank
        remote, theirs = ctx.import_key(regions[other]), ctx.import_key(signals[other])
        with peerway.trace.region("ping-pong"):
            for i in range(int(sys.argv[1])):
                if ctx.rank == 1:
                    signal.wait(i + 1)
                ctx.put(remote[0:8], region[0:8], notify=theirs)
                if ctx.rank == 0:
                    signal.wait(i + 1)
        ctx.flush()
        ctx.team.barrier()
        sys.exit(int(sys.argv[2]))
"""
