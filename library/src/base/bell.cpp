#include "base/bell.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

Descriptor open_both(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

bool identify(int descriptor, uint64_t& identity) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  identity = status.st_ino;
  return true;
}

}  // namespace

Bell::Bell() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
    Descriptor read(ends[0]);
    const Descriptor write(ends[1]), both = open_both(format("/proc/self/fd/{}", ends[0]));
    if (both && dup3(both.get(), read.get(), O_CLOEXEC) >= 0) pipe_ = std::move(read);  // the lowest number
  }
  if (!pipe_) throw Error(PW_SYSTEM, "no pipe can be opened" + errno_text(errno));
}

Bell::Bell(int process, int number, uint64_t identity) {
  const std::string path = format("/proc/{}/fd/{}", process, number);
  pipe_ = open_both(path);
  if (!pipe_)
    throw Error(errno == EACCES ? PW_DENIED : PW_SYSTEM,
                format("the bell of process {} cannot be opened ({}){}", process, path, errno_text(errno)));
  uint64_t current = 0;
  if (!identify(pipe_.get(), current) || current != identity)
    throw Error(PW_PEER_LOST, format("process {} has closed its bell ({})", process, path));
}

uint64_t Bell::identity() const {
  uint64_t identity = 0;
  identify(pipe_.get(), identity);
  return identity;
}

// A full pipe means that it was already written to.
void Bell::ring() const noexcept {
  const char byte = 0;
  while (write(pipe_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
}

void Bell::clear() const noexcept {
  char bytes[256];
  for (;;) {
    const ssize_t got = read(pipe_.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof bytes)) return;
  }
}

}  // namespace pw
