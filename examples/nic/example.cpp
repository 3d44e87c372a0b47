// A NIC plugin in one file: the "NIC" is the kernel, which copies between the processes of a host.
// docs/nic/guide.md walks through it; copy it to begin your own. Each operation is complete when put() or
// get() returns, so puts arrive in order and gets read what earlier puts stored.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
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

constexpr uint32_t kEndpoints = 256, kMemories = 4096;
constexpr uint64_t kLargest = 1u << 30, kCopied = 4096, kTableBytes = kMemories * 16;

// One for each registration of an endpoint, in a table that its peers map. A key is valid while it has the
// same generation. `users` counts active copies, so that deregister_memory() can wait for them.
struct pw_nic_memory {
  std::atomic<uint64_t> generation, users;
};
struct pw_nic {
  uint32_t number;
  int claim, table;
  pw_nic_memory* memories;
  std::vector<pw_nic_done*> done;
  std::string why;
};
struct pw_nic_peer {
  pid_t process;
  pw_nic_memory* memories;
};
struct Key {
  uint64_t address, bytes, generation, number;
};
struct pw_nic_remote {
  pid_t process;
  pw_nic_memory* memory;
  Key key;
};
struct Address {
  uint64_t kernel, process, table;  // the table's descriptor in that process
};

namespace {

thread_local std::string open_failure;

// Identifies the running kernel and the network namespace: endpoints reach each other only within both.
uint64_t this_kernel() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return std::hash<std::string>{}(boot + std::filesystem::read_symlink("/proc/self/ns/net").string());
}

// Claims the smallest number that no open endpoint of the job has: a socket's name, released with the
// process.
int claim_number(uint64_t job, uint32_t* number) {
  const int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (*number = 0; *number < kEndpoints; ++*number) {
    sockaddr_un name{AF_UNIX, {}};  // a name that begins with a zero byte is not in any file system
    const auto text = "peerway-example-" + std::to_string(job) + "-" + std::to_string(*number);
    text.copy(name.sun_path + 1, sizeof name.sun_path - 2);
    if (bind(claim, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) return claim;
  }
  close(claim);
  return -1;
}

pw_nic_memory* map_table(int descriptor) {
  void* table = mmap(nullptr, kTableBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return table == MAP_FAILED ? nullptr : static_cast<pw_nic_memory*>(table);
}

template <typename Plain, typename Wire>
void write_to(Wire* wire, const Plain& plain) {
  static_assert(sizeof plain <= sizeof wire->bytes);
  wire->length = sizeof plain;
  std::memcpy(wire->bytes, &plain, sizeof plain);
}

pw_nic_status fail(pw_nic* nic, pw_nic_status status, const std::string& why) {
  nic->why = why;
  return status;
}

void close_nic(pw_nic* nic) {
  for (pw_nic_done* done : nic->done) done->call(done, PW_NIC_OK);
  if (nic->memories != nullptr) munmap(nic->memories, kTableBytes);
  close(nic->table);
  close(nic->claim);
  delete nic;
}

pw_nic_status open_nic(const pw_nic_options* options, pw_nic** out) {
  auto* nic = new pw_nic{0, -1, memfd_create("example-nic", MFD_CLOEXEC), nullptr, {}, {}};
  nic->claim = claim_number(options->job, &nic->number);
  if (ftruncate(nic->table, kTableBytes) == 0 && nic->claim >= 0) nic->memories = map_table(nic->table);
  *out = nic;
  if (nic->memories != nullptr) return PW_NIC_OK;
  open_failure = std::string("no endpoint number is free, or no shared memory: ") + std::strerror(errno);
  close_nic(nic);
  return PW_NIC_BROKEN;
}

pw_nic_status connect(pw_nic* nic, const pw_nic_address* to, pw_nic_peer** out) {
  Address there;
  if (to->length != sizeof there) return fail(nic, PW_NIC_REFUSED, "this is not an address of this plugin");
  std::memcpy(&there, to->bytes, sizeof there);
  if (there.kernel != this_kernel()) return fail(nic, PW_NIC_UNREACHABLE, "the endpoint is on another host");
  const auto path = "/proc/" + std::to_string(there.process) + "/fd/" + std::to_string(there.table);
  const int table = open(path.c_str(), O_RDWR | O_CLOEXEC);
  pw_nic_memory* memories = map_table(table);
  close(table);
  if (memories == nullptr) return fail(nic, PW_NIC_UNREACHABLE, path + " cannot be mapped");
  *out = new pw_nic_peer{static_cast<pid_t>(there.process), memories};
  return PW_NIC_OK;
}

// The kernel accepts any address of the process, so there is nothing to pin or to translate.
pw_nic_status register_memory(pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory, pw_nic_key* key) {
  static std::atomic<uint64_t> last{0};
  if (span->kind != PW_NIC_HOST) return fail(nic, PW_NIC_REFUSED, "only host memory can be registered");
  uint64_t number = 0;
  while (number < kMemories && nic->memories[number].generation != 0) ++number;
  if (number == kMemories) return fail(nic, PW_NIC_BUSY, "all 4096 registrations are in use");
  *memory = &nic->memories[number];
  (*memory)->generation = ++last;
  write_to(key, Key{reinterpret_cast<uint64_t>(span->address), span->bytes, (*memory)->generation, number});
  return PW_NIC_OK;
}

void deregister_memory(pw_nic*, pw_nic_memory* memory) {
  memory->generation = 0;
  int ms = 0;
  while (memory->users > 0 && ms < 1000) usleep(1000), ++ms;
  if (ms == 1000) memory->users = 0;  // a peer that died never counts itself out
}

pw_nic_status import_key(pw_nic* nic, pw_nic_peer* peer, const pw_nic_key* wire, pw_nic_remote** remote) {
  Key key;
  if (wire->length != sizeof key) return fail(nic, PW_NIC_REFUSED, "this is not a key of this plugin");
  std::memcpy(&key, wire->bytes, sizeof key);
  if (key.number >= kMemories) return fail(nic, PW_NIC_REFUSED, "the key is damaged");
  *remote = new pw_nic_remote{peer->process, &peer->memories[key.number], key};
  return PW_NIC_OK;
}

using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

pw_nic_status copy(pw_nic* nic, Copy kernel, const pw_nic_remote* remote, uint64_t offset, void* data,
                   uint64_t bytes, pw_nic_done* done) {
  const Key& key = remote->key;
  if (bytes > kLargest || offset > key.bytes || bytes > key.bytes - offset)
    return fail(nic, PW_NIC_INVALID, "outside the memory, or too long");
  const iovec here{data, bytes}, there{reinterpret_cast<void*>(key.address + offset), bytes};
  ++remote->memory->users;
  const bool open = remote->memory->generation == key.generation;
  const ssize_t moved = open ? kernel(remote->process, &here, 1, &there, 1, 0) : -1;
  const int error = errno;
  --remote->memory->users;
  if (!open) return fail(nic, PW_NIC_REFUSED, "the memory was deregistered");
  if (moved != static_cast<ssize_t>(bytes))
    return fail(nic, error == ESRCH ? PW_NIC_UNREACHABLE : PW_NIC_REFUSED, std::strerror(error));
  if (done != nullptr) nic->done.push_back(done);
  return PW_NIC_OK;
}

unsigned progress(pw_nic* nic) {
  unsigned count = 0;
  for (; count < nic->done.size(); ++count) nic->done[count]->call(nic->done[count], PW_NIC_OK);
  nic->done.clear();
  return count;
}

void query(pw_nic* nic, pw_nic_info* info) {
  info->guarantees = PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS;
  info->memory_kinds = 1u << PW_NIC_HOST;
  info->largest = kLargest;
  info->copied = kCopied;
  info->number = nic->number;
  info->endpoints = kEndpoints;
  info->latency_ns = 500;
  info->bytes_per_s = 5e9;
}

}  // namespace

extern "C" const pw_nic_ops* pw_nic_plugin(void) {
  static const pw_nic_ops ops = [] {
    pw_nic_ops entries{};  // the optional entries stay null
    entries.abi = PW_NIC_ABI;
    entries.size = sizeof entries;
    entries.name = "example";
    entries.open = open_nic;
    entries.close = close_nic;
    entries.query = query;
    entries.address = [](pw_nic* nic, pw_nic_address* address) {
      write_to(address,
               Address{this_kernel(), static_cast<uint64_t>(getpid()), static_cast<uint64_t>(nic->table)});
    };
    entries.why = [](pw_nic* nic) { return nic == nullptr ? open_failure.c_str() : nic->why.c_str(); };
    entries.connect = connect;
    entries.disconnect = [](pw_nic*, pw_nic_peer* peer) {
      munmap(peer->memories, kTableBytes);
      delete peer;
    };
    entries.register_memory = register_memory;
    entries.deregister_memory = deregister_memory;
    entries.import_key = import_key;
    entries.release_key = [](pw_nic*, pw_nic_remote* remote) { delete remote; };
    entries.put = [](pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data, pw_nic_memory*,
                     uint64_t bytes, pw_nic_done* done) {
      return copy(nic, process_vm_writev, remote, offset, const_cast<void*>(data), bytes, done);
    };
    entries.get = [](pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data, pw_nic_memory*,
                     uint64_t bytes, pw_nic_done* done) {
      return copy(nic, process_vm_readv, remote, offset, data, bytes, done);
    };
    entries.progress = progress;
    return entries;
  }();
  return &ops;
}
