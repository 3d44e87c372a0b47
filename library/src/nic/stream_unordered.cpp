#include "nic/stream_unordered.h"

#include <algorithm>

#include "nic/settle.h"

namespace pw::nic {

UnorderedStream::UnorderedStream(Endpoint& endpoint, std::shared_ptr<Connection> connection)
    : Stream(endpoint, std::move(connection)), probes_(std::make_shared<std::array<Probe, kProbes>>()) {
  for (Probe& probe : *probes_) {
    probe.owner = this;
    probe.call = on_done<UnorderedStream, Probe, &UnorderedStream::probe_done>;
  }
}

UnorderedStream::~UnorderedStream() {
  const auto idle = [&] { return std::ranges::none_of(*probes_, &Probe::under_way); };
  for (Probe& probe : *probes_) probe.owner = nullptr;
  for (; finished_ < entered_; ++finished_) call(front().done, PW_NIC_BROKEN);
  if (!settle(ops_, nic_, idle)) keep(probes_);
}

pw_nic_status UnorderedStream::started(pw_nic_status status) {
  if (status == PW_NIC_OK) ++puts_;
  return record_failure(status);
}

pw_nic_status UnorderedStream::put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                   uint64_t bytes, pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  return started(ops_.put(nic_, remote.handle(), offset, data, memory == nullptr ? nullptr : memory->handle(),
                          bytes, done));
}

pw_nic_status UnorderedStream::put_strided(RemoteMemory& remote, uint64_t offset, const void* data,
                                           Memory& memory, const Blocks& blocks, pw_nic_done* done) {
  return started(Stream::put_strided(remote, offset, data, memory, blocks, done));
}

pw_nic_status UnorderedStream::put_word(RemoteMemory& remote, uint64_t offset, const void* data,
                                        Memory* memory, uint64_t bytes, const WordStore& word,
                                        pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  // The NIC orders the word after these bytes, but the word must have nothing else to wait for.
  if (ops_.put_with_word != nullptr && all_in_place() && waiting() == 0) {
    const pw_nic_status status = started(ops_.put_with_word(
        nic_, remote.handle(), offset, data, memory == nullptr ? nullptr : memory->handle(), bytes,
        word.remote->handle(), word.offset, word.value, done));
    if (status == PW_NIC_OK) behind_ = puts_;
    return status;
  }
  if (waiting() == kWaiting) return PW_NIC_BUSY;
  const pw_nic_status status = put(remote, offset, data, memory, bytes, done);
  return status != PW_NIC_OK ? status : defer({word, nullptr, puts_});
}

pw_nic_status UnorderedStream::store_word(const WordStore& word) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (!all_in_place() || waiting() > 0) return defer({word, nullptr, puts_});
  const pw_nic_status status = start_word(word);
  if (status == PW_NIC_OK) behind_ = ++puts_;
  return status;
}

pw_nic_status UnorderedStream::flush(pw_nic_done* done) {
  return failed_ != PW_NIC_OK ? failed_ : defer({{}, done, puts_});
}

pw_nic_status UnorderedStream::defer(const Deferred& deferred) {
  if (waiting() == kWaiting) return PW_NIC_BUSY;
  deferred_[entered_++ % kWaiting] = deferred;
  activate();
  start_probe();
  return PW_NIC_OK;
}

// Starts a probe, unless those under way cover everything that a deferred word or flush waits for. Probes
// come back in the order in which they were started.
void UnorderedStream::start_probe() {
  if (waiting() == 0 || failed_ != PW_NIC_OK) return;
  const uint64_t last = deferred_[(entered_ - 1) % kWaiting].after;
  if (std::max(probed_, in_place_) >= std::max(last, behind_)) return;
  const auto probe = std::ranges::find(*probes_, false, &Probe::under_way);
  if (probe == probes_->end() || start_get_of_marker(&*probe) != PW_NIC_OK) return;
  probe->under_way = true;
  probe->covers = probed_ = puts_;
}

void UnorderedStream::probe_done(Probe& probe, pw_nic_status status) {
  if (record_failure(status) == PW_NIC_OK) in_place_ = std::max(in_place_, probe.covers);
}

unsigned UnorderedStream::advance(bool& unfinished) {
  unsigned happened = 0;
  for (; waiting() > 0; ++finished_, ++happened) {
    Deferred& next = front();
    if (failed_ == PW_NIC_OK) {
      if (in_place_ < std::max(next.after, behind_)) break;
      if (next.word.remote != nullptr) {
        const pw_nic_status status = start_word(next.word);
        if (status == PW_NIC_BUSY) break;
        if (status == PW_NIC_OK) behind_ = ++puts_;
      }
    }
    call(next.done, failed_);
  }
  start_probe();
  unfinished = waiting() > 0;
  return happened;
}

// Turns a dropped word into a flush that nobody waits for.
void UnorderedStream::forget(const RemoteMemory& remote) {
  for (uint64_t i = finished_; i < entered_; ++i)
    if (Deferred& deferred = deferred_[i % kWaiting]; deferred.word.remote == &remote) deferred.word = {};
}

}  // namespace pw::nic
