// A NIC with every optional entry that does all that nic.h requires, except for the flaws that its
// configuration names, separated by commas. "only-puts", "only-gets" and "silent" are not flaws: the NIC
// keeps both ordering guarantees, but states fewer.
#include "full_nic.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace {

thread_local std::string open_failure;
std::string reason;  // of the last refusal

pw_nic_status refuse(pw_nic_status status, const char* why) {
  reason = why;
  return status;
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    words.insert(text.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

// Claims the smallest number that no open endpoint of the job has: the name of a socket, which is gone with
// its process.
bool claim_number(pw_nic& nic, uint64_t job) {
  nic.claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (nic.number = 0; nic.number < kEndpoints; ++nic.number) {
    sockaddr_un name{AF_UNIX, {}};
    const auto text = "peerway-full-" + std::to_string(job) + "-" + std::to_string(nic.number);
    text.copy(name.sun_path + 1, sizeof name.sun_path - 2);
    if (bind(nic.claim, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) return true;
  }
  return false;
}

void start_engine(pw_nic* nic) {
  sigset_t all, before;
  sigfillset(&all);  // signals are for the program's threads
  if (!nic->has("signals")) pthread_sigmask(SIG_SETMASK, &all, &before);
  nic->engine = std::thread(run, nic);
  if (!nic->has("signals")) pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

pw_nic_status nic_open(const pw_nic_options* options, pw_nic** out) {
  auto nic = std::make_unique<pw_nic>();
  nic->flaws = words_of(options->configuration);
  if (nic->has("broken")) {
    open_failure = "the NIC does not answer";
    return PW_NIC_BROKEN;
  }
  nic->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  nic->file = memfd_create("full-nic", MFD_CLOEXEC);
  const bool sized = ftruncate(nic->file, sizeof(Slot) * kSlots) == 0;
  nic->table = std::make_shared<Table>(nic->file);
  if (!sized || !nic->table->good() || !claim_number(*nic, options->job)) {
    open_failure = "no endpoint is free, or no shared memory";
    for (const int descriptor : {nic->event, nic->file, nic->claim}) close(descriptor);
    return PW_NIC_BROKEN;
  }
  if (!nic->has("polls")) start_engine(nic.get());
  *out = nic.release();
  return PW_NIC_OK;
}

void nic_close(pw_nic* nic) {
  if (nic->has("leaks-threads")) std::thread([] { pause(); }).detach();
  {
    std::lock_guard lock(nic->mutex);
    nic->stop = true;
  }
  nic->woken.notify_one();
  if (nic->engine.joinable()) nic->engine.join();
  for (auto* list : {&nic->ended, &nic->posted})
    for (const auto& left : *list)
      if (left->done != nullptr && !nic->has("silent-close"))
        left->done->call(left->done, list == &nic->ended ? left->status : PW_NIC_BROKEN);
  for (const int descriptor : {nic->event, nic->file, nic->claim}) close(descriptor);
  delete nic;
}

void nic_query(pw_nic* nic, pw_nic_info* info) {
  info->guarantees = PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS;
  if (nic->has("only-puts")) info->guarantees = PW_NIC_PUTS_IN_ORDER;
  if (nic->has("only-gets")) info->guarantees = PW_NIC_GETS_BEHIND_PUTS;
  if (nic->has("silent")) info->guarantees = 0;
  info->memory_kinds = 1u << PW_NIC_HOST;
  info->largest = nic->has("small") ? 100 : kLargest;
  info->copied = kCopied;
  info->in_flight = kQueue;
  info->number = nic->has("twins")           ? 1
                 : nic->has("one-a-process") ? static_cast<uint32_t>(getpid()) % kEndpoints
                                             : nic->number;
  info->endpoints = kEndpoints;
  info->latency_ns = 1000;
  info->bytes_per_s = 5e9;
}

void nic_address(pw_nic* nic, pw_nic_address* address) {
  const Address mine{kMagic, getpid(), nic->file, nic->number};
  address->length = sizeof mine;
  std::memcpy(address->bytes, &mine, sizeof mine);
}

const char* nic_why(pw_nic* nic) { return nic == nullptr ? open_failure.c_str() : reason.c_str(); }

pw_nic_status nic_connect(pw_nic* nic, const pw_nic_address* address, pw_nic_peer** peer) {
  Address theirs{};
  if (address->length == sizeof theirs) std::memcpy(&theirs, address->bytes, sizeof theirs);
  if (theirs.magic != kMagic) return refuse(PW_NIC_REFUSED, "these bytes are no address of this NIC");
  if (nic->has("not-itself") && theirs.process == getpid() && theirs.number == nic->number)
    return refuse(PW_NIC_REFUSED, "this endpoint is the same");
  const auto path = "/proc/" + std::to_string(theirs.process) + "/fd/" + std::to_string(theirs.table);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  auto table = std::make_shared<Table>(file);
  if (!nic->has("leaks-descriptors")) close(file);
  if (!table->good()) return refuse(PW_NIC_UNREACHABLE, "that process is gone");
  *peer = new pw_nic_peer{theirs.process, std::move(table)};
  return PW_NIC_OK;
}

// Posted operations go on, and end as they would have.
void nic_disconnect(pw_nic* nic, pw_nic_peer* peer) {
  std::lock_guard lock(nic->mutex);
  if (nic->has("forgets-disconnected"))
    std::erase_if(nic->posted, [&](const Pointer& each) { return each->remote.peer == peer; });
  delete peer;
}

pw_nic_status nic_register(pw_nic* nic, const pw_nic_span* span, pw_nic_memory** memory, pw_nic_key* key) {
  static std::atomic<uint64_t> last{0};
  if (nic->has("needs-descriptor") && span->descriptor < 0)
    return refuse(PW_NIC_REFUSED, "memory without a descriptor");
  uint64_t slot = 0;
  while (slot < kSlots && nic->table->slots[slot].generation != 0) ++slot;
  if (slot == kSlots) return refuse(PW_NIC_REFUSED, "all registrations are in use");
  *memory = new pw_nic_memory{&nic->table->slots[slot]};
  (*memory)->slot->generation = ++last;
  const Key mine{kMagic, reinterpret_cast<uint64_t>(span->address), span->bytes, last, slot};
  key->length = sizeof mine;
  std::memcpy(key->bytes, &mine, sizeof mine);
  return PW_NIC_OK;
}

// Posted operations from or to this memory end without being done; operations under way are awaited, and so
// are those of peers, except dead peers, which remain counted as users.
void nic_deregister(pw_nic* nic, pw_nic_memory* memory) {
  memory->slot->generation = 0;
  {
    std::unique_lock lock(nic->mutex);
    for (auto it = nic->posted.begin(); it != nic->posted.end();) {
      if ((*it)->memory != memory) {
        ++it;
        continue;
      }
      end(*nic, std::move(*it), PW_NIC_REFUSED);
      it = nic->posted.erase(it);
    }
    while (nic->moving != nullptr && nic->moving->memory == memory) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
  }
  for (int ms = 0; memory->slot->users > 0 && ms < 1000; ++ms) pause_for(1000);
  memory->slot->users = 0;
  delete memory;
}

pw_nic_status nic_import(pw_nic*, pw_nic_peer* peer, const pw_nic_key* key, pw_nic_remote** remote) {
  Key theirs{};
  if (key->length == sizeof theirs) std::memcpy(&theirs, key->bytes, sizeof theirs);
  if (theirs.magic != kMagic || theirs.slot >= kSlots)
    return refuse(PW_NIC_REFUSED, "these bytes are no key of this NIC");
  *remote = new pw_nic_remote{peer, peer->process, peer->table, theirs};
  return PW_NIC_OK;
}

void nic_release(pw_nic* nic, pw_nic_remote* remote) {
  std::lock_guard lock(nic->mutex);
  if (nic->has("forgets-released"))
    std::erase_if(nic->posted, [&](const Pointer& each) { return each->handle == remote; });
  delete remote;
}

// ---- operations ----

pw_nic_status post(pw_nic* nic, Pointer what) {
  const uint64_t room = what->remote.key.bytes;
  const bool outside = what->offset > room || what->extent() > room - what->offset;
  if (outside && !nic->has("unbounded")) {
    if (nic->has("leaks-room")) ++nic->leaked;
    return refuse(PW_NIC_INVALID, "outside of the remote memory");
  }
  if (nic->has("crashes") && ++nic->gets == 100) raise(SIGSEGV);
  if (nic->has("exits") && ++nic->gets == 100) _exit(0);
  if (what->put() && nic->has("slow-put") && ++nic->puts == 300) pause_for(3'000'000);
  if (what->put() && nic->has("done-in-put") && what->done != nullptr) {
    what->done->call(what->done, move(*nic, *what));
    return PW_NIC_OK;
  }
  std::lock_guard lock(nic->mutex);
  if (nic->posted.size() + nic->leaked >= kQueue) return PW_NIC_BUSY;
  if (what->put() && nic->has("early-done") && what->done != nullptr) {
    auto told = std::make_unique<Operation>(*what);
    what->done = nullptr;
    nic->ended.push_back(std::move(told));
  }
  nic->posted.push_back(std::move(what));
  if (!nic->has("polls")) nic->woken.notify_one();
  return PW_NIC_OK;
}

Pointer operation(Kind kind, const pw_nic_remote* remote, uint64_t offset, const void* data,
                  pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  auto* local = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  return std::make_unique<Operation>(
      Operation{kind, *remote, remote, offset, local, memory, bytes, {}, done});
}

Pointer put_operation(const pw_nic& nic, const pw_nic_remote* remote, uint64_t offset, const void* data,
                      pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  Pointer what = operation(Kind::put, remote, offset, data, memory, bytes, done);
  if (memory == nullptr && !nic.has("not-copied")) what->copied.assign(what->local, what->local + bytes);
  return what;
}

pw_nic_status nic_put(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                      pw_nic_memory* memory, uint64_t bytes, pw_nic_done* done) {
  return post(nic, put_operation(*nic, remote, offset, data, memory, bytes, done));
}

pw_nic_status nic_get(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, void* data, pw_nic_memory* memory,
                      uint64_t bytes, pw_nic_done* done) {
  return post(nic, operation(Kind::get, remote, offset, data, memory, bytes, done));
}

pw_nic_status nic_put_strided(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t to_stride,
                              const void* data, uint64_t from_stride, pw_nic_memory* memory, uint64_t blocks,
                              uint64_t block_bytes, pw_nic_done* done) {
  Pointer what = operation(Kind::put, remote, offset, data, memory, block_bytes, done);
  what->blocks = blocks, what->from_stride = from_stride, what->to_stride = to_stride;
  return post(nic, std::move(what));
}

pw_nic_status nic_put_with_word(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, const void* data,
                                pw_nic_memory* memory, uint64_t bytes, pw_nic_remote* word_remote,
                                uint64_t word_offset, uint64_t value, pw_nic_done* done) {
  Pointer what = put_operation(*nic, remote, offset, data, memory, bytes, done);
  what->word_address = word_remote->key.address + word_offset;
  what->word = value;
  return post(nic, std::move(what));
}

pw_nic_status nic_fetch_add(pw_nic* nic, pw_nic_remote* remote, uint64_t offset, uint64_t add,
                            uint64_t* before, pw_nic_memory* memory, pw_nic_done* done) {
  Pointer what = operation(Kind::add, remote, offset, before, memory, 8, done);
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

// Reports one get in 10,000 before the one ahead of it.
void swap_now_and_then(pw_nic& nic, std::deque<Pointer>& ended) {
  for (size_t i = 0; i < ended.size(); ++i)
    if (ended[i]->kind == Kind::get && ++nic.gets >= 10'000 && i > 0 && ended[i - 1]->kind == Kind::get &&
        ended[i - 1]->remote.process == ended[i]->remote.process) {
      nic.gets = 0;
      std::swap(ended[i - 1], ended[i]);
    }
}

unsigned nic_progress(pw_nic* nic) {
  std::deque<Pointer> ended;
  {
    std::lock_guard lock(nic->mutex);
    nic->armed = false;
    for (; nic->has("polls") && !nic->posted.empty(); nic->posted.pop_front()) {
      const pw_nic_status status = move(*nic, *nic->posted.front());
      end(*nic, std::move(nic->posted.front()), status);
    }
    ended.swap(nic->ended);
  }
  if (nic->has("backwards")) std::reverse(ended.begin(), ended.end());
  if (nic->has("rarely-backwards")) swap_now_and_then(*nic, ended);
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
