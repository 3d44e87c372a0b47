#include "context/sized.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "base/status.h"

namespace pw {

void copy_sized(void* to, size_t our_size, const void* from, size_t from_size, size_t first_size,
                const char* name) {
  constexpr size_t kLargest = 1 << 16;
  if (from_size < first_size || from_size > kLargest)
    throw Error(PW_INVALID_ARGUMENT, format("a {} whose member `size` is {}; set it to sizeof({}), here {}",
                                            name, from_size, name, our_size));
  const auto* bytes = static_cast<const unsigned char*>(from);
  if (from_size > our_size &&
      std::any_of(bytes + our_size, bytes + from_size, [](unsigned char byte) { return byte != 0; }))
    throw Error(PW_UNSUPPORTED, format("a {} of {} bytes with members that this library, {}, does "
                                       "not know: it has {} bytes here. Leave them zero, or install the "
                                       "version that the program was built with",
                                       name, from_size, pw_version(), our_size));
  const size_t both = std::min(our_size, from_size);
  std::memset(to, 0, our_size);
  std::memcpy(to, from, both);
  std::memcpy(to, &our_size, sizeof our_size);
}

}  // namespace pw
