#include "memory/described.h"

#include "base/format.h"
#include "memory/region.h"
#include "memory/remote.h"

namespace pw {

Described described(const Remote& remote) {
  return {remote.bytes(), remote.key.access, &remote, [](const void* object) {
            const auto& it = *static_cast<const Remote*>(object);
            return format("remote region ({} bytes, rank {}, key v1)", it.bytes(), it.rank());
          }};
}

Described described(const Region& region) {
  return {region.bytes(), region.access(), &region, [](const void* object) {
            const auto& it = *static_cast<const Region*>(object);
            return format("local region ({} bytes on {})", it.bytes(), to_string(it.device().id()));
          }};
}

}  // namespace pw
