// Decides whether the GPUs of the process columns factorize panels, with kernels that access one another's
// memory.
#ifndef HPL_GPU_COLUMNS_H
#define HPL_GPU_COLUMNS_H

#include <string>

#include "comm.h"
#include "device.h"
#include "grid.h"

namespace hpl {

/// Collective, after comm.use(): joins the devices of each process column if that is possible in every
/// column. Their messages use the pool from `offset` on, which is zeroed. Returns why they cannot be joined,
/// the same text at all ranks; "" if they are joined.
std::string join_column(Comm& comm, Device& device, const Layout& layout, Pool pool, size_t offset);

}  // namespace hpl

#endif
