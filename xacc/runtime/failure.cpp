#include "xacc/runtime/failure.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <thread>

#include "xacc/runtime/program.h"

namespace pwx {
namespace {

constexpr auto kTurn = std::chrono::milliseconds(150);

/// Those before this rank in the executing set may find the same: the first says it, and that it did.
bool said_by_another(const Program& program) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::clamp(program.executing().index, 0, 4) * kTurn;
  while (!program.mail.farewell_heard()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

void print(const pwx_where* where, const std::string& text) {
  const std::string line = where != nullptr && where->line > 0
                               ? pwx::text(where->file, ":", where->line, ": error: ", text, "\n")
                               : pwx::text("error: ", text, "\n");
  std::fflush(nullptr);
  std::fputs(line.c_str(), stderr);
  std::fflush(nullptr);
}

}  // namespace

void end_with(const pwx_where* where, const std::string& text) {
  Program* program = program_if_begun();
  if (program == nullptr || !said_by_another(*program)) {
    print(where, text);
    if (program != nullptr) program->mail.say_farewell();
  }
  std::fflush(nullptr);
  ::_exit(1);
}

void end_with_current(const pwx_where* where) {
  constexpr std::string_view kOwn = "peerway: ";
  std::string said;
  try {
    throw;
  } catch (const peerway::Error& error) {
    said = error.what();
    if (said.starts_with(kOwn)) said.erase(0, kOwn.size());
  } catch (const std::exception& error) {
    said = error.what();
  }
  end_with(where, said);
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
