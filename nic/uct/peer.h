// Another process's endpoint: the stream to it, and up to which operation everything that was started towards
// it is in place. Protected by the domain's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "nic/stream.h"
#include "progress/flush_tracker.h"
#include "uct/operation.h"

namespace pw::uct {

class Peer {
 public:
  /// Throws Error with the NIC's reason.
  Peer(Domain& domain, const nic::EndpointFacts& facts);
  Peer(const Peer&) = delete;

  [[nodiscard]] const nic::EndpointFacts& facts() const { return facts_; }
  [[nodiscard]] nic::Stream& stream() { return *stream_; }
  [[nodiscard]] bool failed() const { return failed_ != PW_NIC_OK; }
  /// Returns the NIC's error if the connection failed.
  [[nodiscard]] const std::string& why_failed() const { return why_; }

  /// Like those of the stream; `operation` may be null for puts and words.
  pw_nic_status put(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                    uint64_t bytes, Operation* operation);
  pw_nic_status put_word(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                         uint64_t bytes, const nic::WordStore& word, Operation* operation);
  pw_nic_status store_word(const nic::WordStore& word);
  pw_nic_status get(nic::RemoteMemory& remote, uint64_t offset, void* data, nic::Memory& memory,
                    uint64_t bytes, Operation& operation);

  /// Whether everything started is in place at the peer and all gets are back.
  [[nodiscard]] bool quiet() const { return reached(now()); }
  /// Makes quiet() true eventually; `operation`, if not null, ends when everything started before is in
  /// place.
  void settle(Operation* operation);
  /// Holds back later puts and gets until everything before them is in place.
  void fence();
  [[nodiscard]] bool held_back() const { return !reached(barrier_); }

  /// Called when the NIC reports the end of an operation.
  void ended(Operation::Kind kind, pw_nic_status status);
  void fail(pw_nic_status status);
  /// Continues what settle() asked for and the NIC had no room for.
  void advance();

  bool departed = false;  ///< the peer said that it closes, so its silence is no failure
  unsigned channels = 0;  ///< number in use

 private:
  /// A point in the order of operations. A flush shows that the puts and words before it are in place; each
  /// get reports its own end.
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
  /// Called with the stream's answer to an operation, or to a put or word. Return that status.
  pw_nic_status started(pw_nic_status status);
  pw_nic_status put_started(pw_nic_status status);
  void release();  ///< ends the operations of waiters whose point is reached

  Domain& domain_;
  nic::EndpointFacts facts_;
  pw_nic_status failed_ = PW_NIC_OK;
  std::string why_;
  FlushTracker puts_;
  Mark gets_ = 0, gets_ended_ = 0;  ///< number of gets that were started, and that are back
  Point barrier_{0, 0};  ///< of the last fence(): later puts and gets are held back until it is reached
  std::deque<Waiter> waiters_;
  std::unique_ptr<nic::Stream> stream_;
};

}  // namespace pw::uct
