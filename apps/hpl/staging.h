// For a network that cannot read a GPU's memory: messages go through host memory.
#ifndef HPL_STAGING_H
#define HPL_STAGING_H

#include <memory>

#include "comm.h"
#include "device.h"

namespace hpl {

/// The same network, with a mirror of the device's pool on the host: what is sent is copied there first, and
/// what has come from there. Both must outlive it.
std::unique_ptr<Comm> through_host(Comm& comm, Device& device);

}  // namespace hpl

#endif
