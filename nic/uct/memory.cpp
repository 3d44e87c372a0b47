#include "uct/memory.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "base/bytes.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "uct/settings.h"

namespace pw::uct {
namespace {

ByteView authenticated(const PackedKey& key) {
  return std::as_bytes(std::span(&key, 1)).first(offsetof(PackedKey, digest));
}

// UCX states the kind of memory when it looks for a transport, not when it registers. CUDA's driver knows the
// kind; if no CUDA was loaded there is no CUDA memory.
int cuda_device_of(void* address) {
  using Attribute = int (*)(void* data, int attribute, uint64_t pointer);
  static std::atomic<Attribute> known = nullptr;
  if (known.load() == nullptr)
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); driver != nullptr)
      known = reinterpret_cast<Attribute>(dlsym(driver, "cuPointerGetAttribute"));
  const Attribute get = known;
  if (get == nullptr) return -1;
  constexpr int kMemoryType = 2, kDeviceOrdinal = 9;
  constexpr unsigned kDeviceMemory = 2;
  unsigned type = 0;
  int device = -1;
  const auto pointer = reinterpret_cast<uint64_t>(address);
  if (get(&type, kMemoryType, pointer) != 0 || type != kDeviceMemory) return -1;
  return get(&device, kDeviceOrdinal, pointer) == 0 ? device : -1;
}

}  // namespace

PackedKey pack(uint64_t base, uint64_t bytes, const pw_nic_key& key, const Secret& secret) {
  PackedKey packed{base, bytes, key, 0, {}};
  std::memset(packed.key.bytes + key.length, 0, sizeof packed.key.bytes - key.length);
  packed.digest = siphash(secret, authenticated(packed));
  return packed;
}

PackedKey unpack_key(const void* bytes, const Secret& secret) {
  PackedKey packed{};
  std::memcpy(&packed, bytes, sizeof packed);
  if (!equal_digests(packed.digest, siphash(secret, authenticated(packed))) ||
      packed.key.length > sizeof packed.key.bytes || packed.base + packed.bytes < packed.base)
    throw Error(PW_BAD_KEY, "a key of memory that no process of this job made, or that was altered");
  return packed;
}

RegisteredMemory::RegisteredMemory(Domain& domain, const pw_nic_span& span, bool may_wait)
    : domain_(domain), span_(span), idle_(domain.idle_memory.end()) {
  if (!add(Evict::no) && !may_wait)
    throw Error(PW_NO_MEMORY, format("the NIC has no room now for {} bytes at {}", span.bytes, span.address));
}

RegisteredMemory::~RegisteredMemory() {
  if (users_ > 0) {  // by operations of a connection that was given up
    domain_.forget(*this);
    if (!packed_) --domain_.busy_memory;
  }
  leave_idle();
}

bool RegisteredMemory::add(Evict evict) {
  while (memory_ == nullptr) try {
      memory_ = domain_.endpoint().add(span_);
    } catch (const Error& error) {
      auto& idle = domain_.idle_memory;
      if (error.status() != PW_NO_MEMORY || (idle.empty() && domain_.busy_memory == 0)) throw;
      if (idle.empty() || evict == Evict::no) return false;
      RegisteredMemory& oldest = *idle.front();
      oldest.leave_idle();
      oldest.memory_.reset();
    }
  become_idle();
  return true;
}

void RegisteredMemory::become_idle() { idle_ = domain_.idle_memory.insert(domain_.idle_memory.end(), this); }

void RegisteredMemory::leave_idle() {
  if (idle_ != domain_.idle_memory.end()) domain_.idle_memory.erase(idle_);
  idle_ = domain_.idle_memory.end();
}

nic::Memory* RegisteredMemory::memory() {
  return memory_ != nullptr || add(Evict::yes) ? memory_.get() : nullptr;
}

void RegisteredMemory::use(Operation& operation) {
  operation.memory = this;
  if (users_++ > 0 || packed_) return;
  leave_idle();
  ++domain_.busy_memory;
}

void RegisteredMemory::release(Operation& operation) {
  operation.memory = nullptr;
  if (--users_ > 0 || packed_) return;
  --domain_.busy_memory;
  become_idle();
}

PackedKey RegisteredMemory::pack() {
  if (memory() == nullptr)
    throw Error(PW_NO_MEMORY,
                format("the NIC has no room for {} bytes at {}, which a peer is to reach; fewer "
                       "transfers at once leave more",
                       span_.bytes, span_.address));
  if (!packed_ && users_ > 0) --domain_.busy_memory;
  leave_idle();
  packed_ = true;
  return uct::pack(reinterpret_cast<uint64_t>(span_.address), span_.bytes, memory_->key(),
                   job_secrets().keys);
}

std::unique_ptr<RegisteredMemory> register_memory(Domain& domain, void* address, size_t bytes,
                                                  bool may_wait) {
  pw_nic_span span{sizeof(pw_nic_span), address, bytes, PW_NIC_HOST, 0, -1, 0};
  if ((domain.info().memory_kinds >> PW_NIC_CUDA & 1u) != 0)
    if (const int device = cuda_device_of(address); device >= 0) {
      span.kind = PW_NIC_CUDA;
      span.device = device;
    }
  const std::scoped_lock held(domain.lock);
  return std::make_unique<RegisteredMemory>(domain, span, may_wait);
}

void deregister_memory(Domain& domain, std::unique_ptr<RegisteredMemory> memory) {
  const std::scoped_lock held(domain.lock);
  memory.reset();
}

PackedKey pack_key(Domain& domain, RegisteredMemory& memory) {
  const std::scoped_lock held(domain.lock);
  return memory.pack();
}

RemoteKey::~RemoteKey() {
  if (domain_ == nullptr) return;
  const std::scoped_lock held(domain_->lock);
  imported_.clear();
}

nic::RemoteMemory* RemoteKey::reach(Domain& domain, Peer& peer, uint64_t address, size_t bytes) {
  if (address < packed_.base || bytes > packed_.bytes || address - packed_.base > packed_.bytes - bytes)
    return nullptr;
  for (const Imported& known : imported_)
    if (known.peer == &peer) return known.memory.get();
  try {
    domain_ = &domain;
    return imported_.emplace_back(Imported{&peer, peer.stream().import(packed_.key)}).memory.get();
  } catch (const Error& error) {
    log(LogLevel::error, error.what());
    return nullptr;
  }
}

}  // namespace pw::uct
