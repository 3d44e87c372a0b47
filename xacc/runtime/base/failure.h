// Errors: thrown inside the runtime, and turned into one line and the end of the job at its border.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// An error of the program. It says what was asked, what was found and what to do, without the place.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "a", 3, " of ", 4 as one text.
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

/// How ranks that may find the same error agree that one of them prints it. The program sets it when it
/// begins; a process without one prints its own errors.
struct ErrorAgreement {
  bool (*another_rank_printed)();  ///< waits a moment for ranks that come first
  void (*tell_other_ranks)();
};
void agree_on_errors_by(const ErrorAgreement& agreement);

/// Prints "file:line: error: text" and ends this process with status 1. Where all ranks of the executing set
/// find the same, one of them prints.
[[noreturn]] void end_with(const pwx_where* where, const std::string& text);

/// Whatever escapes ends the job. Called in a catch block.
[[noreturn]] void end_with_current(const pwx_where* where);

/// Around the body of each function of runtime.h that can fail.
template <typename Body>
auto guarded(const pwx_where* where, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    end_with_current(where);
  }
}

}  // namespace pwx
