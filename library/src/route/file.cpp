// Reads whole files, and writes them atomically.
#include "route/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/status.h"

namespace pw::route {
namespace {

[[noreturn]] void cannot_write(const std::string& file, const std::string& step, int error) {
  throw Error(PW_SYSTEM, format("cannot write {}: {}{}; choose a folder that you may write to", file, step,
                                errno_text(error)));
}

/// Returns false, with errno set, if not all of it could be written.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

std::string read_file(const std::string& file, size_t most, const std::string& remedy) {
  const auto bad = [&](const std::string& problem) {
    return Error(PW_BAD_TABLE, format("{}: {}; {}", file, problem, remedy));
  };
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!in) throw bad("cannot be opened" + errno_text(errno));
  struct stat facts{};
  if (::fstat(in.get(), &facts) != 0) throw bad("cannot be examined" + errno_text(errno));
  if (!S_ISREG(facts.st_mode)) throw bad("is not an ordinary file");
  const auto too_large = [&](size_t bytes) {
    return bad(format("is {} bytes large; at most {} are allowed", bytes, most));
  };
  if (static_cast<uint64_t>(facts.st_size) > most) throw too_large(static_cast<size_t>(facts.st_size));
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(in.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw bad("cannot be read" + errno_text(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > most) throw too_large(text.size());
  }
}

void write_file(const std::string& file, std::string_view text) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) cannot_write(file, format("the folder {} cannot be made", folder.string()), error.value());

  // A symbolic link is kept, and its target replaced.
  const std::filesystem::path target = std::filesystem::weakly_canonical(file, error);
  if (error) cannot_write(file, "its folder cannot be found", error.value());
  if (std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error))
    throw Error(PW_SYSTEM, format("cannot write {}: it is not an ordinary file; name another", file));

  std::string temporary = target.string() + ".XXXXXX";
  const Descriptor out(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!out) cannot_write(file, "no new file can be made there", errno);
  const bool written = ::fchmod(out.get(), 0644) == 0 && write_all(out.get(), text) &&
                       ::fsync(out.get()) == 0 && ::rename(temporary.c_str(), target.c_str()) == 0;
  if (written) return;
  const int cause = errno;
  ::unlink(temporary.c_str());
  cannot_write(file, "writing failed", cause);
}

}  // namespace pw::route
