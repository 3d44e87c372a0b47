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

/// The key of registered memory as peers get it. Plain bytes of one size.
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

/// Memory that UCX registered. UCX does so for everything that it was asked to move, long before it moves,
/// and from 1.20 on keeps it for the next time: a NIC has room for only so much of that. What it had no room
/// for is registered when it is needed, in the place of what was not needed for the longest time; where all
/// is in use, it waits for a transfer to end. Under the domain's lock.
class RegisteredMemory {
 public:
  /// Throws Error if the NIC refuses the memory; if it is full, only when this may not wait.
  RegisteredMemory(Domain& domain, const pw_nic_span& span, bool may_wait);
  RegisteredMemory(const RegisteredMemory&) = delete;
  ~RegisteredMemory();

  /// Null: the NIC has no room until a transfer has ended. Throws Error: until the program frees some.
  nic::Memory* memory();
  /// It stays registered until the operation is over.
  void use(Operation& operation);
  void used(Operation& operation);
  /// Throws Error with what the NIC says.
  PackedKey pack();

 private:
  enum class Room : uint8_t { free, cleared };  ///< by what was registered before
  bool add(Room room);
  void become_idle();
  void leave_idle();

  Domain& domain_;
  pw_nic_span span_;
  bool packed_ = false;  ///< a peer may use it, for as long as it is registered
  size_t users_ = 0;
  std::list<RegisteredMemory*>::iterator idle_;  ///< where it is registered, not packed, and has no users
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

  /// Under the domain's lock. Null when the bytes lie outside of the memory or the NIC refuses the key.
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
