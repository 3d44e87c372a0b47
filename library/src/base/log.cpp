#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "base/setting.h"
#include "base/status.h"

namespace pw {
namespace settings {

const ChoiceSetting<LogLevel> log{"log", "error|warning|info|debug", "warning",
                                  "Messages of this level and more severe ones go to standard error."};

}  // namespace settings

void log(LogLevel level, std::string_view message) {
  static const LogLevel limit = [] {
    try {
      return settings::log.value();
    } catch (const Error&) {  // check_settings() reports it; logging itself must not fail
      return LogLevel::warning;
    }
  }();
  if (level > limit) return;
  std::fprintf(stderr, "peerway: %.*s\n", static_cast<int>(message.size()), message.data());
}

void log_once(LogLevel level, std::string_view message) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> seen;
  {
    std::lock_guard lock(mutex);
    if (!seen.emplace(message).second) return;
  }
  log(level, message);
}

}  // namespace pw
