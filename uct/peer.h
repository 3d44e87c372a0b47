// Another process' endpoint: the stream to it, what was started there and what of that is proven to be in
// place. Under the domain's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "nic/stream.h"
#include "uct/operation.h"

namespace pw::uct {

class Peer {
 public:
  /// Throws Error with what the card says.
  Peer(Domain& domain, const nic::Card& card);
  Peer(const Peer&) = delete;

  [[nodiscard]] const nic::Card& card() const { return card_; }
  [[nodiscard]] nic::Stream& stream() { return *stream_; }
  [[nodiscard]] bool failed() const { return failed_ != PW_NIC_OK; }

  /// As the stream's; `operation` may be null for puts and words.
  pw_nic_status put(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                    uint64_t bytes, Operation* operation);
  pw_nic_status put_word(nic::RemoteMemory& remote, uint64_t offset, const void* data, nic::Memory* memory,
                         uint64_t bytes, const nic::Word& word, Operation* operation);
  pw_nic_status word(const nic::Word& word);
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

  /// The card told of the end of an operation.
  void ended(Operation::Kind kind, uint64_t mark, pw_nic_status status);
  void fail(pw_nic_status status);
  /// Does what settle() asked for and the card had no room for.
  void advance();

  bool left = false;      ///< it said that it closes: its silence is no failure
  unsigned channels = 0;  ///< in use

 private:
  struct Mark {
    uint64_t puts, gets;
  };
  struct Waiter {
    Mark mark;
    Operation* operation;
  };

  [[nodiscard]] Mark now() const { return {puts_, gets_}; }
  [[nodiscard]] bool reached(const Mark& mark) const {
    return failed() || (proven_ >= mark.puts && gets_ended_ >= mark.gets);
  }
  pw_nic_status note(pw_nic_status status, uint64_t& counter);
  void release();

  Domain& domain_;
  nic::Card card_;
  pw_nic_status failed_ = PW_NIC_OK;
  uint64_t puts_ = 0, proven_ = 0, wanted_ = 0;  ///< puts and words: started, in place, to be proven
  uint64_t gets_ = 0, gets_ended_ = 0;
  Mark barrier_{0, 0};
  std::deque<Waiter> waiters_;
  bool flushing_ = false;
  std::unique_ptr<nic::Stream> stream_;
};

}  // namespace pw::uct
