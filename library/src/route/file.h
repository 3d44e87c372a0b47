// Files of the route layer: read up to a limit, and written so that a reader never sees a partial file.
#pragma once

#include <string>
#include <string_view>

namespace pw::route {

/// Returns the whole file. Throws Error(PW_BAD_TABLE) if it is missing, not a regular file, unreadable, or
/// larger than `most` bytes.
std::string read_file(const std::string& file, size_t most, const std::string& remedy);

/// Writes a new file beside `file` and renames it over `file`; makes missing folders. Throws
/// Error(PW_SYSTEM).
void write_file(const std::string& file, std::string_view text);

}  // namespace pw::route
