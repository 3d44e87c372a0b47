// Structs that a program fills in and that begin with their size. A program built with an older header runs
// with this library, and so does one built with a newer header unless it uses new members.
#pragma once

#include <cstddef>
#include <optional>

namespace pw {

/// Converts a struct of another size for sized(): copies the members that both know and zeroes the rest.
/// Throws Error for a size that no version had, and for non-zero members that this library does not know.
void copy_sized(void* to, size_t our_size, const void* from, size_t from_size, size_t first_size,
                const char* name);

/// Returns the struct as this library knows it: `given`, or a converted copy in `room` if its size differs.
/// `first_size` is its size in the first version. Throws Error.
template <typename Struct>
const Struct* sized(const Struct* given, std::optional<Struct>& room, const char* name,
                    size_t first_size = sizeof(Struct)) {
  if (given->size == sizeof(Struct)) return given;
  copy_sized(&room.emplace(), sizeof(Struct), given, given->size, first_size, name);
  return &*room;
}

}  // namespace pw
