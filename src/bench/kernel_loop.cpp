#include "bench/kernel_loop.h"

#include <algorithm>

namespace pw::bench {
namespace {

constexpr uint64_t kMovedWord = 16, kPacketWord = 8;  ///< bytes that a thread moves at a time
constexpr uint64_t kWarp = 32, kMostThreads = 512;    // of bench_ping_pong
constexpr uint64_t kTripsOfSample = 10;  ///< of packets: reading the clock takes a tenth of a trip

}  // namespace

KernelLoop::KernelLoop(const Ends& ends, Trip trip, uint64_t bytes, bool packets, uint64_t timeout_ns)
    : ends_(ends),
      trip_(std::move(trip)),
      bytes_(bytes),
      packets_(packets),
      gpu_(pw_region_device(ends.source)),
      stream_(ends.context, pw_region_device(ends.source)) {
  for (const Plan& plan : trip_) need(pw_plan_set_timeout(plan.get(), timeout_ns));
}

Samples KernelLoop::run(uint64_t samples) {
  gpu_.enter();
  pw_plan* out = trip_[ends_.leads ? 0 : 1].get();
  pw_plan* in = trip_[ends_.leads ? 1 : 0].get();
  const uint64_t words = bytes_ / (packets_ ? kPacketWord : kMovedWord);
  const uint64_t warps = (words + kWarp - 1) / kWarp;
  const auto threads = static_cast<unsigned>(std::clamp(warps * kWarp, kWarp, kMostThreads));
  if (packets_) {
    const LanePingPong what{out,
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
    return run_packets(gpu_, ends_.context, stream_.get(), what, samples, kTripsOfSample);
  }
  const KernelPingPong what{out, in, ends_.leads, nullptr, 0, threads};
  return run_in_kernel(gpu_, ends_.context, stream_.get(), what, samples, 1);
}

}  // namespace pw::bench
