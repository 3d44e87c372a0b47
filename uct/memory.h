// Memory that the card knows, here and at a peer, as UCX hands it around.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/siphash.h"
#include "uct/domain.h"

namespace pw::uct {

/// What a peer is told of registered memory. Plain bytes of one size.
struct PackedKey {
  uint64_t base;
  uint64_t bytes;
  pw_nic_key key;
  uint32_t zero;
  Digest digest;  ///< of all before it, by the job's secret for keys
};
static_assert(std::has_unique_object_representations_v<PackedKey>);

PackedKey pack(uint64_t base, uint64_t bytes, const pw_nic_key& key, const Secret& secret);
/// Throws Error for bytes that are no key that a process of the job made.
PackedKey unpack_key(const void* bytes, const Secret& secret);

/// Memory that UCX registered. UCX does so for everything that it was asked to move, long before it moves: a
/// NIC has room for only so much of that. What it had no room for is registered when it is needed, and waits
/// for those whose transfers end before. Under the domain's lock.
class RegisteredMemory {
 public:
  /// Throws Error when the NIC refuses the memory; for want of room only when it may not wait for that.
  RegisteredMemory(Domain& domain, const pw_nic_span& span, bool may_wait);
  RegisteredMemory(const RegisteredMemory&) = delete;
  ~RegisteredMemory();

  /// Null: the NIC has no room until a transfer has ended. Throws Error: until the program frees some.
  nic::Memory* memory();
  /// Throws Error with what the NIC says.
  PackedKey pack();

 private:
  bool add();

  Domain& domain_;
  pw_nic_span span_;
  bool packed_ = false;  ///< a peer may use it, for as long as it is registered
  std::unique_ptr<nic::Memory> memory_;
};

/// These take the domain's lock, and throw Error with what the NIC says.
std::unique_ptr<RegisteredMemory> register_memory(Domain& domain, void* address, size_t bytes, bool may_wait);
void deregister_memory(Domain& domain, std::unique_ptr<RegisteredMemory> memory);
PackedKey pack_key(Domain& domain, RegisteredMemory& memory);

/// A peer's memory, imported by each stream that is used to reach it.
class RemoteKey {
 public:
  explicit RemoteKey(const PackedKey& packed) : packed_(packed) {}
  ~RemoteKey();
  RemoteKey(const RemoteKey&) = delete;

  /// Under the domain's lock. Null when the bytes lie outside of the memory or the card refuses the key.
  nic::RemoteMemory* reach(Domain& domain, Peer& peer, uint64_t address, size_t bytes);
  [[nodiscard]] uint64_t offset_of(uint64_t address) const { return address - packed_.base; }

 private:
  struct Way {
    Peer* peer;
    std::unique_ptr<nic::RemoteMemory> memory;
  };

  PackedKey packed_;
  Domain* domain_ = nullptr;
  std::vector<Way> ways_;
};

}  // namespace pw::uct
