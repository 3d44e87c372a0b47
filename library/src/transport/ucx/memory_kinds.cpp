#include "transport/ucx/memory_kinds.h"

#include "device/kinds.h"

namespace pw::ucx {

std::string_view memory_name(std::string_view kind) { return kind == "hip" ? "rocm" : kind; }

uint32_t kinds_among(uint64_t memory_types, const char* const* names) {
  uint32_t mask = 0;
  if (names == nullptr) return mask;
  const auto kinds = device_kinds();
  for (int type = 0; type < 64; ++type)
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      if ((memory_types >> type & 1) != 0 && memory_name(kinds[kind].name) == names[type]) mask |= 1u << kind;
  return mask;
}

}  // namespace pw::ucx
