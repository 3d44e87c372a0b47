// Shared memory without a name: no file system shows it, and it is gone with the last process that has it.
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace pw {

/// Makes shared memory; /proc shows `purpose`. Nobody can change its size. The first `held` bytes are
/// allocated at once: memory that is only allocated at the first access ends the process by a signal if there
/// is none left. Returns no descriptor, with the reason in errno, on failure.
Descriptor make_shared_memory(const char* purpose, uint64_t bytes, uint64_t held = 0);

/// Allocates these bytes of it now; returns false, with the reason in errno, on failure.
bool hold_memory(const Descriptor& shared, uint64_t offset, uint64_t bytes);

/// Returns a text for the errno of the functions above: ": File too large (errno 27); raise ...".
std::string why_no_shared_memory(int error);

}  // namespace pw
