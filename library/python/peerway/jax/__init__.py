"""Plans inside compiled functions of JAX: exchanges, halos and collectives. The start and the finish of a
plan are two calls in the function, and on a GPU both are enqueued in XLA's stream.

    halo = Halo(ctx, u.shape, u.dtype, grid=(2, 2), shadow=1, periodic=True, device="cuda")
    total = all_reduce(ctx, (), u.dtype, device="cuda")

    @partial(jax.jit, donate_argnums=0)
    def step(u):
        started = halo.start(u)
        inner = interior(u)                    # XLA may compute this meanwhile
        u = join(inner, border(halo.finish(u, started)))
        return u, total(jax.numpy.sum(u[1:-1, 1:-1] ** 2))

JAX chooses where arrays are at each call, and a plan needs memory that stays where it is. So a start copies
its arrays into memory of the plan, and a finish copies the results out of it.
"""

from peerway.jax.collective import Collective, all_gather, all_reduce, all_to_all, broadcast, reduce_scatter
from peerway.jax.exchange import Exchange, Message
from peerway.jax.halo import Halo

__all__ = [
    "Collective",
    "Exchange",
    "Halo",
    "Message",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "reduce_scatter",
]
