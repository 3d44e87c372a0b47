// full_nic.cpp at the limits that nic.h allows. It states what the variable LIMITED_NIC says
// ("largest=4096,copied=8,in_flight=1,guarantees=0,names=64,busy=3,seed=1,without=event"), does no more than
// that, and has no room at random, for one call in `busy`. A call outside the stated limits is refused and
// reported.
//
// The order that it does not guarantee is really broken: small puts overtake large ones, or gets overtake
// puts.
#define pw_nic_plugin full_nic
#include "full_nic.cpp"
#undef pw_nic_plugin

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <sstream>

namespace {

constexpr uint32_t kNames = PW_NIC_KEY_BYTES;

struct Limits {
  uint64_t largest = 1 << 20, copied = 256, in_flight = 0, guarantees = 3, names = 0, busy = 0, seed = 1;
  std::string without;  // entries, separated by '+'
};

Limits read_limits() {
  Limits limits;
  const char* text = std::getenv("LIMITED_NIC");
  std::istringstream words(text == nullptr ? "" : text);
  const std::map<std::string, uint64_t*> known{{"largest", &limits.largest},
                                               {"copied", &limits.copied},
                                               {"in_flight", &limits.in_flight},
                                               {"guarantees", &limits.guarantees},
                                               {"names", &limits.names},
                                               {"busy", &limits.busy},
                                               {"seed", &limits.seed}};
  for (std::string word; std::getline(words, word, ',');) {
    const std::string name = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
    if (name == "without")
      limits.without = value;
    else
      *known.at(name) = std::stoull(value);
  }
  return limits;
}

/// The limits as they were when the library asked for the table of entries, before it opened anything.
Limits& limits() {
  static Limits read;
  return read;
}

bool without(const std::string& entry) {
  return ("+" + limits().without + "+").find("+" + entry + "+") != std::string::npos;
}

/// Data that this file adds to an endpoint. Calls of one endpoint are made one at a time, those of several
/// endpoints at once.
struct Limited {
  uint64_t under_way = 0;
  std::mt19937 random;
  std::map<pw_nic_memory*, pw_nic_span> spans;
};
std::mutex all_mutex;
std::map<pw_nic*, Limited> all;

Limited& of(pw_nic* nic) {
  const std::lock_guard lock(all_mutex);
  return all.at(nic);
}

struct Counted : pw_nic_done {
  pw_nic_done* theirs;
  Limited* at;
};

pw_nic_status wrong(const char* what) {
  std::fprintf(stderr, "limited_nic: %s\n", what);
  return refuse(PW_NIC_INVALID, what);
}

/// Posts by `post(done)`, unless there is no room.
template <typename Post>
pw_nic_status limited(pw_nic* nic, pw_nic_done* done, Post&& post) {
  Limited& at = of(nic);
  if (limits().in_flight != 0 && at.under_way >= limits().in_flight) return PW_NIC_BUSY;
  if (limits().busy != 0 && at.random() % limits().busy == 0) return PW_NIC_BUSY;
  auto* counted = new Counted{{}, done, &at};
  counted->call = [](pw_nic_done* ours, pw_nic_status status) {
    auto* mine = static_cast<Counted*>(ours);
    --mine->at->under_way;
    if (mine->theirs != nullptr) mine->theirs->call(mine->theirs, status);
    delete mine;
  };
  ++at.under_way;
  const pw_nic_status status = post(counted);
  if (status != PW_NIC_OK) {
    --at.under_way;
    delete counted;
  }
  return status;
}

/// Whether an operation may use `extent` bytes at `data`: in registered memory, or few enough to be copied.
bool local(pw_nic* nic, const void* data, pw_nic_memory* memory, uint64_t extent) {
  if (memory == nullptr) return extent <= limits().copied;
  const auto found = of(nic).spans.find(memory);
  if (found == of(nic).spans.end()) return false;
  const auto* begin = static_cast<const std::byte*>(found->second.address);
  const auto* at = static_cast<const std::byte*>(data);
  return at >= begin && extent <= found->second.bytes &&
         static_cast<uint64_t>(at - begin) <= found->second.bytes - extent;
}

// Makes names as long as the limits say, and appends the former length.
template <typename Name>
void lengthen(Name& name) {
  if (limits().names == 0) return;
  std::memset(name.bytes + name.length, 0xa5, kNames - name.length);
  name.bytes[kNames - 1] = static_cast<uint8_t>(name.length);
  name.length = kNames;
}

template <typename Name>
bool shorten(Name& name) {
  if (limits().names == 0) return true;
  if (name.length != kNames || name.bytes[kNames - 1] > kNames - 2 || name.bytes[kNames - 2] != 0xa5)
    return false;
  name.length = name.bytes[kNames - 1];
  return true;
}

pw_nic_status limited_open(const pw_nic_options* options, pw_nic** nic) {
  pw_nic_options inner = *options;
  inner.configuration = (limits().guarantees & PW_NIC_PUTS_IN_ORDER) == 0      ? "puts-overtake"
                        : (limits().guarantees & PW_NIC_GETS_BEHIND_PUTS) == 0 ? "gets-overtake"
                                                                               : "";
  const pw_nic_status status = nic_open(&inner, nic);
  if (status != PW_NIC_OK) return status;
  const std::lock_guard lock(all_mutex);
  all[*nic].random.seed(static_cast<unsigned>(limits().seed * 7919 + static_cast<uint64_t>(getpid())));
  return status;
}

void limited_close(pw_nic* nic) {
  nic_close(nic);
  const std::lock_guard lock(all_mutex);
  all.erase(nic);
}

void limited_query(pw_nic* nic, pw_nic_info* info) {
  nic_query(nic, info);
  info->guarantees = static_cast<uint32_t>(limits().guarantees);
  info->largest = limits().largest;
  info->copied = limits().copied;
  info->in_flight = static_cast<uint32_t>(limits().in_flight);
}

void limited_address(pw_nic* nic, pw_nic_address* address) {
  nic_address(nic, address);
  lengthen(*address);
}

pw_nic_status limited_connect(pw_nic* nic, const pw_nic_address* address, pw_nic_peer** peer) {
  pw_nic_address inner = *address;
  return shorten(inner) ? nic_connect(nic, &inner, peer) : wrong("an address that was altered");
}

pw_nic_status limited_register(pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory,
                               pw_nic_key* key) {
  const pw_nic_status status = nic_register(nic, span, memory, key);
  lengthen(*key);
  of(nic).spans[*memory] = *span;
  return status;
}

void limited_deregister(pw_nic* nic, pw_nic_memory* memory) {
  of(nic).spans.erase(memory);
  nic_deregister(nic, memory);
}

pw_nic_status limited_import(pw_nic* nic, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote) {
  pw_nic_key inner = *key;
  return shorten(inner) ? nic_import(nic, peer, &inner, remote) : wrong("a key that was altered");
}

pw_nic_status limited_put(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                          pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  if (bytes > limits().largest) return wrong("a put of more bytes than `largest`");
  if (!local(nic, data, memory, bytes)) return wrong("a put of bytes that are neither registered nor few");
  return limited(nic, done,
                 [&](pw_nic_done* ours) { return nic_put(nic, remote, offset, data, memory, bytes, ours); });
}

pw_nic_status limited_get(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data,
                          pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  if (bytes > limits().largest) return wrong("a get of more bytes than `largest`");
  if (memory == nullptr || !local(nic, data, memory, bytes))
    return wrong("a get to memory that is not registered");
  return limited(nic, done,
                 [&](pw_nic_done* ours) { return nic_get(nic, remote, offset, data, memory, bytes, ours); });
}

pw_nic_status limited_put_strided(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t to_stride,
                                  const void* data, uint64_t from_stride, pw_nic_memory* memory,
                                  uint64_t blocks, uint64_t block_bytes, pw_nic_done* done) {
  if (blocks * block_bytes > limits().largest) return wrong("a strided put of more bytes than `largest`");
  if (blocks == 0 || !local(nic, data, memory, (blocks - 1) * from_stride + block_bytes))
    return wrong("a strided put of bytes that are neither registered nor few");
  return limited(nic, done, [&](pw_nic_done* ours) {
    return nic_put_strided(nic, remote, offset, to_stride, data, from_stride, memory, blocks, block_bytes,
                           ours);
  });
}

pw_nic_status limited_put_with_word(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                                    pw_nic_memory* memory, uint64_t bytes, pw_nic_remote* word_remote,
                                    uint64_t word_offset, uint64_t value, pw_nic_done* done) {
  if (bytes > limits().largest) return wrong("a put with a word of more bytes than `largest`");
  if (!local(nic, data, memory, bytes))
    return wrong("a put with a word of bytes that are neither registered nor few");
  return limited(nic, done, [&](pw_nic_done* ours) {
    return nic_put_with_word(nic, remote, offset, data, memory, bytes, word_remote, word_offset, value, ours);
  });
}

pw_nic_status limited_fetch_add(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t add,
                                uint64_t* before, pw_nic_memory* memory, pw_nic_done* done) {
  return limited(nic, done, [&](pw_nic_done* ours) {
    return nic_fetch_add(nic, remote, offset, add, before, memory, ours);
  });
}

}  // namespace

#if defined(__GNUC__)
#endif
extern "C" __attribute__((visibility("default"))) const pw_nic_ops* pw_nic_plugin(void) {
  static pw_nic_ops ops;
  limits() = read_limits();
  ops = [] {
    pw_nic_ops made = *full_nic();
    made.name = "limited";
    made.open = limited_open;
    made.close = limited_close;
    made.query = limited_query;
    made.address = limited_address;
    made.connect = limited_connect;
    made.register_memory = limited_register;
    made.deregister_memory = limited_deregister;
    made.import_key = limited_import;
    made.put = limited_put;
    made.get = limited_get;
    made.put_strided = without("put_strided") ? nullptr : limited_put_strided;
    made.put_with_word = without("put_with_word") ? nullptr : limited_put_with_word;
    made.fetch_add = without("fetch_add") ? nullptr : limited_fetch_add;
    if (without("event")) made.event = nullptr;
    if (without("event") || without("arm")) made.arm = nullptr;
    return made;
  }();
  return &ops;
}
