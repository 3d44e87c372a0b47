// Coarrays: memory that all images put to and get from.
#pragma once

namespace pwx {

void free_coarrays();
void free_locks();

}  // namespace pwx
