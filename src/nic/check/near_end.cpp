#include "nic/check/near_end.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/format.h"

namespace pw::nic::check {
namespace {

thread_local bool progressing = false;
thread_local uint64_t calls_so_far = 0;

const char* name_of(pw_nic_status status) {
  constexpr const char* kNames[] = {"PW_NIC_OK",      "PW_NIC_BUSY",    "PW_NIC_UNREACHABLE",
                                    "PW_NIC_REFUSED", "PW_NIC_INVALID", "PW_NIC_BROKEN"};
  return status >= 0 && status <= PW_NIC_BROKEN ? kNames[status] : "no status of nic.h";
}

std::string said(const char* entry, pw_nic_status status, const char* why) {
  return format("{}() gave {}: {}", entry, name_of(status), why == nullptr ? "why() gave NULL" : why);
}

}  // namespace

void Counted::on_call(pw_nic_done* done, pw_nic_status status) {
  auto* counted = static_cast<Counted*>(done);
  ++counted->calls;
  counted->outside |= !progressing;
  counted->status = status;
  counted->order = ++calls_so_far;
}

NearEnd::NearEnd(std::shared_ptr<const Plugin> plugin, uint64_t job, const std::string& configuration,
                 int socket)
    : plugin_(std::move(plugin)), socket_(socket), room_(kRoom) {
  const pw_nic_options options{sizeof options, job, configuration.c_str(), nullptr};
  if (const pw_nic_status status = ops().open(&options, &nic_); status != PW_NIC_OK)
    throw Broken{said("open", status, ops().why(nullptr))};
  info_.size = sizeof info_;
  ops().query(nic_, &info_);

  pw_nic_span span{};
  span.size = sizeof span;
  span.address = room_.data();
  span.bytes = room_.size();
  span.descriptor = -1;
  pw_nic_key key{};
  if (const pw_nic_status status = ops().register_memory(nic_, &span, &memory_, &key); status != PW_NIC_OK)
    throw Broken{said("register_memory", status, ops().why(nic_)) + "; memory of malloc must be taken"};

  Request open;
  open.text = configuration;
  const Reply far = ask(open);
  if (far.status != PW_NIC_OK)
    throw Broken{said("open", far.status, far.why.c_str()) + " (in the second process)"};
  far_number_ = static_cast<uint32_t>(far.value);
  pw_nic_address address{};
  address.length = static_cast<uint32_t>(far.bytes.size());
  std::memcpy(address.bytes, far.bytes.data(), far.bytes.size());
  if (const pw_nic_status status = ops().connect(nic_, &address, &peer_); status != PW_NIC_OK)
    throw Broken{said("connect", status, ops().why(nic_))};
  renew_far_memory();
}

NearEnd::~NearEnd() {
  if (remote_ != nullptr) ops().release_key(nic_, remote_);
  if (peer_ != nullptr) ops().disconnect(nic_, peer_);
  if (memory_ != nullptr) ops().deregister_memory(nic_, memory_);
  if (nic_ != nullptr) ops().close(nic_);
}

Reply NearEnd::ask(const Request& request) const {
  tell(request);
  return hear();
}
Bytes NearEnd::far_bytes(uint64_t offset, uint64_t bytes) const {
  Request request;
  request.ask = Ask::read;
  request.offset = offset;
  request.bytes = bytes;
  return ask(request).bytes;
}
void NearEnd::tell(const Request& request) const { send(socket_, request); }
Reply NearEnd::hear() const { return receive_reply(socket_); }

std::vector<Counted*> NearEnd::fresh(size_t count) {
  std::vector<Counted*> made(count);
  for (Counted*& each : made) each = &fresh();
  return made;
}

void NearEnd::renew_far_memory() {
  if (remote_ != nullptr) ops().release_key(nic_, remote_);
  remote_ = nullptr;
  Request request;
  request.ask = Ask::memory;
  request.bytes = kRoom + 2 * kGuard;
  request.offset = kGuard;
  const Reply far = ask(request);
  if (far.status != PW_NIC_OK) throw Broken{said("register_memory", far.status, far.why.c_str())};
  if (far.bytes.empty() || far.bytes.size() > PW_NIC_KEY_BYTES)
    throw Broken{format("register_memory() gave a key of {} bytes; 1 to {} are allowed", far.bytes.size(),
                        PW_NIC_KEY_BYTES)};
  pw_nic_key key{};
  key.length = static_cast<uint32_t>(far.bytes.size());
  std::memcpy(key.bytes, far.bytes.data(), far.bytes.size());
  if (const pw_nic_status status = ops().import_key(nic_, peer_, &key, &remote_); status != PW_NIC_OK)
    throw Broken{said("import_key", status, ops().why(nic_))};
}

pw_nic_status NearEnd::post(const std::function<pw_nic_status()>& entry) {
  const uint64_t deadline = deadline_after(kPatience_ns);
  for (;;) {
    const pw_nic_status status = entry();
    if (status != PW_NIC_BUSY) return status;
    if (now_ns() > deadline)
      throw Broken{"an operation was PW_NIC_BUSY for 5 s of progress(); room must come as operations end"};
    progress();
  }
}

pw_nic_status NearEnd::put(uint64_t offset, const void* data, bool copied, uint64_t bytes,
                           pw_nic_done* done) {
  return post(
      [&] { return ops().put(nic_, remote_, offset, data, copied ? nullptr : memory_, bytes, done); });
}

pw_nic_status NearEnd::get(uint64_t offset, void* data, uint64_t bytes, pw_nic_done* done) {
  return post([&] { return ops().get(nic_, remote_, offset, data, memory_, bytes, done); });
}

Reply NearEnd::watched(
    uint64_t bytes, uint64_t rounds,
    const std::function<pw_nic_status(const void* block, uint64_t word, pw_nic_done*)>& put_both) {
  renew_far_memory();
  Request watch;
  watch.ask = Ask::watch;
  watch.bytes = bytes;
  watch.value = rounds;
  tell(watch);
  const std::vector<Counted*> dones = fresh(2);
  for (uint64_t v = 1; v <= rounds; ++v) {
    const uint64_t word = word_of(v);
    uint64_t* block = reinterpret_cast<uint64_t*>(at(v % 2 * (kRoom / 2)));
    if (v > 2) wait(*dones[v % 2], "a put");  // this half of the memory may be changed again
    dones[v % 2]->calls = 0;
    std::fill_n(block, bytes / 8, word);
    if (put_both(block, word, dones[v % 2]) != PW_NIC_OK)
      throw Broken{format("a put was refused: {}", ops().why(nic_))};
  }
  for (Counted* done : dones) wait(*done, "a put");
  return hear();
}

void NearEnd::progress() {
  progressing = true;
  ops().progress(nic_);
  progressing = false;
}

void NearEnd::wait(Counted& done, const char* of) {
  const uint64_t deadline = deadline_after(kPatience_ns);
  while (done.calls == 0 && now_ns() < deadline) progress();
  if (done.calls == 0)
    throw Broken{
        format("the done of {} was not called within 5 s of progress(); every operation that was "
               "accepted must end",
               of)};
}

uint64_t NearEnd::largest() const { return info_.largest == 0 ? kRoom : std::min(info_.largest, kRoom); }

}  // namespace pw::nic::check
