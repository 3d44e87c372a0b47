#include "xacc/runtime/data/key_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/program/program.h"
#include "xacc/runtime/program/symmetric_memory.h"

namespace pwx {
namespace {

using peerway::check;

constexpr size_t kEntries = 1024, kNodes = 1024;

struct Entry {
  uint64_t bytes;
  std::array<std::byte, PW_KEY_MAX> key;
};

/// How many arrays a rank has allocated so far on each set of nodes, including freed ones.
struct Counts {
  struct OfNodes {
    uint64_t nodes;  ///< 0: free
    uint64_t arrays;
  };
  uint64_t closed;  ///< not 0: the counts are final
  std::array<OfNodes, kNodes> of_nodes;
};

/// The table in each rank's memory that other ranks read. An entry is valid once its id is set, which happens
/// before its array is counted.
struct KeyTable {
  std::array<uint64_t, kEntries> ids;  ///< 0: free
  std::array<Entry, kEntries> entries;
  Counts counts;
};

/// This rank's table, and the keys found in those of others.
class Tables {
 public:
  Tables()
      : tables_(program().context.allocate(peerway::host, sizeof(KeyTable))),
        fetched_(program().context.allocate(
            peerway::host, std::max({sizeof(KeyTable::ids), sizeof(Entry), sizeof(Counts)}))) {}

  void publish(uint64_t id, const peerway::Region& memory) {
    KeyTable& mine = own();
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
    KeyTable& mine = own();
    const auto published_id = std::ranges::find(mine.ids, id);
    if (published_id != mine.ids.end()) std::atomic_ref(*published_id).store(0, std::memory_order_release);
    std::erase_if(remotes_, [&](const auto& entry) {
      return entry.first.second == id || entry.first.second == (id ^ kOnGpus);
    });
  }

  /// The number of the next array on these nodes.
  uint64_t next_of(uint64_t nodes) { return count_of(nodes).arrays + 1; }
  void count(uint64_t nodes) {
    Counts::OfNodes& counted = count_of(nodes);
    counted.nodes = nodes;
    std::atomic_ref(counted.arrays).store(counted.arrays + 1, std::memory_order_release);
  }
  void close() { std::atomic_ref(own().counts.closed).store(1, std::memory_order_release); }

  peerway::Remote* find(int rank, const CommonId& array) {
    for (;;) {
      if (peerway::Remote* const remote = find(rank, array.id)) return remote;
      // An array is published before it is counted, so the table must be read again after the count.
      if (is_counted(rank, array)) return find(rank, array.id);
      std::this_thread::yield();
      if (program().mail.goodbye_heard())
        throw Failure("another node ended while this one waits until it allocates an array");
    }
  }

  peerway::Remote* find(int rank, uint64_t id) {
    const auto known = remotes_.find({rank, id});
    if (known != remotes_.end()) return &known->second;
    const auto* ids =
        static_cast<const uint64_t*>(fetch(rank, offsetof(KeyTable, ids), sizeof(KeyTable::ids)));
    const auto* entry = std::find(ids, ids + kEntries, id);
    if (entry == ids + kEntries) return nullptr;
    const auto at = static_cast<size_t>(entry - ids);
    const auto* fetched = static_cast<const Entry*>(
        fetch(rank, offsetof(KeyTable, entries) + at * sizeof(Entry), sizeof(Entry)));
    const std::span<const std::byte> key(fetched->key.data(), fetched->bytes);
    return &remotes_.emplace(std::pair{rank, id}, program().context.import(key)).first->second;
  }

  void forget(int rank, uint64_t id) { remotes_.erase({rank, id}); }

 private:
  KeyTable& own() { return *static_cast<KeyTable*>(tables_.here().address()); }

  Counts::OfNodes& count_of(uint64_t nodes) {
    const auto counts = std::ranges::find_if(own().counts.of_nodes, [&](const Counts::OfNodes& entry) {
      return entry.nodes == nodes || entry.nodes == 0;
    });
    if (counts == own().counts.of_nodes.end())
      refuse("arrays on more than ", kNodes,
             " sets of nodes, which a program with gmove in or out cannot have");
    return *counts;
  }

  /// Whether a rank has allocated the array, or ends without having allocated it.
  bool is_counted(int rank, const CommonId& array) {
    const auto& there = *static_cast<const Counts*>(fetch(rank, offsetof(KeyTable, counts), sizeof(Counts)));
    return there.closed != 0 || std::ranges::any_of(there.of_nodes, [&](const Counts::OfNodes& entry) {
             return entry.nodes == array.nodes && entry.arrays >= array.number;
           });
  }

  const void* fetch(int rank, size_t offset, size_t bytes) {
    check(program().context.get(fetched_.span(0, bytes), tables_.at(rank).span(offset, bytes)));
    check(program().context.flush(rank));
    return fetched_.address();
  }

  SymmetricMemory tables_;
  peerway::Region fetched_;
  std::map<std::pair<int, uint64_t>, peerway::Remote> remotes_;
};

bool reached = false;

std::optional<Tables>& tables() {
  static auto& keys = *new std::optional<Tables>;  // outlives atexit
  return keys;
}

/// FNV-1a.
class Hash {
 public:
  Hash& add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      value_ = (value_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3U;
    return *this;
  }
  template <typename Value>
  Hash& add(const Value& value) {
    return add(&value, sizeof value);
  }
  /// Never 0, and without the bit of copies on GPUs.
  [[nodiscard]] uint64_t number() const { return std::max<uint64_t>(value_ & ~kOnGpus, 1); }

 private:
  uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace

bool arrays_are_reached() { return reached; }

void make_key_table() {
  if (reached && program().size() > 1) tables().emplace();
}

void close_key_table() {
  if (tables()) tables()->close();
}

void free_key_table() { tables().reset(); }

void publish(uint64_t id, const peerway::Region& memory) {
  if (tables() && id != 0) tables()->publish(id, memory);
}

CommonId publish_array(const pwx_array& a, const peerway::Region& memory) {
  if (!tables()) return {};
  const std::vector<int>& executing = program().executing().ranks;
  const pwx_nodes& nodes = *a.on->nodes;
  std::vector<long> sizes;
  for (int d = 0; d < a.ndims; ++d) sizes.push_back(a.dim[d].size);
  CommonId array;
  array.nodes = Hash()
                    .add(executing.data(), executing.size() * sizeof(int))
                    .add(nodes.ranks, static_cast<size_t>(nodes.total) * sizeof(int))
                    .number();
  array.number = tables()->next_of(array.nodes);
  // Name and sizes distinguish arrays if nodes do not allocate theirs in the same order.
  array.id = Hash()
                 .add(array.nodes)
                 .add(array.number)
                 .add(a.name, std::strlen(a.name))
                 .add(a.element_bytes)
                 .add(sizes.data(), sizes.size() * sizeof(long))
                 .number();
  if (nodes.member != 0) publish(array.id, memory);
  tables()->count(array.nodes);
  return array;
}

void withdraw(uint64_t id) {
  if (tables() && id != 0) tables()->withdraw(id);
}

peerway::Remote* published(int rank, const CommonId& array) { return tables()->find(rank, array); }

peerway::Remote* published(int rank, uint64_t id) { return tables()->find(rank, id); }

void forget_published(int rank, uint64_t id) { tables()->forget(rank, id); }

}  // namespace pwx

extern "C" void pwx_gmove_one_sided(void) { pwx::reached = true; }
