// Memory registered with the NIC, here and at a peer, in the form that UCX passes around.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/siphash.h"
#include "uct/domain.h"

namespace pw::uct {

/// A key of registered memory as peers receive it. Plain bytes of fixed size.
struct PackedKey {
  uint64_t base;
  uint64_t bytes;
  pw_nic_key key;
  uint32_t zero;
  Digest digest;  ///< of everything before it, with the job's secret for keys
};
static_assert(std::has_unique_object_representations_v<PackedKey>);

PackedKey pack(uint64_t base, uint64_t bytes, const pw_nic_key& key, const Secret& secret);
/// Throws Error if the bytes are not a key that a process of the job made.
PackedKey unpack_key(const void* bytes, const Secret& secret);

/// Memory that UCX registered. UCX registers memory long before it moves it, and since 1.20 it keeps
/// registrations for reuse, but a NIC has room for a limited number. So memory need not be registered with
/// the NIC all the time. It is registered again when a transfer needs it, in place of the least recently used
/// memory that no peer knows; if all of that is in use, the transfer waits until another one has ended.
/// Protected by the domain's lock.
class RegisteredMemory {
 public:
  /// Throws Error if the NIC refuses the memory; for lack of room only if `may_wait` is false.
  RegisteredMemory(Domain& domain, const pw_nic_span& span, bool may_wait);
  RegisteredMemory(const RegisteredMemory&) = delete;
  ~RegisteredMemory();

  /// Returns null if the NIC has no room until a transfer has ended. Throws Error if there will be no room
  /// until the program frees some.
  nic::Memory* memory();
  /// Keeps the memory registered until the operation has ended.
  void use(Operation& operation);
  /// Called when the operation has ended.
  void release(Operation& operation);
  /// Throws Error with the NIC's reason.
  PackedKey pack();

 private:
  enum class Evict : uint8_t { no, yes };  ///< whether other memory may be deregistered to make room
  bool add(Evict evict);  ///< registers the memory with the NIC; false if there is no room now
  void become_idle();
  void leave_idle();

  Domain& domain_;
  pw_nic_span span_;
  bool packed_ = false;  ///< whether its key was packed: a peer may use it, so it must stay registered
  size_t users_ = 0;     ///< number of operations that use it
  std::list<RegisteredMemory*>::iterator idle_;  ///< valid while it is registered, not packed, and unused
  std::unique_ptr<nic::Memory> memory_;
};

/// Take the domain's lock; throw Error with the NIC's reason.
std::unique_ptr<RegisteredMemory> register_memory(Domain& domain, void* address, size_t bytes, bool may_wait);
void deregister_memory(Domain& domain, std::unique_ptr<RegisteredMemory> memory);
PackedKey pack_key(Domain& domain, RegisteredMemory& memory);

/// A peer's memory, imported by each stream that is used to reach it.
class RemoteKey {
 public:
  explicit RemoteKey(const PackedKey& packed) : packed_(packed) {}
  ~RemoteKey();
  RemoteKey(const RemoteKey&) = delete;

  /// Call it with the domain's lock held. Returns null if the bytes lie outside the memory or the NIC refuses
  /// the key.
  nic::RemoteMemory* reach(Domain& domain, Peer& peer, uint64_t address, size_t bytes);
  [[nodiscard]] uint64_t offset_of(uint64_t address) const { return address - packed_.base; }

 private:
  struct Imported {
    Peer* peer;
    std::unique_ptr<nic::RemoteMemory> memory;
  };

  PackedKey packed_;
  Domain* domain_ = nullptr;
  std::vector<Imported> imported_;
};

}  // namespace pw::uct
