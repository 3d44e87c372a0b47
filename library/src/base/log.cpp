#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "base/config.h"
#include "base/status.h"

namespace pw {

void log(LogLevel level, std::string_view message) {
  static const int limit = [] {
    std::string name;
    try {
      name = config("log");
    } catch (const Error&) {  // check_config() reports it; logging itself must not fail
    }
    const char* names[] = {"error", "warning", "info", "debug"};
    for (int i = 0; i < 4; ++i)
      if (name == names[i]) return i;
    return 1;
  }();
  if (static_cast<int>(level) > limit) return;
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
