#include "xacc/runtime/base/failure.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <exception>

#include "peerway/peerway.hpp"

namespace pwx {
namespace {

ErrorAgreement agreement{[] { return false; }, [] {}};

void print(const pwx_where* where, const std::string& text) {
  const std::string line = where != nullptr && where->line > 0
                               ? pwx::text(where->file, ":", where->line, ": error: ", text, "\n")
                               : pwx::text("error: ", text, "\n");
  std::fflush(nullptr);
  std::fputs(line.c_str(), stderr);
  std::fflush(nullptr);
}

}  // namespace

void agree_on_errors_by(const ErrorAgreement& among_ranks) { agreement = among_ranks; }

void end_with(const pwx_where* where, const std::string& text) {
  if (!agreement.another_rank_printed()) {
    print(where, text);
    agreement.tell_other_ranks();
  }
  std::fflush(nullptr);
  ::_exit(1);
}

void end_with_current(const pwx_where* where) {
  constexpr std::string_view kOwn = "peerway: ";
  std::string text;
  try {
    throw;
  } catch (const peerway::Error& error) {
    text = error.what();
    if (text.starts_with(kOwn)) text.erase(0, kOwn.size());
  } catch (const std::exception& error) {
    text = error.what();
  }
  end_with(where, text);
}

}  // namespace pwx

void pwx_error(const pwx_where* where, const char* format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  pwx::end_with(where, text);
}
