// A card with every optional entry, which keeps every law of nic.h, but for the flaw that its configuration
// names. An engine of its own moves the bytes by process_vm_writev and process_vm_readv.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "peerway/nic.h"

namespace {

constexpr uint64_t kMagic = 0x466c617765644e49, kLargest = 1 << 20, kCopied = 256;
constexpr uint32_t kEndpoints = 1 << 16;

struct Address {
  uint64_t magic;
  int64_t process;
};
struct Key {
  uint64_t magic, address, bytes, open;  // open: where the owner's word lies that is 1 while it is registered
};

enum class Kind { put, get, add };

struct Operation {
  Kind kind;
  int64_t process;
  Key key;
  uint64_t offset;
  std::byte* local;
  uint64_t bytes;  // of each block
  std::vector<std::byte> copied;
  pw_nic_done* done;
  uint64_t blocks = 1, from_stride = 0, to_stride = 0;
  uint64_t add = 0;
  uint64_t word_address = 0, word = 0;  // what is stored after a put; 0: nothing
  pw_nic_status status = PW_NIC_OK;

  [[nodiscard]] bool put() const { return kind == Kind::put; }
  [[nodiscard]] uint64_t extent() const { return (blocks - 1) * to_stride + bytes; }
};

std::string reason;  // of the last refusal

}  // namespace

struct pw_nic {
  std::string flaw;  // one, or none
  std::mutex mutex;
  std::condition_variable woken;
  std::deque<std::unique_ptr<Operation>> posted, ended;
  bool stop = false, armed = false;
  int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::thread engine;
  [[nodiscard]] bool has(const std::string& name) const { return flaw == name; }
};
struct pw_nic_peer {
  int64_t process;
};
struct pw_nic_memory {
  std::atomic<uint64_t> open;
};
struct pw_nic_remote {
  int64_t process;
  Key key;
};

namespace {

pw_nic_status refuse(pw_nic_status status, const char* why) {
  reason = why;
  return status;
}

bool copy(int64_t to, bool put, void* local, uint64_t far, uint64_t bytes) {
  const auto process = static_cast<pid_t>(to);
  const iovec here{local, bytes}, there{reinterpret_cast<void*>(far), bytes};
  const ssize_t moved = put ? process_vm_writev(process, &here, 1, &there, 1, 0)
                            : process_vm_readv(process, &here, 1, &there, 1, 0);
  return moved == static_cast<ssize_t>(bytes);
}

/// Only one process adds at a time: whoever has this library's file locked.
bool add(const pw_nic& nic, Operation& what) {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&reason), &here);
  const int lock = open(here.dli_fname, O_RDONLY | O_CLOEXEC);
  flock(lock, LOCK_EX);
  uint64_t value = 0;
  const uint64_t far = what.key.address + what.offset;
  bool good = copy(what.process, false, &value, far, 8);
  uint64_t sum = value + what.add;
  std::memcpy(what.local, nic.has("late-fetch") ? &sum : &value, 8);
  good = good && copy(what.process, true, &sum, far, 8);
  close(lock);
  return good;
}

pw_nic_status move(const pw_nic& nic, Operation& what) {
  uint64_t open = 0;
  const iovec word{&open, 8}, far_word{reinterpret_cast<void*>(what.key.open), 8};
  if (process_vm_readv(static_cast<pid_t>(what.process), &word, 1, &far_word, 1, 0) != 8)
    return PW_NIC_UNREACHABLE;
  if (open != 1 && !nic.has("forgetful")) return PW_NIC_REFUSED;
  if (what.kind == Kind::add) return add(nic, what) ? PW_NIC_OK : PW_NIC_UNREACHABLE;
  std::byte* local = what.copied.empty() ? what.local : what.copied.data();
  const uint64_t far = what.key.address + what.offset;
  const bool word_first = nic.has("word-first");
  const auto store_word = [&] {
    return what.word_address == 0 || copy(what.process, true, &what.word, what.word_address, 8);
  };
  if (word_first && !store_word()) return PW_NIC_UNREACHABLE;
  if (word_first && what.word_address != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  const uint64_t to_stride = nic.has("dense") ? what.bytes : what.to_stride;
  for (uint64_t i = 0; i < what.blocks; ++i)
    if (!copy(what.process, what.put(), local + i * what.from_stride, far + i * to_stride, what.bytes))
      return PW_NIC_UNREACHABLE;
  return word_first || store_word() ? PW_NIC_OK : PW_NIC_UNREACHABLE;
}

/// Which operation is next. With a flaw of order: small puts before large ones, or gets before puts.
std::unique_ptr<Operation> next(pw_nic& nic) {
  auto chosen = nic.posted.begin();
  if (nic.has("puts-overtake"))
    for (auto it = nic.posted.begin(); it != nic.posted.end(); ++it)
      if ((*it)->put() && (*it)->bytes <= 8 && (*chosen)->put() && (*chosen)->bytes > 8) chosen = it;
  if (nic.has("gets-overtake"))
    for (auto it = nic.posted.begin(); it != nic.posted.end(); ++it)
      if (!(*it)->put() && (*chosen)->put()) chosen = it;
  std::unique_ptr<Operation> taken = std::move(*chosen);
  nic.posted.erase(chosen);
  return taken;
}

/// With the mutex.
void tell(pw_nic& nic) {
  if (nic.armed && !nic.ended.empty() && !nic.has("mute")) eventfd_write(nic.event, 1);
}

void run(pw_nic* nic) {
  std::unique_lock lock(nic->mutex);
  for (;;) {
    nic->woken.wait(lock, [&] { return nic->stop || !nic->posted.empty(); });
    if (nic->stop) return;
    if (nic->has("puts-overtake") ||
        nic->has("gets-overtake")) {  // so that there is something to choose from
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    }
    std::unique_ptr<Operation> taken = next(*nic);
    lock.unlock();
    taken->status = move(*nic, *taken);
    lock.lock();
    if (nic->has("lost-done") && taken->put() && taken->bytes == 64) continue;
    nic->ended.push_back(std::move(taken));
    tell(*nic);
  }
}

pw_nic_status post(pw_nic* nic, std::unique_ptr<Operation> what) {
  const bool outside = what->offset > what->key.bytes || what->extent() > what->key.bytes - what->offset;
  if (outside && !nic->has("unbounded")) return refuse(PW_NIC_INVALID, "outside of the remote memory");
  if (nic->has("done-in-put") && what->done != nullptr && what->put()) {
    what->done->call(what->done, move(*nic, *what));
    return PW_NIC_OK;
  }
  std::lock_guard lock(nic->mutex);
  if (nic->posted.size() >= 64) return PW_NIC_BUSY;
  nic->posted.push_back(std::move(what));
  if (!nic->has("polls")) nic->woken.notify_one();
  return PW_NIC_OK;
}

pw_nic_status nic_open(const pw_nic_options* options, pw_nic** nic) {
  auto made = std::make_unique<pw_nic>();
  made->flaw = options->configuration;
  if (made->has("broken")) return refuse(PW_NIC_BROKEN, "the card does not answer");
  pw_nic* raw = made.release();
  if (!raw->has("polls")) raw->engine = std::thread(run, raw);
  *nic = raw;
  return PW_NIC_OK;
}

void nic_close(pw_nic* nic) {
  {
    std::lock_guard lock(nic->mutex);
    nic->stop = true;
  }
  nic->woken.notify_one();
  if (nic->engine.joinable()) nic->engine.join();
  for (auto* list : {&nic->posted, &nic->ended})
    for (const auto& left : *list)
      if (left->done != nullptr) left->done->call(left->done, PW_NIC_BROKEN);
  close(nic->event);
  delete nic;
}

void nic_query(pw_nic* nic, pw_nic_info* info) {
  info->promises = PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS;
  if (nic->has("silent")) info->promises = 0;
  info->memory_kinds = 1u << PW_NIC_HOST;
  info->largest = nic->has("small") ? 100 : kLargest;
  info->copied = kCopied;
  info->number = nic->has("twins") ? 1 : static_cast<uint32_t>(getpid()) % kEndpoints;
  info->endpoints = kEndpoints;
  info->latency_ns = 1000;
  info->bytes_per_s = 5e9;
}

void nic_address(pw_nic*, pw_nic_address* address) {
  const Address mine{kMagic, getpid()};
  address->length = sizeof mine;
  std::memcpy(address->bytes, &mine, sizeof mine);
}

const char* nic_why(pw_nic*) { return reason.c_str(); }

pw_nic_status nic_connect(pw_nic*, const pw_nic_address* address, pw_nic_peer** peer) {
  Address theirs{};
  std::memcpy(&theirs, address->bytes, sizeof theirs);
  if (address->length != sizeof theirs || theirs.magic != kMagic)
    return refuse(PW_NIC_REFUSED, "these bytes are no address of this card");
  *peer = new pw_nic_peer{theirs.process};
  return PW_NIC_OK;
}
void nic_disconnect(pw_nic*, pw_nic_peer* peer) { delete peer; }

pw_nic_status nic_register(pw_nic*, const pw_nic_span* span, pw_nic_memory** memory, pw_nic_key* key) {
  *memory = new pw_nic_memory{{1}};
  const Key mine{kMagic, reinterpret_cast<uint64_t>(span->address), span->bytes,
                 reinterpret_cast<uint64_t>(&(*memory)->open)};
  key->length = sizeof mine;
  std::memcpy(key->bytes, &mine, sizeof mine);
  return PW_NIC_OK;
}
void nic_deregister(pw_nic*, pw_nic_memory* memory) { memory->open = 0; }  // peers still look at it

pw_nic_status nic_import(pw_nic*, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote) {
  Key theirs{};
  std::memcpy(&theirs, key->bytes, sizeof theirs);
  if (key->length != sizeof theirs || theirs.magic != kMagic)
    return refuse(PW_NIC_REFUSED, "these bytes are no key of this card");
  *remote = new pw_nic_remote{peer->process, theirs};
  return PW_NIC_OK;
}
void nic_release(pw_nic*, pw_nic_remote* remote) { delete remote; }

pw_nic_status nic_put(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                      pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  auto what = std::make_unique<Operation>(
      Operation{Kind::put, remote->process, remote->key, offset, from, bytes, {}, done});
  if (memory == nullptr) what->copied.assign(from, from + bytes);
  return post(nic, std::move(what));
}

pw_nic_status nic_get(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data, pw_nic_memory*,
                      uint64_t bytes, pw_nic_done* done) {
  auto* to = static_cast<std::byte*>(data);
  return post(nic, std::make_unique<Operation>(
                       Operation{Kind::get, remote->process, remote->key, offset, to, bytes, {}, done}));
}

pw_nic_status nic_put_strided(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t to_stride,
                              const void* data, uint64_t from_stride, pw_nic_memory*, uint64_t blocks,
                              uint64_t block_bytes, pw_nic_done* done) {
  auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  return post(nic, std::make_unique<Operation>(Operation{Kind::put,
                                                         remote->process,
                                                         remote->key,
                                                         offset,
                                                         from,
                                                         block_bytes,
                                                         {},
                                                         done,
                                                         blocks,
                                                         from_stride,
                                                         to_stride}));
}

pw_nic_status nic_put_with_word(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                                pw_nic_memory* memory, uint64_t bytes, pw_nic_remote* word_remote,
                                uint64_t word_offset, uint64_t value, pw_nic_done* done) {
  auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  auto what = std::make_unique<Operation>(
      Operation{Kind::put, remote->process, remote->key, offset, from, bytes, {}, done});
  if (memory == nullptr) what->copied.assign(from, from + bytes);
  what->word_address = word_remote->key.address + word_offset;
  what->word = value;
  return post(nic, std::move(what));
}

pw_nic_status nic_fetch_add(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t add,
                            uint64_t* before, pw_nic_memory*, pw_nic_done* done) {
  auto what = std::make_unique<Operation>(Operation{
      Kind::add, remote->process, remote->key, offset, reinterpret_cast<std::byte*>(before), 8, {}, done});
  what->add = add;
  return post(nic, std::move(what));
}

int nic_event(pw_nic* nic) { return nic->event; }

void nic_arm(pw_nic* nic) {
  std::lock_guard lock(nic->mutex);
  eventfd_t count = 0;
  eventfd_read(nic->event, &count);
  nic->armed = true;
  tell(*nic);
}

unsigned nic_progress(pw_nic* nic) {
  std::deque<std::unique_ptr<Operation>> ended;
  {
    std::lock_guard lock(nic->mutex);
    nic->armed = false;
    for (; nic->has("polls") && !nic->posted.empty(); nic->posted.pop_front()) {
      nic->posted.front()->status = move(*nic, *nic->posted.front());
      nic->ended.push_back(std::move(nic->posted.front()));
    }
    ended.swap(nic->ended);
  }
  if (nic->has("backwards")) std::reverse(ended.begin(), ended.end());
  for (const auto& what : ended)
    for (int calls = nic->has("twice") ? 2 : 1; what->done != nullptr && calls > 0; --calls)
      what->done->call(what->done, what->status);
  return static_cast<unsigned>(ended.size());
}

}  // namespace

const pw_nic_ops* pw_nic_plugin() {
  static const pw_nic_ops ops = {
      .abi = PW_NIC_ABI,
      .size = sizeof(pw_nic_ops),
      .name = "full",
      .open = nic_open,
      .close = nic_close,
      .query = nic_query,
      .address = nic_address,
      .why = nic_why,
      .connect = nic_connect,
      .disconnect = nic_disconnect,
      .register_memory = nic_register,
      .deregister_memory = nic_deregister,
      .import_key = nic_import,
      .release_key = nic_release,
      .put = nic_put,
      .get = nic_get,
      .progress = nic_progress,
      .put_strided = nic_put_strided,
      .put_with_word = nic_put_with_word,
      .fetch_add = nic_fetch_add,
      .event = nic_event,
      .arm = nic_arm,
  };
  return &ops;
}
