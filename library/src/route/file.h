// Files of the route layer: read with a limit, written so that a reader never sees half of one.
#pragma once

#include <string>
#include <string_view>

namespace pw::route {

/// The whole file. Throws Error(PW_BAD_TABLE) when it is missing, no ordinary file, unreadable, or larger
/// than `most` bytes.
std::string read_file(const std::string& file, size_t most, const std::string& remedy);

/// Writes a new file beside `file` and renames it over; missing folders are made. Throws Error(PW_SYSTEM).
void write_file(const std::string& file, std::string_view text);

}  // namespace pw::route
