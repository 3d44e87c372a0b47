// How things fail inside the library. Control paths (set-up, registration) throw Error; data paths return a
// pw_status and leave the message in a thread-local place, where pw_error_message() finds it. Either way the
// message says what was asked, what was found, and what to do.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "peerway/peerway.h"

namespace pw {

class Error : public std::exception {
 public:
  Error(pw_status status, std::string message) : status_(status), message_(std::move(message)) {}
  [[nodiscard]] pw_status status() const noexcept { return status_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  pw_status status_;
  std::string message_;
};

/// Keeps `message` for pw_error_message() of this thread and returns `status`.
pw_status fail(pw_status status, std::string message) noexcept;

/// The message of this thread's last failure; empty when there was none.
const char* last_error_message() noexcept;

/// ": No such file or directory (errno 2)" for the errno given.
std::string errno_text(int error);

/// Runs `body` at the C boundary: an exception becomes a status and a message, and nothing ever escapes.
template <typename Body>
pw_status guard(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(PW_NO_MEMORY, "peerway: out of host memory");
  } catch (const std::exception& error) {
    return fail(PW_INTERNAL, std::string("peerway: unexpected failure: ") + error.what());
  }
}

}  // namespace pw
