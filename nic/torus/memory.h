// Registered memory, its keys, and how a process accesses memory of another process on its host: by mapping
// the file behind it, or by cross-memory attach. Everything else goes by datagrams.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/descriptor.h"
#include "peerway/nic.h"
#include "torus/directory.h"

namespace pw::torus {

/// The contents of a key; plain bytes.
struct Key {
  uint32_t magic;
  uint32_t number;  ///< number of the endpoint
  uint32_t slot, generation;
  uint64_t bytes;
  uint64_t address;
  int32_t process;
  int32_t descriptor;  ///< number of the descriptor in that process; -1: none
  uint64_t descriptor_offset;
  uint64_t inode;  ///< inode of the descriptor's file
  uint32_t kind;
};
static_assert(sizeof(Key) <= PW_NIC_KEY_BYTES);

/// Registered memory of this process. A reference may outlive the registration; `alive` is then false.
struct Memory {
  std::byte* address;
  uint64_t bytes;
  pw_nic_memory_kind kind;
  int32_t device;
  uint32_t slot, generation;
  uint64_t descriptor_offset = 0;
  Descriptor descriptor;  ///< keeps the file open for processes that map it
  std::atomic<bool> alive{true};

  [[nodiscard]] bool holds(const void* data, uint64_t count) const {
    const auto first = reinterpret_cast<uintptr_t>(data), begin = reinterpret_cast<uintptr_t>(address);
    return first >= begin && count <= bytes && first - begin <= bytes - count;
  }
};

/// Describes `span` as slot `slot` of this endpoint. Throws Failure.
std::shared_ptr<Memory> make_memory(const pw_nic_span& span, uint32_t slot, uint32_t generation);
void write_key(const Memory& memory, uint32_t number, pw_nic_key& key);
/// Returns false if the bytes are not a key of this NIC.
bool read_key(const pw_nic_key& bytes, Key& key);

/// Memory of a peer, by its key. If it is on this host, this process maps it, or may access it by
/// cross-memory attach.
class PeerMemory {
 public:
  /// `generation` is that of the slot of a peer on this host, null if the peer is on another host. `attach`:
  /// whether cross-memory attach to its process is allowed.
  PeerMemory(const Key& key, const std::atomic<uint32_t>* generation, bool attach);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;

  [[nodiscard]] const Key& key() const { return key_; }
  [[nodiscard]] bool mapped() const { return mapped_ != nullptr; }
  [[nodiscard]] bool reachable() const { return mapped_ != nullptr || attach_; }
  [[nodiscard]] bool holds(uint64_t offset, uint64_t bytes) const {
    return bytes <= key_.bytes && offset <= key_.bytes - bytes;
  }

  /// Move the bytes by this CPU. `touching` tells the owner that it must wait with its deregistration.
  pw_nic_status put(uint64_t offset, const void* data, uint64_t bytes, std::atomic<uint64_t>& touching) const;
  pw_nic_status get(uint64_t offset, void* data, uint64_t bytes, std::atomic<uint64_t>& touching) const;

 private:
  [[nodiscard]] bool touch(std::atomic<uint64_t>& touching) const;
  [[nodiscard]] pw_nic_status attach(bool put, uint64_t offset, void* data, uint64_t bytes) const;
  void map();

  Key key_;
  const std::atomic<uint32_t>* generation_ = nullptr;
  std::byte* mapped_ = nullptr;
  void* mapping_ = nullptr;
  uint64_t mapping_bytes_ = 0;
  bool attach_ = false;
};

/// Copies so that aligned words of 8 bytes arrive whole, after everything that this thread copied before.
void copy_whole_words(void* to, const void* from, uint64_t bytes);

/// Tests whether this process may read and write the other's memory: whether it reads `expected` at `address`
/// there.
bool may_attach(int process, uint64_t address, uint64_t expected);

}  // namespace pw::torus
