// What reduction and bcast with acc keep on the GPU.
#pragma once

namespace pwx {

/// Before the context ends.
void free_exchanges();

}  // namespace pwx
