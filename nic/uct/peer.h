// Another process's endpoint: the stream to it, and up to where what was started there is proven to be in
// place. Under the domain's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "nic/stream.h"
#include "progress/proofs.h"
#include "uct/operation.h"

namespace pw::uct {

class Peer {
 public:
  /// Throws Error with what the NIC says.
  Peer(Domain& domain, const nic::EndpointFacts& facts);
  Peer(const Peer&) = delete;

  [[nodiscard]] const nic::EndpointFacts& facts() const { return facts_; }
  [[nodiscard]] nic::Stream& stream() { return *stream_; }
  [[nodiscard]] bool failed() const { return failed_ != PW_NIC_OK; }
  /// The NIC's error when the connection failed.
  [[nodiscard]] const std::string& why_failed() const { return why_; }

  /// As the stream's; `operation` may be null for puts and words.
  pw_nic_status put(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                    uint64_t bytes, Operation* operation);
  pw_nic_status put_word(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                         uint64_t bytes, const nic::WordStore& word, Operation* operation);
  pw_nic_status store_word(const nic::WordStore& word);
  pw_nic_status get(nic::RemoteMemory& remote, uint64_t offset, void* data, nic::Memory& memory,
                    uint64_t bytes, Operation& operation);

  /// Whether all that was started is in place at the peer, and all gets are back.
  [[nodiscard]] bool quiet() const { return reached(now()); }
  /// Sees to it that quiet() is true some time; `operation`, if any, ends when what was started before is in
  /// place.
  void settle(Operation* operation);
  /// Keeps puts and gets that follow back until all before them is in place.
  void fence();
  [[nodiscard]] bool held_back() const { return !reached(barrier_); }

  /// The NIC reported the end of an operation.
  void ended(Operation::Kind kind, pw_nic_status status);
  void fail(pw_nic_status status);
  /// Does what settle() asked for and the NIC had no room for.
  void advance();

  bool departed = false;  ///< it said that it closes: its silence is no failure
  unsigned channels = 0;  ///< in use

 private:
  /// Puts and words are proven, each get tells of its own end.
  struct Point {
    Mark puts, gets;
  };
  struct Waiter {
    Point point;
    Operation* operation;
  };

  [[nodiscard]] Point now() const { return {puts_.accepted(), gets_}; }
  [[nodiscard]] bool reached(const Point& point) const {
    return failed() || (puts_.reached(point.puts) && gets_ended_ >= point.gets);
  }
  pw_nic_status note_put(pw_nic_status status);
  pw_nic_status note(pw_nic_status status);
  void release();

  Domain& domain_;
  nic::EndpointFacts facts_;
  pw_nic_status failed_ = PW_NIC_OK;
  std::string why_;
  Proofs puts_;
  Mark gets_ = 0, gets_ended_ = 0;
  Point barrier_{0, 0};
  std::deque<Waiter> waiters_;
  std::unique_ptr<nic::Stream> stream_;
};

}  // namespace pw::uct
