// Structs that a program fills in and that begin with their size. So a program built with an older header
// runs with this library, and so does one built with a newer header unless it uses new members.
#pragma once

#include <cstddef>
#include <optional>

namespace pw {

/// Lets sized() convert a struct of another size: copies what both know and leaves the rest zero. Throws
/// Error for a size that no version had, and for members that this library does not know.
void copy_sized(void* to, size_t our_size, const void* from, size_t from_size, size_t first_size,
                const char* name);

/// The struct as this library knows it: the given one, or a copy in `room` where its size differs.
/// `first_size`: what it had in the first version. Throws Error.
template <typename Struct>
const Struct* sized(const Struct* given, std::optional<Struct>& room, const char* name,
                    size_t first_size = sizeof(Struct)) {
  if (given->size == sizeof(Struct)) return given;
  copy_sized(&room.emplace(), sizeof(Struct), given, given->size, first_size, name);
  return &*room;
}

}  // namespace pw
