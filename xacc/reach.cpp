#include "xacc/reach.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "xacc/everywhere.h"
#include "xacc/failure.h"
#include "xacc/program.h"

namespace pwx {
namespace {

using peerway::check;

constexpr size_t kEntries = 1024;

struct Entry {
  uint64_t bytes;
  std::array<std::byte, PW_KEY_MAX> key;
};

/// What each rank has for the others to read. An entry counts once its number is there.
struct KeyTable {
  std::array<uint64_t, kEntries> ids;  ///< 0: free
  std::array<Entry, kEntries> entries;
};

/// This rank's table, and what it found in those of others.
class Tables {
 public:
  Tables()
      : tables_(program().context.allocate(peerway::host, sizeof(KeyTable))),
        found_(program().context.allocate(peerway::host, std::max(sizeof(KeyTable::ids), sizeof(Entry)))) {}

  void publish(uint64_t id, const peerway::Region& memory) {
    KeyTable& mine = *static_cast<KeyTable*>(tables_.here().address());
    const auto free = std::ranges::find(mine.ids, uint64_t{0});
    if (free == mine.ids.end())
      refuse("more than ", kEntries, " arrays, which a program with gmove in or out cannot have at a time");
    const auto at = static_cast<size_t>(free - mine.ids.begin());
    const peerway::Key key = memory.key();
    mine.entries[at].bytes = key.size();
    std::ranges::copy(key, mine.entries[at].key.begin());
    std::atomic_ref(*free).store(id, std::memory_order_release);
  }

  void withdraw(uint64_t id) {
    KeyTable& mine = *static_cast<KeyTable*>(tables_.here().address());
    const auto entry = std::ranges::find(mine.ids, id);
    if (entry != mine.ids.end()) std::atomic_ref(*entry).store(0, std::memory_order_release);
    std::erase_if(remotes_, [&](const auto& one) {
      return one.first.second == id || one.first.second == id_on_gpus(id);
    });
  }

  peerway::Remote* find(int rank, uint64_t id) {
    const auto known = remotes_.find({rank, id});
    if (known != remotes_.end()) return &known->second;
    const auto* ids =
        static_cast<const uint64_t*>(fetch(rank, offsetof(KeyTable, ids), sizeof(KeyTable::ids)));
    const auto* entry = std::find(ids, ids + kEntries, id);
    if (entry == ids + kEntries) return nullptr;
    const auto at = static_cast<size_t>(entry - ids);
    const auto* found = static_cast<const Entry*>(
        fetch(rank, offsetof(KeyTable, entries) + at * sizeof(Entry), sizeof(Entry)));
    const std::span<const std::byte> key(found->key.data(), found->bytes);
    return &remotes_.emplace(std::pair{rank, id}, program().context.import(key)).first->second;
  }

  void forget(int rank, uint64_t id) { remotes_.erase({rank, id}); }

 private:
  const void* fetch(int rank, size_t offset, size_t bytes) {
    check(program().context.get(found_.span(0, bytes), tables_.at(rank).span(offset, bytes)));
    check(program().context.flush(rank));
    return found_.address();
  }

  Everywhere tables_;
  peerway::Region found_;
  std::map<std::pair<int, uint64_t>, peerway::Remote> remotes_;
};

bool reached = false;

std::optional<Tables>& tables() {
  static auto& one = *new std::optional<Tables>;  // outlives atexit
  return one;
}

/// FNV-1a.
class Hash {
 public:
  void add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      value_ = (value_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3U;
  }
  template <typename Value>
  void add(const Value& value) {
    add(&value, sizeof value);
  }
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace

bool arrays_are_reached() { return reached; }

void make_key_table() {
  if (reached && program().size() > 1) tables().emplace();
}

void free_key_table() { tables().reset(); }

void publish(uint64_t id, const peerway::Region& memory) {
  if (tables() && id != 0) tables()->publish(id, memory);
}

uint64_t publish_array(const pwx_array& a, const peerway::Region& memory) {
  if (!tables()) return 0;
  Hash hash;
  hash.add(a.name, std::strlen(a.name));
  hash.add(a.element_bytes);
  for (int d = 0; d < a.ndims; ++d) hash.add(a.dim[d].size);
  hash.add(a.on->nodes->ranks, static_cast<size_t>(a.on->nodes->total) * sizeof(int));
  const std::vector<int>& executing = program().executing().ranks;
  hash.add(executing.data(), executing.size() * sizeof(int));
  // Arrays that are alike are allocated in the same order by all that allocate them.
  static auto& counts = *new std::map<uint64_t, uint64_t>;
  hash.add(++counts[hash.value()]);
  const uint64_t id = std::max<uint64_t>(hash.value() & ~(uint64_t{1} << 63), 1);
  if (a.on->nodes->member != 0) publish(id, memory);
  return id;
}

void withdraw(uint64_t id) {
  if (tables() && id != 0) tables()->withdraw(id);
}

peerway::Remote* published(int rank, uint64_t id) { return tables()->find(rank, id); }

void forget_published(int rank, uint64_t id) { tables()->forget(rank, id); }

}  // namespace pwx

extern "C" void pwx_gmove_one_sided(void) { pwx::reached = true; }
