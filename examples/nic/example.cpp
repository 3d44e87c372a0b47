// A card plugin in one file: the card is the kernel, which copies between the processes of a host
// (process_vm_writev and process_vm_readv). docs/nic-guide.md walks through it; take it as the start of your
// own. Every operation is over when it was posted, so that puts are in order and gets behind them.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "peerway/nic.h"

namespace {

constexpr uint32_t kEndpoints = 256, kMemories = 4096;
constexpr uint64_t kLargest = 1u << 30;

// One for each memory that an endpoint registered, where its peers see it: a key is good while the generation
// is the key's own. Who copies is counted in, so that nothing is touched once deregister_memory() returned.
struct Entry {
  std::atomic<uint64_t> generation;
  std::atomic<uint64_t> users;
};

struct Address {
  char host[52];  // others are out of reach
  int32_t process, table;
};

struct Key {
  uint64_t address, bytes, generation;
  uint32_t entry;
};

thread_local std::string open_failure;

// This running kernel, and the network namespace, within which the names of sockets are.
std::string host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot + std::filesystem::read_symlink("/proc/self/ns/net").string();
}

// The smallest number that no open endpoint of the job has: a socket of that name is gone with its process.
int claim_number(uint64_t job, int* number) {
  const int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (*number = 0; *number < static_cast<int>(kEndpoints); ++*number) {
    sockaddr_un name{AF_UNIX, {}};  // a name that begins with a zero is in no file system
    const auto text = "peerway-example-" + std::to_string(job) + "-" + std::to_string(*number);
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    if (bind(claim, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) return claim;
  }
  close(claim);
  return -1;
}

Entry* map_table(int descriptor) {
  void* table = mmap(nullptr, kMemories * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return table == MAP_FAILED ? nullptr : static_cast<Entry*>(table);
}

}  // namespace

struct pw_nic {
  int number, claim, table;
  Entry* entries;
  std::vector<pw_nic_done*> done;
  std::string why;
};
struct pw_nic_peer {
  pid_t process;
  int watch;  // a pidfd: readable when the process is gone
  Entry* entries;
};
struct pw_nic_memory {
  Entry* entry;
};
struct pw_nic_remote {
  pw_nic_peer* peer;
  Key key;
};

namespace {

// Addresses and keys are plain bytes to everybody else.
template <typename Value, typename Bytes>
void pack(const Value& value, Bytes* out) {
  static_assert(sizeof value <= sizeof out->bytes);
  out->length = sizeof value;
  std::memcpy(out->bytes, &value, sizeof value);
}

template <typename Value, typename Bytes>
bool unpack(const Bytes* from, Value* value) {
  std::memcpy(value, from->bytes, sizeof *value);
  return from->length == sizeof *value;
}

pw_nic_status fail(pw_nic* nic, pw_nic_status status, const std::string& why) {
  nic->why = why;
  return status;
}

void nic_close(pw_nic* nic) {
  for (pw_nic_done* done : nic->done) done->call(done, PW_NIC_OK);
  if (nic->entries != nullptr) munmap(nic->entries, kMemories * sizeof(Entry));
  close(nic->table);
  close(nic->claim);
  delete nic;
}

pw_nic_status nic_open(const pw_nic_options* options, pw_nic** out) {
  auto* nic = new pw_nic{0, -1, memfd_create("example-nic", MFD_CLOEXEC), nullptr, {}, {}};
  nic->claim = claim_number(options->job, &nic->number);
  if (nic->claim >= 0 && ftruncate(nic->table, kMemories * sizeof(Entry)) == 0)
    nic->entries = map_table(nic->table);
  *out = nic;
  if (nic->entries != nullptr) return PW_NIC_OK;
  open_failure = std::string("no endpoint is free, or no shared memory: ") + std::strerror(errno);
  nic_close(nic);
  return PW_NIC_BROKEN;
}

void nic_query(pw_nic* nic, pw_nic_info* info) {
  info->promises = PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS;
  info->memory_kinds = 1u << PW_NIC_HOST;
  info->largest = kLargest;
  info->copied = kLargest;  // every put is over at once
  info->number = static_cast<uint32_t>(nic->number);
  info->endpoints = kEndpoints;
  info->latency_ns = 500;
  info->bytes_per_s = 5e9;
}

void nic_address(pw_nic* nic, pw_nic_address* out) {
  Address address{{}, getpid(), nic->table};
  host().copy(address.host, sizeof address.host - 1);
  pack(address, out);
}

const char* nic_why(pw_nic* nic) { return nic == nullptr ? open_failure.c_str() : nic->why.c_str(); }

pw_nic_status nic_connect(pw_nic* nic, const pw_nic_address* to, pw_nic_peer** out) {
  Address address;
  if (!unpack(to, &address)) return fail(nic, PW_NIC_REFUSED, "this is no address of this plugin");
  if (address.host != host()) return fail(nic, PW_NIC_UNREACHABLE, "the endpoint is on another host");
  const auto path = "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.table);
  const int watch = static_cast<int>(syscall(SYS_pidfd_open, address.process, 0));
  const int table = open(path.c_str(), O_RDWR | O_CLOEXEC);
  Entry* entries = watch >= 0 && table >= 0 ? map_table(table) : nullptr;
  if (table >= 0) close(table);
  if (entries == nullptr) {
    if (watch >= 0) close(watch);
    return fail(nic, PW_NIC_UNREACHABLE, path + ": " + std::strerror(errno));
  }
  *out = new pw_nic_peer{address.process, watch, entries};
  return PW_NIC_OK;
}

void nic_disconnect(pw_nic*, pw_nic_peer* peer) {
  munmap(peer->entries, kMemories * sizeof(Entry));
  close(peer->watch);
  delete peer;
}

// The kernel takes any address of the process, so that there is nothing to pin.
pw_nic_status nic_register(pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory, pw_nic_key* out) {
  static std::atomic<uint64_t> last{0};
  if (span->kind != PW_NIC_HOST) return fail(nic, PW_NIC_REFUSED, "only memory of the host");
  uint32_t entry = 0;
  while (entry < kMemories && nic->entries[entry].generation != 0) ++entry;
  if (entry == kMemories) return fail(nic, PW_NIC_REFUSED, "all 4096 registrations are in use");
  const Key key{reinterpret_cast<uint64_t>(span->address), span->bytes, ++last, entry};
  nic->entries[entry].generation = key.generation;
  *memory = new pw_nic_memory{&nic->entries[entry]};
  pack(key, out);
  return PW_NIC_OK;
}

void nic_deregister(pw_nic*, pw_nic_memory* memory) {
  memory->entry->generation = 0;
  for (int ms = 0; memory->entry->users > 0 && ms < 100; ++ms) usleep(1000);  // a dead peer stays counted in
  memory->entry->users = 0;
  delete memory;
}

pw_nic_status nic_import(pw_nic* nic, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote) {
  Key known;
  if (!unpack(key, &known) || known.entry >= kMemories)
    return fail(nic, PW_NIC_REFUSED, "this is no key of this plugin");
  *remote = new pw_nic_remote{peer, known};
  return PW_NIC_OK;
}

void nic_release(pw_nic*, pw_nic_remote* remote) { delete remote; }

pw_nic_status copy(pw_nic* nic, bool put, const pw_nic_remote* remote, uint64_t offset, void* data,
                   uint64_t bytes, pw_nic_done* done) {
  const Key& key = remote->key;
  if (bytes > kLargest || offset > key.bytes || bytes > key.bytes - offset)
    return fail(nic, PW_NIC_INVALID, "outside of the memory, or too long");
  pollfd gone{remote->peer->watch, POLLIN, 0};
  if (poll(&gone, 1, 0) > 0) return fail(nic, PW_NIC_UNREACHABLE, "the process is gone");
  const iovec here{data, bytes}, there{reinterpret_cast<void*>(key.address + offset), bytes};
  Entry& entry = remote->peer->entries[key.entry];
  ++entry.users;
  const bool open = entry.generation == key.generation;
  const ssize_t moved = !open ? -1
                        : put ? process_vm_writev(remote->peer->process, &here, 1, &there, 1, 0)
                              : process_vm_readv(remote->peer->process, &here, 1, &there, 1, 0);
  const int error = errno;
  --entry.users;
  if (!open) return fail(nic, PW_NIC_REFUSED, "the memory was deregistered");
  if (moved < 0 || static_cast<uint64_t>(moved) < bytes)
    return fail(nic, error == ESRCH ? PW_NIC_UNREACHABLE : PW_NIC_REFUSED, std::strerror(error));
  if (done != nullptr) nic->done.push_back(done);
  return PW_NIC_OK;
}

pw_nic_status nic_put(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data, pw_nic_memory*,
                      uint64_t bytes, pw_nic_done* done) {
  return copy(nic, true, remote, offset, const_cast<void*>(data), bytes, done);
}

pw_nic_status nic_get(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data, pw_nic_memory*,
                      uint64_t bytes, pw_nic_done* done) {
  return copy(nic, false, remote, offset, data, bytes, done);
}

unsigned nic_progress(pw_nic* nic) {
  unsigned count = 0;
  for (; count < nic->done.size(); ++count) nic->done[count]->call(nic->done[count], PW_NIC_OK);
  nic->done.clear();
  return count;
}

}  // namespace

extern "C" const pw_nic_ops* pw_nic_plugin(void) {
  static const pw_nic_ops ops = {// the optional entries are left out
                                 PW_NIC_ABI,   sizeof(pw_nic_ops),
                                 "example",    nic_open,
                                 nic_close,    nic_query,
                                 nic_address,  nic_why,
                                 nic_connect,  nic_disconnect,
                                 nic_register, nic_deregister,
                                 nic_import,   nic_release,
                                 nic_put,      nic_get,
                                 nic_progress, nullptr,
                                 nullptr,      nullptr,
                                 nullptr,      nullptr};
  return &ops;
}
