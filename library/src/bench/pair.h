// The timed loops between two ranks. Both ranks make a Pair and call the same loop at the same time; the
// leading rank measures.
#pragma once

#include <cstdint>

#include "bench/samples.h"
#include "peerway/peerway.h"

namespace pw::bench {

/// The objects that one rank of a pair uses. It owns none of them.
struct Ends {
  pw_context* context = nullptr;
  const pw_region* source = nullptr;      ///< own region, sent from
  pw_region* target = nullptr;            ///< own region, received into
  const pw_remote* far_source = nullptr;  ///< the partner's region
  pw_remote* far_target = nullptr;
  pw_signal* arrived = nullptr;  ///< own signal, notified only by the partner
  pw_remote* far_arrived = nullptr;
  int partner = 0;
  bool leads = false;
};

/// The size of the messages, how often they move, and how long to wait for them.
struct Work {
  pw_block block;           ///< the same on both sides
  uint64_t window = 1;      ///< messages in one sample of the windowed loops
  uint64_t iterations = 1;  ///< number of samples
  bool touch = false;       ///< the receiver reads every cache line of the data before it answers
  uint64_t timeout_ns = PW_FOREVER;
};

class Pair {
 public:
  explicit Pair(const Ends& ends) : ends_(ends) {}
  [[nodiscard]] const Ends& ends() const { return ends_; }

  /// Put with signal, back and forth: a sample is a round trip.
  Samples ping_pong(const Work& work);
  /// Only a signal, back and forth.
  Samples signal_ping_pong(const Work& work);
  /// The leader puts `window` messages and flushes: a sample is one window.
  Samples put_window(const Work& work);
  /// Both ranks put `window` messages, the last with a signal, flush, and wait for the partner's signal.
  Samples put_both(const Work& work);
  /// The leader gets `window` messages and flushes.
  Samples get_window(const Work& work);
  /// The leader registers a part of its source again, which is registered already: measures the registration
  /// cache.
  Samples register_again(const Work& work);

 private:
  void put(const Work& work, bool notify);
  void get(const Work& work);
  void flush(const Work& work);
  void wait_next(const Work& work);
  void notify_next();

  Ends ends_;
  uint64_t seen_ = 0;  ///< notifications of `arrived` that this rank has waited for
};

}  // namespace pw::bench
