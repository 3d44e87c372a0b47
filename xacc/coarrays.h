// Coarrays: memory that all images put to and get from.
#pragma once

namespace pwx {

void free_coarrays();

}  // namespace pwx
