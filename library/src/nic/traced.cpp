#include "nic/traced.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "trace/operation.h"

namespace pw::nic {
namespace {

// The functions of a plugin have no context argument, so each traced plugin of the process needs functions of
// its own here. Further plugins are not recorded.
constexpr size_t kMostPlugins = 4;

struct TracedPlugin {
  pw_nic_ops ops;
  std::string name;
};
struct TracedPlugins {
  std::mutex mutex;
  size_t count = 0;
  std::array<TracedPlugin, kMostPlugins> plugin;
};
TracedPlugins& traced_plugins() {
  static auto* only = new TracedPlugins;  // never destroyed, because operations may end after everything else
  return *only;
}

// Takes the place of the `done` of an operation under way.
struct TracedDone : pw_nic_done {
  pw_nic_done* whose;
  const TracedPlugin* plugin;
  const char* name;
  uint64_t begin;
  uint64_t bytes;
};

void record(const TracedDone& done) {
  trace::add({PW_TRACE_NIC, done.name, done.plugin->name, done.begin, -1, done.bytes});
}

void completed(pw_nic_done* ended, pw_nic_status status) {
  auto* done = static_cast<TracedDone*>(ended);
  record(*done);  // recorded because it was accepted, however it ended
  pw_nic_done* whose = done->whose;
  delete done;
  if (whose != nullptr) whose->call(whose, status);
}

// `post(done)` calls the plugin's function.
template <typename Post>
pw_nic_status posted(const TracedPlugin& plugin, const char* name, uint64_t bytes, pw_nic_done* whose,
                     Post&& post) {
  if (!trace::recording()) return post(whose);
  auto* done = new TracedDone{{completed}, whose, &plugin, name, trace::now(), bytes};
  const pw_nic_status status = post(done);
  if (status != PW_NIC_OK) delete done;
  return status;
}

template <size_t Number>
struct Entries {
  static const TracedPlugin& own() { return traced_plugins().plugin[Number]; }

  static pw_nic_status put(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                           pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
    return posted(own(), "NIC put", bytes, done, [&](pw_nic_done* mine) {
      return own().ops.put(nic, remote, offset, data, memory, bytes, mine);
    });
  }
  static pw_nic_status get(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data,
                           pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
    return posted(own(), "NIC get", bytes, done, [&](pw_nic_done* mine) {
      return own().ops.get(nic, remote, offset, data, memory, bytes, mine);
    });
  }
  static pw_nic_status put_strided(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t to_stride,
                                   const void* data, uint64_t from_stride, pw_nic_memory* memory,
                                   uint64_t blocks, uint64_t block_bytes, pw_nic_done* done) {
    return posted(own(), "NIC put", blocks * block_bytes, done, [&](pw_nic_done* mine) {
      return own().ops.put_strided(nic, remote, offset, to_stride, data, from_stride, memory, blocks,
                                   block_bytes, mine);
    });
  }
  static pw_nic_status put_with_word(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                                     pw_nic_memory* memory, uint64_t bytes, pw_nic_remote* word_remote,
                                     uint64_t word_offset, uint64_t value, pw_nic_done* done) {
    return posted(own(), "NIC put", bytes + sizeof value, done, [&](pw_nic_done* mine) {
      return own().ops.put_with_word(nic, remote, offset, data, memory, bytes, word_remote, word_offset,
                                     value, mine);
    });
  }
  static pw_nic_ops wrap(pw_nic_ops ops) {
    ops.put = put;
    ops.get = get;
    if (ops.put_strided != nullptr) ops.put_strided = put_strided;
    if (ops.put_with_word != nullptr) ops.put_with_word = put_with_word;
    return ops;
  }
};

template <size_t... Number>
pw_nic_ops wrapped(size_t number, const pw_nic_ops& ops, std::index_sequence<Number...>) {
  pw_nic_ops wrapped = ops;
  ((number == Number ? static_cast<void>(wrapped = Entries<Number>::wrap(ops)) : static_cast<void>(0)), ...);
  return wrapped;
}

}  // namespace

pw_nic_ops traced(const pw_nic_ops& ops, const std::string& name) {
  trace::begin();
  if (pw_trace_word == &pw_trace_nothing) return ops;
  TracedPlugins& all = traced_plugins();
  const std::lock_guard lock(all.mutex);
  size_t number = 0;
  while (number < all.count && all.plugin[number].ops.put != ops.put) ++number;
  if (number == kMostPlugins) return ops;
  all.plugin[number] = {ops, name};
  all.count = std::max(all.count, number + 1);
  return wrapped(number, ops, std::make_index_sequence<kMostPlugins>());
}

}  // namespace pw::nic
