#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"

namespace pw {
namespace {

// Seals the size, so that nobody can shrink the file; a shrunk file would end processes that access it by
// SIGBUS.
bool seal_size(const Descriptor& shared) {
  return fcntl(shared.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

}  // namespace

Descriptor make_shared_memory(const char* purpose, uint64_t bytes, uint64_t held) {
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes) {  // the kernel would send SIGXFSZ
    errno = EFBIG;
    return {};
  }
  Descriptor memory(memfd_create(purpose, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || (ftruncate(memory.get(), static_cast<off_t>(bytes)) == 0 && seal_size(memory) &&
                  hold_memory(memory, 0, held)))
    return memory;
  const int error = errno;
  memory.reset();
  errno = error;
  return memory;
}

bool hold_memory(const Descriptor& shared, uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return true;
  int result = 0;
  do result = fallocate(shared.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (result != 0 && errno == EINTR);
  return result == 0;
}

std::string why_no_shared_memory(int error) {
  const char* remedy = "";
  if (error == EFBIG) remedy = "; raise the limit of a process's files (ulimit -f)";
  if (error == EMFILE) remedy = "; raise the limit of a process's descriptors (ulimit -n)";
  if (error == ENOSPC || error == ENOMEM) remedy = "; there is no memory left";
  return errno_text(error) + remedy;
}

}  // namespace pw
