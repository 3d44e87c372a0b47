#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/relax.h"
#include "base/status.h"
#include "nic/check/check.h"
#include "nic/check/talk.h"
#include "nic/plugin.h"

namespace pw::nic::check {
namespace {

/// The passive side. It calls the plugin to open, register and close, and never while bytes should move.
class FarEnd {
 public:
  FarEnd(const pw_nic_ops& ops, uint64_t job) : ops_(ops), job_(job) {}
  ~FarEnd() { close(); }
  FarEnd(const FarEnd&) = delete;

  Reply answer(const Request& request) {
    switch (request.ask) {
      case Ask::open:
        return open(request.text);
      case Ask::memory:
        return make_memory(request.bytes, request.offset);
      case Ask::read:
        return read(request.offset, request.bytes);
      case Ask::await:
        return await(request.offset, request.value);
      case Ask::watch:
        return watch(request.bytes, request.value);
      case Ask::forget:
        forget();
        return {};
      case Ask::close:
        close();
        return {};
    }
    return {PW_NIC_INVALID, 0, "an unknown request", {}};
  }

 private:
  Reply open(const std::string& configuration) {
    const pw_nic_options options{sizeof options, job_, configuration.c_str(), nullptr};
    Reply reply;
    reply.status = ops_.open(&options, &nic_);
    if (reply.status != PW_NIC_OK) {
      reply.why = ops_.why(nullptr);
      return reply;
    }
    pw_nic_address address{};
    ops_.address(nic_, &address);
    pw_nic_info info{};
    info.size = sizeof info;
    ops_.query(nic_, &info);
    reply.value = info.number;
    reply.bytes = bytes_of(address.bytes, address.length);
    return reply;
  }

  Reply make_memory(uint64_t bytes, uint64_t from) {
    drop_memory();
    room_ = bytes;
    from_ = from;
    descriptor_ = memfd_create("peerway-nic-check", MFD_CLOEXEC);
    if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
      return {PW_NIC_BROKEN, 0, "no memory for the check" + errno_text(errno), {}};
    memory_ =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0));
    std::memset(memory_, static_cast<int>(kPoison), bytes);
    pw_nic_span span{};
    span.size = sizeof span;
    span.address = memory_ + from;
    span.bytes = bytes - 2 * from;
    span.descriptor = descriptor_;
    span.descriptor_offset = from;
    pw_nic_key key{};
    Reply reply;
    reply.status = ops_.register_memory(nic_, &span, &registered_, &key);
    if (reply.status != PW_NIC_OK) reply.why = ops_.why(nic_);
    reply.bytes = bytes_of(key.bytes, key.length);
    return reply;
  }

  Reply read(uint64_t offset, uint64_t bytes) const {
    return {PW_NIC_OK, 0, {}, Bytes(memory_ + offset, memory_ + offset + bytes)};
  }

  [[nodiscard]] uint64_t word_at(uint64_t offset) const {
    return std::atomic_ref(*reinterpret_cast<uint64_t*>(memory_ + from_ + offset))
        .load(std::memory_order_acquire);
  }

  [[nodiscard]] Reply await(uint64_t offset, uint64_t value) const {
    const uint64_t deadline = deadline_after(kPatience_ns);
    while (word_at(offset) != value && now_ns() < deadline) relax();
    return {PW_NIC_OK, word_at(offset), {}, {}};
  }

  // Round v puts a block of words v and then the word v: whoever sees the word finds no older block. Looked
  // at from its end, which arrives last.
  [[nodiscard]] Reply watch(uint64_t bytes, uint64_t rounds) const {
    const uint64_t deadline = deadline_after(2 * kPatience_ns);
    Reply found;
    for (uint64_t seen = 0; seen < rounds && now_ns() < deadline;) {
      const uint64_t word = word_at(kWatchedWord);
      seen = word >> 32;
      if (seen > rounds) seen = 0;  // poison: nothing has come yet
      if (seen != 0 && word != word_of(seen)) return {PW_NIC_BROKEN, found.value, "torn", {}};
      for (uint64_t left = bytes; left > 0 && seen != 0; left -= sizeof(uint64_t))
        if (word_at(kWatchedBlock + left - sizeof(uint64_t)) < word_of(seen))
          return {PW_NIC_OK, seen, "behind", {}};
    }
    found.value = 0;
    return found;
  }

  void forget() {
    if (registered_ != nullptr) ops_.deregister_memory(nic_, registered_);
    registered_ = nullptr;
  }
  void drop_memory() {
    forget();
    if (memory_ != nullptr) munmap(memory_, room_);
    if (descriptor_ >= 0) ::close(descriptor_);
    memory_ = nullptr;
    descriptor_ = -1;
  }
  void close() {
    if (nic_ == nullptr) return;
    drop_memory();
    ops_.close(nic_);
    nic_ = nullptr;
  }
  static Bytes bytes_of(const uint8_t* from, uint32_t length) {
    const auto* first = reinterpret_cast<const std::byte*>(from);
    return {first, first + length};
  }

  const pw_nic_ops& ops_;
  const uint64_t job_;
  pw_nic* nic_ = nullptr;
  pw_nic_memory* registered_ = nullptr;
  std::byte* memory_ = nullptr;
  uint64_t room_ = 0, from_ = 0;
  int descriptor_ = -1;
};

}  // namespace

void serve_far_end(const std::string& plugin, uint64_t job, int socket) {
  const std::shared_ptr<const Plugin> loaded = Plugin::load(plugin);
  FarEnd far(loaded->ops(), job);
  for (Request request; receive(socket, request);) send(socket, far.answer(request));
}

}  // namespace pw::nic::check
