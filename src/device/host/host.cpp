#include "device/host/host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>

#include "base/format.h"
#include "base/status.h"
#include "device/host/copy.h"

namespace pw {
namespace {

// A copy by the processor is complete when the call returns, so this queue is never longer than one entry.
class HostQueue final : public Queue {
 public:
  pw_status copy(const Copy& copy, Method) override {
    host_copy(copy);
    return PW_OK;
  }
  pw_status write(uint64_t* word, uint64_t value) override {
    std::atomic_ref(*word).store(value, std::memory_order_release);
    return PW_OK;
  }
  bool idle(pw_status& status) override {
    status = PW_OK;
    return true;
  }
};

class MemfdMapping final : public Mapping {
 public:
  MemfdMapping(std::byte* address, uint64_t bytes) : bytes_(bytes) { address_ = address; }
  ~MemfdMapping() override { munmap(address_, bytes_); }

 private:
  uint64_t bytes_;
};

std::string processor_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

uint64_t inode_of(int descriptor) {
  struct stat status{};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

int make_memfd(const char* purpose, uint64_t bytes) {
  const int descriptor = memfd_create(purpose, MFD_CLOEXEC);
  if (descriptor < 0)
    throw Error(PW_SYSTEM, format("peerway: memfd_create for {}{}", purpose, errno_text(errno)));
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    close(descriptor);
    throw Error(PW_NO_MEMORY,
                format("peerway: {} bytes of shared memory for {}{}", bytes, purpose, errno_text(error)));
  }
  return descriptor;
}

std::byte* map_memfd_of(int process, int descriptor, uint64_t bytes, const char* whose) {
  const std::string path = format("/proc/{}/fd/{}", process, descriptor);
  const int own = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0)
    throw Error(errno == ENOENT ? PW_PEER_LOST : PW_DENIED,
                format("peerway: cannot open shared memory of {} at {}{}. Both processes must belong to one "
                       "user and see "
                       "one another in /proc",
                       whose, path, errno_text(errno)));
  struct stat status{};
  if (fstat(own, &status) != 0 || !S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) < bytes) {
    close(own);
    throw Error(PW_BAD_KEY,
                format("peerway: {} is not shared memory of at least {} bytes of {}", path, bytes, whose));
  }
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
  const int error = errno;
  close(own);
  if (address == MAP_FAILED)
    throw Error(PW_NO_MEMORY, format("peerway: mapping {} bytes of {}{}", bytes, whose, errno_text(error)));
  return static_cast<std::byte*>(address);
}

HostDevice::HostDevice() : name_(processor_model()) {}

HostDevice::~HostDevice() {
  for (auto& [base, shared] : shared_) {
    munmap(shared.allocation.base, shared.allocation.bytes);
    close(shared.descriptor);
  }
}

std::optional<Allocation> HostDevice::find(const void* address, uint64_t) {
  const auto* byte = static_cast<const std::byte*>(address);
  std::lock_guard lock(mutex_);
  auto next = shared_.upper_bound(byte);
  if (next != shared_.begin()) {
    const Allocation& found = std::prev(next)->second.allocation;
    if (byte < found.base + found.bytes) return found;
  }
  // Any other host memory: peers reach it by process and address.
  Allocation allocation;
  allocation.base = const_cast<std::byte*>(byte);
  allocation.bytes = UINT64_MAX;
  allocation.handle = Handle::process;
  return allocation;
}

Allocation HostDevice::allocate(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > UINT64_MAX / 2)
    throw Error(PW_NO_MEMORY, format("peerway: cannot allocate {} bytes of host memory", bytes));
  const uint64_t size = std::max<uint64_t>(1, (bytes + page - 1) / page) * page;
  const int descriptor = make_memfd("peerway-region", size);
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    close(descriptor);
    throw Error(PW_NO_MEMORY, format("peerway: mapping {} bytes of host memory{}", size, errno_text(error)));
  }
  Allocation allocation;
  allocation.base = static_cast<std::byte*>(address);
  allocation.bytes = size;
  allocation.handle = Handle::memfd;
  std::lock_guard lock(mutex_);
  allocation.id = next_id_++;
  shared_.emplace(allocation.base, Shared{allocation, descriptor});
  return allocation;
}

void HostDevice::release(const Allocation& allocation) noexcept {
  std::lock_guard lock(mutex_);
  const auto found = shared_.find(allocation.base);
  if (found == shared_.end()) return;
  munmap(found->second.allocation.base, found->second.allocation.bytes);
  close(found->second.descriptor);
  shared_.erase(found);
}

Export HostDevice::export_allocation(const Allocation& allocation, const void* address) {
  Export exported;
  exported.handle = allocation.handle;
  exported.allocation = allocation.id;
  exported.bytes = allocation.bytes;
  exported.offset = static_cast<uint64_t>(static_cast<const std::byte*>(address) - allocation.base);
  exported.process = getpid();
  exported.address = reinterpret_cast<uint64_t>(address);
  if (allocation.handle == Handle::memfd) {
    std::lock_guard lock(mutex_);
    exported.descriptor = shared_.at(allocation.base).descriptor;
    // The inode number lets the importer see that the number still means the same memory.
    const uint64_t inode = inode_of(exported.descriptor);
    std::memcpy(exported.handle_bytes.data(), &inode, sizeof inode);
  }
  return exported;
}

std::shared_ptr<Mapping> HostDevice::import(const Export& exported) {
  if (exported.handle != Handle::memfd)
    throw Error(PW_UNSUPPORTED,
                "peerway: this memory of the peer was not allocated by pw_allocate and cannot be mapped");
  const std::string whose = format("process {}", exported.process);
  std::byte* address = map_memfd_of(exported.process, exported.descriptor, exported.bytes, whose.c_str());
  auto mapping = std::make_shared<MemfdMapping>(address, exported.bytes);
  uint64_t inode = 0;
  std::memcpy(&inode, exported.handle_bytes.data(), sizeof inode);
  const std::string path = format("/proc/{}/fd/{}", exported.process, exported.descriptor);
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || status.st_ino != inode)
    throw Error(PW_STALE_KEY, format("peerway: the shared memory behind this key was closed by {}", whose));
  return mapping;
}

std::unique_ptr<Queue> HostDevice::make_queue() { return std::make_unique<HostQueue>(); }

bool HostDevice::reaches(const Export& exported, std::string& why_not) const {
  if (exported.handle == Handle::memfd) return true;
  why_not = "the processor can map only host memory that came from pw_allocate";
  return false;
}

}  // namespace pw
