// Failures inside the library. Control paths (set-up, registration) throw Error; data paths return a
// pw_status and store the message in a thread-local, which pw_error_message() reads. Either way the message
// states what was asked, what was found, and what to do. Only pw_error_message(), the Python module and the
// log put the name of the library in front of it.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/forked.h"
#include "peerway/peerway.h"

namespace pw {

/// What the library throws internally. The C interface turns it into a status and a message, and the C++
/// interface turns these into a peerway::Error.
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

/// Returns the message of this thread's last failure; empty if there was none.
const char* last_error_message() noexcept;

/// Returns the same with the name of the library in front, as users see it.
const char* last_error_message_with_name() noexcept;

/// Returns ": No such file or directory (errno 2)" for `error` 2.
std::string errno_text(int error);

/// Whether none of the pointers passed to a C function is null.
template <typename... Pointers>
bool given(Pointers... pointers) noexcept {
  return ((pointers != nullptr) && ...);
}

/// Fails because this is a forked child (PW_UNSUPPORTED) or because the C function `function` was given a
/// null pointer (PW_INVALID_ARGUMENT).
pw_status refuse_call(const char* function) noexcept;

/// Runs `body` at the C boundary: an exception becomes a status and a message, and nothing ever escapes.
template <typename Body>
pw_status catch_errors(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(PW_NO_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return fail(PW_INTERNAL, std::string("unexpected failure: ") + error.what());
  } catch (...) {  // a callback of the program may throw anything
    return fail(PW_INTERNAL, "an exception that is not a std::exception was thrown");
  }
}

/// The same for a C function that needs pointers; `all_given` says whether it got them. Fails in a forked
/// child.
template <typename Body>
pw_status catch_errors(const char* function, bool all_given, Body&& body) noexcept {
  return all_given && !in_forked_child() ? catch_errors(std::forward<Body>(body)) : refuse_call(function);
}

}  // namespace pw
