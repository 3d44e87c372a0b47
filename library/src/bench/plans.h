// The timed loops of plans: started from the host, in the order of a stream, or by replaying a graph. All
// ranks make a loop and run it at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/gpu.h"
#include "bench/pair.h"
#include "bench/samples.h"
#include "bench/stream.h"
#include "peerway/peerway.h"

namespace pw::bench {

struct FreePlan {
  void operator()(pw_plan* plan) const { pw_plan_free(plan); }
};
using Plan = std::unique_ptr<pw_plan, FreePlan>;

/// The plans that this rank starts and finishes one after the other in every trip.
using Trip = std::vector<Plan>;

/// All sends and receives here have this tag.
inline constexpr int kTag = 1;

/// One plan: put with signal to the partner, and wait for the partner's signal. Throws Error, like the
/// functions below.
Trip exchange_trip(const Ends& ends, const pw_block& block);

/// One plan: send to the partner, and receive from it. Collective; a rank without a partner takes part with
/// `ends.partner` -1.
Trip sendrecv_trip(const Ends& ends, const pw_block& block);

/// Two plans: put with signal, and wait; the leading rank puts first.
Trip latency_trip(const Ends& ends, const pw_block& block);

/// Two plans: send, and receive; the leading rank sends first. Collective, like sendrecv_trip().
Trip message_trip(const Ends& ends, const pw_block& block);

/// One plan: refreshes the halo of `array`. Collective.
Trip halo_trip(pw_context* context, const pw_grid& grid, const pw_array& array, pw_halo_parts parts);

enum class Start : uint8_t { host, stream, graph };

/// Parses "host", "stream" or "graph". Throws Error.
Start start_of(std::string_view name);

class PlanLoop {
 public:
  /// A sample is `batch` trips, after which the host waits once. Collective for graphs, because the
  /// constructor makes their first trips.
  PlanLoop(pw_context* context, pw_device device, Trip trip, Start start, uint64_t batch,
           uint64_t timeout_ns);
  Samples run(uint64_t samples);

 private:
  void trip_on_host();
  void batch_on_stream();

  Trip trip_;
  Start start_;
  uint64_t batch_;
  uint64_t timeout_ns_;
  std::unique_ptr<Stream> stream_;  ///< null for starts from the host
  std::unique_ptr<Gpu> gpu_;        ///< only for graphs
  Gpu::Graph graph_;
};

}  // namespace pw::bench
