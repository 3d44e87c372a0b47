#include "bench/kernel_loop.h"

#include <algorithm>

#include "peerway/handles.h"

namespace pw::bench {
namespace {

constexpr uint64_t kMovedWord = 16, kPacketWord = 8;  ///< bytes that a thread moves at a time
constexpr uint64_t kWarp = 32, kMostThreads = 512;    // of bench_ping_pong
constexpr unsigned kMostBlocks = 64;     ///< all of them run at once on any GPU that this supports
constexpr uint64_t kTripsOfSample = 10;  ///< with packets: reading the clock takes a tenth of a trip

/// Returns the largest number of pieces of a start or a finish of the plans: the pieces of messages are
/// independent, one per block. A put and its signal must be done by one block: nothing would keep other
/// blocks from the next put until the signal has arrived.
unsigned blocks_of(const Trip& trip, InKernel kind) {
  if (kind != InKernel::messages) return 1;
  unsigned pieces = 1;
  for (const Plan& plan : trip) {
    pw_plan_handle handle{};
    need(pw_plan_get_handle(plan.get(), &handle));
    pieces = std::max({pieces, handle.start_pieces, handle.finish_pieces});
  }
  return std::min(pieces, kMostBlocks);
}

}  // namespace

KernelLoop::KernelLoop(const Ends& ends, Trip trip, uint64_t bytes, InKernel kind, uint64_t timeout_ns)
    : ends_(ends),
      trip_(std::move(trip)),
      bytes_(bytes),
      kind_(kind),
      blocks_(blocks_of(trip_, kind)),
      gpu_(pw_region_device(ends.source)),
      stream_(ends.context, pw_region_device(ends.source)) {
  for (const Plan& plan : trip_) need(pw_plan_set_timeout(plan.get(), timeout_ns));
}

Samples KernelLoop::run(uint64_t samples) {
  gpu_.enter();
  pw_plan* out = trip_[ends_.leads ? 0 : 1].get();
  pw_plan* in = trip_[ends_.leads ? 1 : 0].get();
  const uint64_t words = bytes_ / (kind_ == InKernel::packets ? kPacketWord : kMovedWord);
  const uint64_t warps = (words + kWarp - 1) / kWarp;
  const auto threads = static_cast<unsigned>(std::clamp(warps * kWarp, kWarp, kMostThreads));
  if (kind_ == InKernel::packets) {
    const LanePingPong work{out,
                            in,
                            ends_.partner,
                            kTag,
                            ends_.leads,
                            pw_region_address(ends_.source),
                            pw_region_address(ends_.target),
                            bytes_,
                            trips_,
                            threads};
    trips_ += samples * kTripsOfSample;
    return run_packets(gpu_, ends_.context, stream_.get(), work, samples, kTripsOfSample);
  }
  const KernelPingPong work{out, in, ends_.leads, nullptr, 0, blocks_, threads};
  return run_in_kernel(gpu_, ends_.context, stream_.get(), work, samples, 1);
}

}  // namespace pw::bench
