#include "device/host/host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/format.h"
#include "base/shared_memory.h"
#include "base/status.h"
#include "device/host/copy.h"
#include "device/host/runner.h"

namespace pw {
namespace {

// A copy by the CPU is complete when the call returns, so nothing ever waits in this queue.
class HostQueue final : public Queue {
 public:
  pw_status copy(const Copy& copy, CopyBy) override {
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

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

// The first and the last page must be mapped, because the thread that serves staged transfers accesses them
// for peers.
void check_mapped(const void* address, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uint64_t>(address);
  for (const uint64_t byte : {first, first + bytes - 1}) {
    unsigned char resident;
    if (mincore(reinterpret_cast<void*>(byte / page * page), 1, &resident) != 0 && errno == ENOMEM)
      throw Error(PW_INVALID_ARGUMENT,
                  format("cannot register {} bytes at {}: {:#x} is not memory of this process", bytes,
                         address, byte));
  }
}

std::byte* map_shared(int descriptor, uint64_t bytes, const char* whose) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED)
    throw Error(PW_NO_MEMORY, format("mapping {} bytes of {}{}", bytes, whose, errno_text(errno)));
  return static_cast<std::byte*>(address);
}

// Throws the reason why the shared memory of another process cannot be opened.
[[noreturn]] void refuse_to_open(int error, int process, const std::string& path, const char* whose) {
  if (error == ENOENT && access(format("/proc/{}", process).c_str(), F_OK) != 0)
    throw Error(PW_PEER_LOST, format("{} is gone", whose));
  if (error == ENOENT) throw Error(PW_STALE_KEY, format("{} has closed its shared memory", whose));
  if (error == EMFILE || error == ENFILE)
    throw Error(PW_SYSTEM, format("no descriptor is left to open shared memory of {}{}; raise the "
                                  "limit (ulimit -n)",
                                  whose, errno_text(error)));
  throw Error(PW_DENIED, format("cannot open shared memory of {} at {}{}. Both processes must belong to one "
                                "user and see one another in /proc",
                                whose, path, errno_text(error)));
}

}  // namespace

Descriptor make_memfd(const char* purpose, uint64_t bytes, uint64_t held) {
  Descriptor memory = make_shared_memory(purpose, bytes, held);
  if (!memory) {
    const int error = errno;
    throw Error(error == ENOMEM || error == ENOSPC ? PW_NO_MEMORY : PW_SYSTEM,
                format("no {} bytes of shared memory for {}{}", bytes, purpose, why_no_shared_memory(error)));
  }
  return memory;
}

uint64_t memfd_identity(int descriptor) {
  struct stat status{};
  // Inode numbers are unique only within a file system; all memfds of a kernel share one.
  return fstat(descriptor, &status) == 0 ? status.st_ino * 1099511628211u ^ status.st_dev : 0;
}

std::byte* map_memfd_of(int process, int descriptor, uint64_t identity, uint64_t bytes, const char* whose) {
  const std::string path = format("/proc/{}/fd/{}", process, descriptor);
  const Descriptor own(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!own) refuse_to_open(errno, process, path, whose);
  struct stat status{};
  if (memfd_identity(own.get()) != identity)
    throw Error(PW_STALE_KEY, format("{} has closed its shared memory", whose));
  if (fstat(own.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) < bytes)
    throw Error(PW_BAD_KEY, format("{} is not shared memory of at least {} bytes of {}", path, bytes, whose));
  return map_shared(own.get(), bytes, whose);
}

HostDevice::HostDevice() : name_(cpu_model()) {}

HostDevice::~HostDevice() {
  for (const auto& [base, shared] : shared_) munmap(shared.allocation.base, shared.allocation.bytes);
}

const Allocation* HostDevice::shared_at(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  const auto next = shared_.upper_bound(byte);
  if (next == shared_.begin()) return nullptr;
  const Allocation& allocation = std::prev(next)->second.allocation;
  return byte < allocation.base + allocation.bytes ? &allocation : nullptr;
}

uint64_t HostDevice::allocation_id(const void* address) {
  std::lock_guard lock(mutex_);
  const Allocation* shared = shared_at(address);
  return shared != nullptr ? shared->id : 0;
}

std::optional<Allocation> HostDevice::find(const void* address, uint64_t bytes) {
  {
    std::lock_guard lock(mutex_);
    if (const Allocation* shared = shared_at(address)) return *shared;
  }
  check_mapped(address, bytes);
  // Any other host memory: peers access it by process id and address.
  Allocation allocation;
  allocation.base = static_cast<std::byte*>(const_cast<void*>(address));
  allocation.bytes = bytes;
  allocation.handle = Handle::process;
  return allocation;
}

Allocation HostDevice::allocate(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > UINT64_MAX / 2)
    throw Error(PW_NO_MEMORY, format("cannot allocate {} bytes of host memory", bytes));
  const uint64_t size = std::max<uint64_t>(1, (bytes + page - 1) / page) * page;
  Descriptor descriptor = make_memfd("peerway-region", size);
  Allocation allocation;
  allocation.base = map_shared(descriptor.get(), size, "this process");
  allocation.bytes = size;
  allocation.handle = Handle::memfd;
  std::lock_guard lock(mutex_);
  allocation.id = next_id_++;
  shared_.emplace(allocation.base, Shared{allocation, std::move(descriptor)});
  return allocation;
}

void HostDevice::release(const Allocation& allocation) noexcept {
  std::lock_guard lock(mutex_);
  const auto entry = shared_.find(allocation.base);
  if (entry == shared_.end()) return;
  munmap(entry->second.allocation.base, entry->second.allocation.bytes);
  shared_.erase(entry);
}

Export HostDevice::export_allocation(const Allocation& allocation, const void* address) {
  Export exported = describe(allocation, address);
  if (allocation.handle == Handle::memfd) {
    std::lock_guard lock(mutex_);
    exported.descriptor = shared_.at(allocation.base).descriptor.get();
    const uint64_t identity = memfd_identity(exported.descriptor);
    std::memcpy(exported.handle_bytes.data(), &identity, sizeof identity);
  }
  return exported;
}

std::shared_ptr<Mapping> HostDevice::import(const Export& exported) {
  if (exported.handle != Handle::memfd)
    throw Error(PW_UNSUPPORTED,
                "this memory of the peer was not allocated by pw_region_allocate and cannot be mapped");
  const std::string whose = format("process {}", exported.process);
  uint64_t identity = 0;
  std::memcpy(&identity, exported.handle_bytes.data(), sizeof identity);
  return std::make_shared<MemfdMapping>(
      map_memfd_of(exported.process, exported.descriptor, identity, exported.bytes, whose.c_str()),
      exported.bytes);
}

std::unique_ptr<Queue> HostDevice::make_queue() { return std::make_unique<HostQueue>(); }

void* HostDevice::make_stream() {
  auto stream = std::make_unique<HostStream>();
  std::lock_guard lock(mutex_);
  void* const name = stream.get();
  streams_.emplace(name, std::move(stream));
  return name;
}

void HostDevice::free_stream(void* stream) noexcept {
  // Destroyed after the lock is released, because its thread may have much to do before it ends.
  std::unique_ptr<HostStream> freed;
  std::lock_guard lock(mutex_);
  const auto entry = streams_.find(stream);
  if (entry == streams_.end()) return;
  freed = std::move(entry->second);
  streams_.erase(entry);
  // A call in the stream released the stream's last owner, so another thread must wait for this thread's end.
  if (freed->runs_this_thread()) std::thread([held = std::move(freed)] {}).detach();
}

bool HostDevice::owns_stream(void* stream, std::string& why_not) {
  std::lock_guard lock(mutex_);
  if (streams_.contains(stream)) return true;
  why_not = stream == nullptr ? "the host has no default stream; make one with pw_stream_create"
                              : "it did not come from pw_stream_create for the host";
  return false;
}

pw_status HostDevice::call(void* stream, void (*function)(void*), void* user) {
  static_cast<HostStream*>(stream)->enqueue([function, user] { function(user); });
  return PW_OK;
}

pw_status HostDevice::copy_on(void* stream, const FlatCopy& copy) {
  if (copy.bytes == 0) return PW_OK;  // then the addresses may be null
  static_cast<HostStream*>(stream)->enqueue([copy] { std::memcpy(copy.to, copy.from, copy.bytes); });
  return PW_OK;
}

bool HostDevice::stream_idle(void* stream, pw_status& status) {
  status = PW_OK;
  return static_cast<HostStream*>(stream)->idle();
}

std::unique_ptr<Runner> HostDevice::make_runner(const Program& program) { return make_host_runner(program); }

void HostDevice::clear(void* address, uint64_t bytes) { std::memset(address, 0, bytes); }

bool HostDevice::reaches(const Export& exported, std::string& why_not) const {
  if (exported.handle == Handle::memfd || exported.process == getpid()) return true;
  why_not = "the CPU can map only host memory that came from pw_region_allocate";
  return false;
}

std::vector<std::unique_ptr<Device>> find_host(std::string&) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<HostDevice>());
  return devices;
}

}  // namespace pw
