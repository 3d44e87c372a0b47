#include "base/status.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace pw {
namespace {

constexpr std::string_view kName = "peerway: ";

thread_local bool message_ended = false;
struct Message {
  std::string text;
  ~Message() { message_ended = true; }
};

/// The last message of this thread. Functions of atexit run in a thread whose thread-local objects are
/// already destroyed: an error there gets a string of its own, which is never destroyed.
std::string& last_message() noexcept {
  thread_local Message message;
  alignas(std::string) thread_local std::byte room[sizeof(std::string)];
  thread_local std::string* late = nullptr;
  if (!message_ended) return message.text;
  if (late == nullptr) late = new (room) std::string;
  return *late;
}

}  // namespace

pw_status fail(pw_status status, std::string message) noexcept {
  last_message() = std::move(message.insert(0, kName));
  return status;
}

pw_status refuse_call(const char* function) noexcept {
  return catch_errors([&] {
    refuse_in_forked_child(function);
    return fail(PW_INVALID_ARGUMENT, std::string("") + function + " was given a null pointer");
  });
}

const char* last_error_message() noexcept {
  const std::string& message = last_message();
  return message.empty() ? "" : message.c_str() + kName.size();
}

const char* last_error_message_with_name() noexcept { return last_message().c_str(); }

std::string errno_text(int error) {
  char buffer[128];
  return std::string(": ") + strerror_r(error, buffer, sizeof buffer) + " (errno " + std::to_string(error) +
         ")";
}

}  // namespace pw
