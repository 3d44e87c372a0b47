// Messages for the user, on standard error. Standard output belongs to the program.
#pragma once

#include <string_view>

namespace pw {

enum class LogLevel { error, warning, info, debug };

/// Writes `peerway: message` when `level` is within PEERWAY_LOG.
void log(LogLevel level, std::string_view message);

/// Like log(), but writes each distinct message only once in the life of the process.
void log_once(LogLevel level, std::string_view message);

}  // namespace pw
