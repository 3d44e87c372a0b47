#include "torus/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/status.h"
#include "torus/failure.h"

namespace pw::torus {
namespace {

constexpr uint32_t kKeyMagic = 0x4b525450;  // "PTRK"

bool is_memory(const void* address, uint64_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(address);
  for (const uintptr_t byte : {first, first + bytes - 1}) {
    unsigned char resident;
    if (mincore(reinterpret_cast<void*>(byte / page * page), 1, &resident) != 0 && errno == ENOMEM)
      return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<Memory> make_memory(const pw_nic_span& span, uint32_t slot, uint32_t generation) {
  const auto first = reinterpret_cast<uintptr_t>(span.address);
  if (span.bytes == 0 || first == 0 || first + span.bytes < first)
    throw Failure(PW_NIC_INVALID,
                  format("torus: {} bytes at {} cannot be registered", span.bytes, span.address));
  if (span.kind == PW_NIC_HOST && !is_memory(span.address, span.bytes))
    throw Failure(PW_NIC_REFUSED,
                  format("torus: {} bytes at {} are not memory of this process", span.bytes, span.address));
  auto memory = std::make_shared<Memory>();
  memory->address = static_cast<std::byte*>(span.address);
  memory->bytes = span.bytes;
  memory->kind = span.kind;
  memory->device = span.device;
  memory->slot = slot;
  memory->generation = generation;
  memory->descriptor_offset = span.descriptor_offset;
  if (span.kind == PW_NIC_HOST && span.descriptor >= 0)
    memory->descriptor = Descriptor(fcntl(span.descriptor, F_DUPFD_CLOEXEC, 0));
  return memory;
}

void write_key(const Memory& memory, uint32_t number, pw_nic_key& key) {
  Key out{};
  out.magic = kKeyMagic;
  out.number = number;
  out.slot = memory.slot;
  out.generation = memory.generation;
  out.bytes = memory.bytes;
  out.address = reinterpret_cast<uint64_t>(memory.address);
  out.process = getpid();
  out.descriptor = memory.descriptor.get();
  out.descriptor_offset = memory.descriptor_offset;
  out.kind = memory.kind;
  struct stat status{};
  if (memory.descriptor && fstat(memory.descriptor.get(), &status) == 0) out.inode = status.st_ino;
  key.length = sizeof out;
  std::memcpy(key.bytes, &out, sizeof out);
}

bool read_key(const pw_nic_key& bytes, Key& key) {
  if (bytes.length != sizeof key) return false;
  std::memcpy(&key, bytes.bytes, sizeof key);
  return key.magic == kKeyMagic && key.slot < kSlots && key.generation % 2 == 1 &&
         key.address + key.bytes >= key.address;
}

PeerMemory::PeerMemory(const Key& key, const std::atomic<uint32_t>* generation, bool attach) : key_(key) {
  if (generation == nullptr || key.kind != PW_NIC_HOST) return;
  generation_ = generation;
  if (key.process == getpid())
    mapped_ = reinterpret_cast<std::byte*>(key.address);
  else if (key.descriptor >= 0)
    map();
  attach_ = attach;
}

PeerMemory::~PeerMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

// On any failure the memory is reached in other ways.
void PeerMemory::map() {
  const std::string path = format("/proc/{}/fd/{}", key_.process, key_.descriptor);
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0 || status.st_ino != key_.inode || !S_ISREG(status.st_mode))
    return;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = key_.descriptor_offset % page;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (key_.descriptor_offset > size || key_.bytes > size - key_.descriptor_offset) return;
  void* address = mmap(nullptr, before + key_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                       static_cast<off_t>(key_.descriptor_offset - before));
  if (address == MAP_FAILED) return;
  mapping_ = address;
  mapping_bytes_ = before + key_.bytes;
  mapped_ = static_cast<std::byte*>(address) + before;
}

// The order must be sequentially consistent: the owner changes the generation and then reads `touching`.
bool PeerMemory::touch(std::atomic<uint64_t>& touching) const {
  touching.store(Directory::tag(key_.number, key_.slot), std::memory_order_seq_cst);
  if (generation_->load(std::memory_order_seq_cst) == key_.generation) return true;
  touching.store(0, std::memory_order_release);
  return false;
}

pw_nic_status PeerMemory::put(uint64_t offset, const void* data, uint64_t bytes,
                              std::atomic<uint64_t>& touching) const {
  if (!touch(touching)) return PW_NIC_REFUSED;
  pw_nic_status status = PW_NIC_OK;
  if (mapped_ != nullptr)
    copy_whole_words(mapped_ + offset, data, bytes);
  else
    status = attach(true, offset, const_cast<void*>(data), bytes);
  touching.store(0, std::memory_order_release);
  return status;
}

pw_nic_status PeerMemory::get(uint64_t offset, void* data, uint64_t bytes,
                              std::atomic<uint64_t>& touching) const {
  if (!touch(touching)) return PW_NIC_REFUSED;
  pw_nic_status status = PW_NIC_OK;
  if (mapped_ != nullptr)
    copy_whole_words(data, mapped_ + offset, bytes);
  else
    status = attach(false, offset, data, bytes);
  touching.store(0, std::memory_order_release);
  return status;
}

pw_nic_status PeerMemory::attach(bool put, uint64_t offset, void* data, uint64_t bytes) const {
  auto* local = static_cast<std::byte*>(data);
  uint64_t remote = key_.address + offset;
  while (bytes > 0) {
    const iovec here{local, bytes}, there{reinterpret_cast<void*>(remote), bytes};
    const auto call = put ? process_vm_writev : process_vm_readv;
    const ssize_t moved = call(key_.process, &here, 1, &there, 1, 0);
    if (moved <= 0) return moved < 0 && errno == ESRCH ? PW_NIC_UNREACHABLE : PW_NIC_REFUSED;
    local += moved, remote += static_cast<uint64_t>(moved), bytes -= static_cast<uint64_t>(moved);
  }
  return PW_NIC_OK;
}

void copy_whole_words(void* to, const void* from, uint64_t bytes) {
  std::atomic_thread_fence(std::memory_order_acq_rel);
  if (bytes == 8 && (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 8 == 0) {
    const uint64_t word = __atomic_load_n(static_cast<const uint64_t*>(from), __ATOMIC_ACQUIRE);
    __atomic_store_n(static_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
    return;
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
}

bool may_attach(int process, uint64_t address, uint64_t expected) {
  uint64_t value = 0;
  const iovec here{&value, sizeof value}, there{reinterpret_cast<void*>(address), sizeof value};
  return process_vm_readv(process, &here, 1, &there, 1, 0) == sizeof value && value == expected;
}

}  // namespace pw::torus
