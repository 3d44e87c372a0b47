// Errors are exceptions inside the run-time library. At its border they become one line and the end of the
// job.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// An error of the program. The text says what was requested, what was found and what to do; not where.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Joins its arguments, such as "a", 3, " of ", 4, to one text.
template <typename Piece>
void add_to(std::string& text, const Piece& more) {
  if constexpr (std::is_convertible_v<Piece, std::string_view>)
    text += std::string_view(more);
  else
    text += std::to_string(more);
}
template <typename... Pieces>
std::string text(const Pieces&... pieces) {
  std::string all;
  (add_to(all, pieces), ...);
  return all;
}
template <typename... Pieces>
[[noreturn]] void refuse(const Pieces&... pieces) {
  throw Failure(text(pieces...));
}

/// How ranks that may find the same error agree which one prints it. The program sets this when it begins; a
/// process without a program prints its own errors.
struct ErrorAgreement {
  bool (*another_rank_printed)();  ///< waits briefly for ranks that have precedence
  void (*tell_other_ranks)();
};
void agree_on_errors_by(const ErrorAgreement& agreement);

/// Prints "file:line: error: text" and ends this process with status 1. If all ranks of the executing set
/// find the same error, only one prints it.
[[noreturn]] void end_with(const pwx_where* where, const std::string& text);

/// Ends the job with the current exception as its error. Call it in a catch block.
[[noreturn]] void end_with_current(const pwx_where* where);

/// Encloses the body of each function of runtime.h that can fail: an exception ends the job.
template <typename Body>
auto guarded(const pwx_where* where, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    end_with_current(where);
  }
}

}  // namespace pwx
