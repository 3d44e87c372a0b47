#include "nic/stream_ordered.h"

#include <atomic>
#include <random>

#include "base/clock.h"
#include "nic/control.h"
#include "nic/settle.h"

namespace pw::nic {

pw_nic_status OrderedStream::put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                 uint64_t bytes, pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  return note(ops_.put(nic_, remote.handle(), offset, data, memory == nullptr ? nullptr : memory->handle(),
                       bytes, done));
}

pw_nic_status OrderedStream::word(const Word& word) {
  if (failed_ != PW_NIC_OK) return failed_;
  return word_waits() ? PW_NIC_BUSY : start_word(word);
}

pw_nic_status OrderedStream::put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                      uint64_t bytes, const Word& word, pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (word_waits()) return PW_NIC_BUSY;
  if (ops_.put_with_word != nullptr)
    return note(ops_.put_with_word(nic_, remote.handle(), offset, data,
                                   memory == nullptr ? nullptr : memory->handle(), bytes,
                                   word.remote->handle(), word.offset, word.value, done));
  if (const pw_nic_status status = put(remote, offset, data, memory, bytes, done); status != PW_NIC_OK)
    return status;
  const pw_nic_status status = start_word(word);
  if (status == PW_NIC_BUSY) {
    waiting_ = word;
    activate();
  } else if (status != PW_NIC_OK) {
    failed_ = status;  // the put was accepted and will call `done`, so the next call reports the failure
  }
  return PW_NIC_OK;
}

pw_nic_status OrderedStream::flush(pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  return word_waits() ? PW_NIC_BUSY : start_get_of_marker(done);
}

unsigned OrderedStream::advance(bool& unfinished) {
  if (!word_waits()) return 0;
  unfinished = failed_ == PW_NIC_OK && start_word(waiting_) == PW_NIC_BUSY;
  if (unfinished) return 0;
  waiting_ = {};
  return 1;
}

void OrderedStream::forget(const RemoteMemory& remote) {
  if (waiting_.remote == &remote) waiting_ = {};
}

// ---- gets that overtake puts ----

ProbingStream::ProbingStream(Endpoint& endpoint, std::shared_ptr<Connection> connection)
    : OrderedStream(endpoint, std::move(connection)),
      first_(uint64_t{std::random_device{}()} << 32),
      probe_(std::make_shared<Probe>()) {
  probe_->owner = this;
  probe_->call = on_done<ProbingStream, Probe, &ProbingStream::landed>;
}

ProbingStream::~ProbingStream() {
  probe_->owner = nullptr;
  end_flushes(put_, PW_NIC_BROKEN);
  settle(ops_, nic_, [&] { return !probe_->under_way; });
  if (probe_->under_way) keep(probe_);
}

pw_nic_status ProbingStream::flush(pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (word_waits() || put_ - ended_ == kFlushes) return PW_NIC_BUSY;
  const uint64_t marker = first_ + put_ + 1;
  const pw_nic_status status =
      note(ops_.put(nic_, peer_control_, ControlSpan::place_at(endpoint_.info().number), &marker, nullptr,
                    sizeof marker, nullptr));
  if (status != PW_NIC_OK) return status;
  flushes_[put_++ % kFlushes] = done;
  activate();  // progress() will start the get
  return PW_NIC_OK;
}

void ProbingStream::landed(Probe&, pw_nic_status status) {
  if (note(status) != PW_NIC_OK) return;
  const uint64_t arrived = std::atomic_ref(*landing_).load(std::memory_order_acquire) - first_;
  if (arrived > seen_ && arrived <= put_) {
    seen_ = arrived;
    looking_since_ = next_look_ = 0;
  } else {
    const uint64_t now = now_ns();
    next_look_ = now + (now - looking_since_) / 4;
  }
}

void ProbingStream::poll() {
  const uint64_t now = now_ns();
  if (now < next_look_) return;
  if (looking_since_ == 0) looking_since_ = now;
  probe_->under_way = start_get_of_marker(probe_.get()) == PW_NIC_OK;
}

unsigned ProbingStream::end_flushes(uint64_t until, pw_nic_status status) {
  unsigned ended = 0;
  for (; ended_ < until; ++ended) call(flushes_[ended_++ % kFlushes], status);
  return ended;
}

unsigned ProbingStream::advance(bool& unfinished) {
  unsigned happened = OrderedStream::advance(unfinished);
  happened += failed_ == PW_NIC_OK ? end_flushes(seen_, PW_NIC_OK) : end_flushes(put_, failed_);
  if (ended_ == put_) return happened;
  unfinished = true;
  if (!probe_->under_way) poll();
  return happened;
}

}  // namespace pw::nic
