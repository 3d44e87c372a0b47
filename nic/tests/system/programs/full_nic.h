// The implementation of full_nic.cpp: operations, and the engine that moves their bytes with
// process_vm_writev and process_vm_readv. Every flaw that a configuration can name is in one place, here or
// there.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "peerway/nic.h"

constexpr uint64_t kMagic = 0x466c617765644e49, kLargest = 1 << 20, kCopied = 256;
constexpr uint32_t kEndpoints = 1024, kSlots = 4096, kQueue = 64, kTurns = 4;

// A registration: a key is valid while it has the slot's generation. `users` counts who moves bytes there.
struct Slot {
  std::atomic<uint64_t> generation, users;
};

// The slots of one endpoint, which its peers map.
struct Table {
  explicit Table(int descriptor)
      : slots(static_cast<Slot*>(
            mmap(nullptr, sizeof(Slot) * kSlots, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0))) {}
  ~Table() {
    if (good()) munmap(slots, sizeof(Slot) * kSlots);
  }
  Table(const Table&) = delete;
  [[nodiscard]] bool good() const { return slots != MAP_FAILED; }
  Slot* slots;
};

struct Address {
  uint64_t magic;
  int64_t process;
  int32_t table;  // its descriptor in that process
  uint32_t number;
};
struct Key {
  uint64_t magic, address, bytes, generation, slot;
};

struct pw_nic_peer {
  int64_t process;
  std::shared_ptr<Table> table;
};
struct pw_nic_memory {
  Slot* slot;
};
struct pw_nic_remote {
  pw_nic_peer* peer;
  int64_t process;
  std::shared_ptr<Table> table;
  Key key;
};

enum class Kind { put, get, add };

struct Operation {
  Kind kind;
  pw_nic_remote remote;         // a copy, because the caller may release it
  const pw_nic_remote* handle;  // the caller's handle
  uint64_t offset;
  std::byte* local;
  pw_nic_memory* memory;
  uint64_t bytes;  // of each block
  std::vector<std::byte> copied;
  pw_nic_done* done;
  uint64_t blocks = 1, from_stride = 0, to_stride = 0;
  uint64_t add = 0;
  uint64_t word_address = 0, word = 0;  // the word to store after a put; no address: none
  uint32_t turns = 0;                   // how often it was next in line, or overtaken
  pw_nic_status status = PW_NIC_OK;

  [[nodiscard]] bool put() const { return kind == Kind::put; }
  [[nodiscard]] uint64_t extent() const { return (blocks - 1) * to_stride + bytes; }
};
using Pointer = std::unique_ptr<Operation>;

struct pw_nic {
  std::set<std::string> flaws;
  std::mutex mutex;
  std::condition_variable woken;
  std::deque<Pointer> posted, ended;
  const Operation* moving = nullptr;
  bool stop = false, armed = false;
  uint32_t number = 0;
  uint64_t leaked = 0, puts = 0, gets = 0;
  int event = -1, claim = -1, file = -1;
  std::shared_ptr<Table> table;
  std::thread engine;
  [[nodiscard]] bool has(const char* name) const { return flaws.count(name) != 0; }
};

inline void pause_for(long us) {
  const timespec time{us / 1'000'000, us % 1'000'000 * 1000};
  nanosleep(&time, nullptr);
}

inline pw_nic_status copy(const Operation& what, void* local, uint64_t far, uint64_t bytes) {
  const auto process = static_cast<pid_t>(what.remote.process);
  const iovec here{local, bytes}, there{reinterpret_cast<void*>(far), bytes};
  const ssize_t moved = what.kind == Kind::get ? process_vm_readv(process, &here, 1, &there, 1, 0)
                                               : process_vm_writev(process, &here, 1, &there, 1, 0);
  if (moved == static_cast<ssize_t>(bytes)) return PW_NIC_OK;
  return moved < 0 && errno == ESRCH ? PW_NIC_UNREACHABLE : PW_NIC_REFUSED;
}

// Stores whole words at the target, with the former contents beside the bytes.
inline pw_nic_status copy_with_edges(const Operation& what, const std::byte* local, uint64_t far,
                                     uint64_t bytes) {
  const uint64_t first = far / 8 * 8, last = (far + bytes + 7) / 8 * 8;
  std::vector<std::byte> words(last - first);
  const iovec here{words.data(), words.size()}, there{reinterpret_cast<void*>(first), words.size()};
  if (process_vm_readv(static_cast<pid_t>(what.remote.process), &here, 1, &there, 1, 0) < 0)
    return PW_NIC_UNREACHABLE;
  std::memcpy(words.data() + (far - first), local, bytes);
  return copy(what, words.data(), first, words.size());
}

// Only one process adds at a time: the one that has locked this library's file.
inline pw_nic_status add(const pw_nic& nic, Operation& what, uint64_t far) {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&pw_nic_plugin), &here);
  const int lock = open(here.dli_fname, O_RDONLY | O_CLOEXEC);
  flock(lock, LOCK_EX);
  uint64_t value = 0;
  what.kind = Kind::get;
  pw_nic_status status = copy(what, &value, far, 8);
  what.kind = Kind::add;
  uint64_t sum = value + what.add;
  std::memcpy(what.local, nic.has("late-fetch") ? &sum : &value, 8);
  if (status == PW_NIC_OK) status = copy(what, &sum, far, 8);
  close(lock);
  return status;
}

inline pw_nic_status move_block(const pw_nic& nic, const Operation& what, std::byte* local, uint64_t far) {
  const bool in_parts = nic.has(what.put() ? "torn-puts" : "torn-gets") && what.bytes >= 8;
  if (what.put() && nic.has("edges")) return copy_with_edges(what, local, far, what.bytes);
  if (!in_parts) return copy(what, local, far, what.bytes);
  const pw_nic_status status = copy(what, local, far, 4);
  return status != PW_NIC_OK ? status : copy(what, local + 4, far + 4, what.bytes - 4);
}

inline pw_nic_status move_bytes(const pw_nic& nic, Operation& what) {
  const uint64_t far =
      what.remote.key.address + (nic.has("offsets-32") ? what.offset & 0xffffffffu : what.offset);
  if (what.kind == Kind::add) return add(nic, what, far);
  std::byte* local = what.copied.empty() ? what.local : what.copied.data();
  const bool word_first = nic.has("word-first") && what.word_address != 0;
  const auto store_word = [&] {
    return what.word_address == 0 ? PW_NIC_OK : copy(what, &what.word, what.word_address, 8);
  };
  if (word_first) store_word(), pause_for(50);
  const uint64_t to_stride = nic.has("dense") ? what.bytes : what.to_stride;
  for (uint64_t i = 0; i < what.blocks; ++i)
    if (const auto status = move_block(nic, what, local + i * what.from_stride, far + i * to_stride);
        status != PW_NIC_OK)
      return status;
  return word_first ? PW_NIC_OK : store_word();
}

// The order must be sequentially consistent: the owner ends the generation first, and then reads the users.
inline pw_nic_status move(const pw_nic& nic, Operation& what) {
  Slot& slot = what.remote.table->slots[what.remote.key.slot];
  const bool late = nic.has("late-store");
  if (!late) ++slot.users;
  const uint64_t generation = slot.generation;
  const bool open = nic.has("forgetful") ||
                    (nic.has("no-generation") ? generation != 0 : generation == what.remote.key.generation);
  if (late && what.put()) pause_for(300);
  pw_nic_status status = open ? move_bytes(nic, what) : PW_NIC_REFUSED;
  if (!late) --slot.users;
  if (status == PW_NIC_UNREACHABLE && what.put() && nic.has("dead-puts-ok")) status = PW_NIC_OK;
  return status;
}

// Chooses the next operation. With a flaw of order: small puts before large ones, or gets before puts; but
// not before an operation that was overtaken often, which a peer that polls could otherwise delay for ever.
inline Pointer next(pw_nic& nic) {
  auto chosen = nic.posted.begin();
  const bool waits = ++(*chosen)->turns <= kTurns;
  for (auto it = nic.posted.begin(); waits && it != nic.posted.end(); ++it) {
    if (nic.has("puts-overtake") && (*it)->put() && (*it)->bytes <= 8 && (*chosen)->put() &&
        (*chosen)->bytes > 8)
      chosen = it;
    if (nic.has("gets-overtake") && !(*it)->put() && (*chosen)->put()) chosen = it;
  }
  Pointer taken = std::move(*chosen);
  nic.posted.erase(chosen);
  return taken;
}

// Call it with the mutex held.
inline void tell(pw_nic& nic) {
  if (nic.armed && !nic.ended.empty() && !nic.has("mute")) eventfd_write(nic.event, 1);
}

inline void end(pw_nic& nic, Pointer what, pw_nic_status status) {
  what->status = status;
  if (status != PW_NIC_OK && nic.has("leaks-room")) ++nic.leaked;
  if (nic.has("leaks-memory")) new Operation(*what);
  nic.ended.push_back(std::move(what));
  tell(nic);
}

inline void run(pw_nic* nic) {
  std::unique_lock lock(nic->mutex);
  for (;;) {
    nic->woken.wait(lock, [&] { return nic->stop || !nic->posted.empty(); });
    if (nic->stop) return;
    if (nic->has("puts-overtake") ||
        nic->has("gets-overtake")) {  // so that there is something to choose from
      lock.unlock();
      pause_for(50);
      lock.lock();
    }
    if (nic->posted.empty()) continue;
    Pointer taken = next(*nic);
    nic->moving = taken.get();
    const bool dropped = taken->put() && ((nic->has("lost-puts") && ++nic->puts % 2000 == 0) ||
                                          (nic->has("most-puts-lost") && ++nic->puts % 500 != 0));
    lock.unlock();
    const pw_nic_status status = dropped ? PW_NIC_OK : move(*nic, *taken);
    if (nic->has("done-from-thread") && taken->done != nullptr)
      std::exchange(taken->done, nullptr)->call(taken->done, status);
    lock.lock();
    nic->moving = nullptr;
    if (nic->has("lost-done") && taken->put() && taken->bytes == 64) continue;
    if (nic->has("early-done") && taken->put()) continue;  // reported when it was posted
    end(*nic, std::move(taken), status);
  }
}
