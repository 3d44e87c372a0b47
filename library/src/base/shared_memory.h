// Shared memory without a name: no file system shows it, and it is gone with the last process that has it.
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace pw {

/// `purpose` is what /proc shows. Nobody who has it can change its size. The first `held` bytes have memory
/// from the beginning: where memory comes only at the first touch and there is none, the process ends by a
/// signal. None, with errno, where it cannot be made.
Descriptor make_shared_memory(const char* purpose, uint64_t bytes, uint64_t held = 0);

/// Whether these bytes of it have memory from now on; else errno says why not.
bool hold_memory(const Descriptor& shared, uint64_t offset, uint64_t bytes);

/// ": File too large (errno 27); raise ...", for the errno of those above.
std::string why_no_shared_memory(int error);

}  // namespace pw
