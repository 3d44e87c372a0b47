// The timed loops between two ranks. Both ranks make a Pair and call the same loop at the same time; the one
// that leads measures.
#pragma once

#include <cstdint>

#include "bench/samples.h"
#include "peerway/peerway.h"

namespace pw::bench {

/// The objects of one rank of a pair. It owns none of them.
struct Ends {
  pw_context* context = nullptr;
  const pw_region* source = nullptr;      ///< mine, sent from
  pw_region* target = nullptr;            ///< mine, received into
  const pw_remote* far_source = nullptr;  ///< the partner's
  pw_remote* far_target = nullptr;
  pw_signal* arrived = nullptr;  ///< mine, notified by the partner only
  pw_remote* far_arrived = nullptr;
  int partner = 0;
  bool leads = false;
};

/// Which operation moves how many bytes, how often, and how long to wait for it.
struct Work {
  pw_block block;           ///< the same on both sides
  uint64_t window = 1;      ///< messages in one sample of the windowed loops
  uint64_t iterations = 1;  ///< samples
  bool touch = false;       ///< the receiver reads every cache line that arrived before it answers
  uint64_t timeout_ns = PW_FOREVER;
};

class Pair {
 public:
  explicit Pair(const Ends& ends) : ends_(ends) {}
  [[nodiscard]] const Ends& ends() const { return ends_; }

  /// Put with signal, there and back: a sample is a round trip.
  Samples ping_pong(const Work& work);
  /// A signal alone, there and back.
  Samples signal_ping_pong(const Work& work);
  /// The leader puts `window` messages and flushes: a sample is one window.
  Samples put_window(const Work& work);
  /// Both put `window` messages, the last with a signal, flush and wait for the partner's.
  Samples put_both(const Work& work);
  /// The leader gets `window` messages and flushes.
  Samples get_window(const Work& work);
  /// The leader registers a span of its source, which is registered: what the registration cache saves.
  Samples register_again(const Work& work);

 private:
  void put(const Work& work, bool notify);
  void get(const Work& work);
  void flush(const Work& work);
  void wait_next(const Work& work);
  void notify_next();

  Ends ends_;
  uint64_t seen_ = 0;  ///< notifications of `arrived` that were waited for
};

}  // namespace pw::bench
