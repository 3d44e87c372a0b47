// Sends messages through host memory, for a network that cannot read a GPU's memory.
#ifndef HPL_STAGING_H
#define HPL_STAGING_H

#include <memory>

#include "comm.h"
#include "device.h"

namespace hpl {

/// Returns a network with a mirror of the device's pool on the host: outgoing data is copied there first, and
/// incoming data from there. Both arguments must outlive it.
std::unique_ptr<Comm> through_host(Comm& comm, Device& device);

}  // namespace hpl

#endif
