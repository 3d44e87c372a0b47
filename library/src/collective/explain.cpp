#include "collective/explain.h"

#include <numeric>

#include "context/context.h"
#include "context/handle.h"
#include "plan/negotiation/methods.h"

namespace pw::collective {
namespace {

CollectiveRequest request_among(uint32_t ranks, pw_collective_kind kind, pw_order order,
                                int32_t device_kind) {
  CollectiveRequest request;
  request.kind = kind;
  request.element = Element::float32;
  request.order = order;
  request.device_kind = device_kind;
  request.ranks.resize(ranks);
  std::iota(request.ranks.begin(), request.ranks.end(), 0);
  return request;
}

}  // namespace

std::vector<EstimatesOfSize> estimates_for(pw_context* context, const pw_remote* remote,
                                           const pw_region* region, pw_collective_kind kind, pw_order order,
                                           uint32_t ranks) {
  constexpr uint64_t kLargest = uint64_t{1} << 30;
  const auto route = context->context->resolver().route_send(*region->region, *remote->remote,
                                                             methods_for(context, remote, region));
  pw::Device& device = region->region->device();
  const CollectiveCosts costs{[&](bool, uint64_t bytes) { return route->cost(bytes); },
                              device.memory_bytes_per_us()};
  const bool has_parts = kind == PW_REDUCE_SCATTER || kind == PW_ALL_GATHER;
  CollectiveRequest request = request_among(ranks, kind, order, device.id().kind);
  const Placement one_host(Hosts(ranks, 0));
  std::vector<EstimatesOfSize> all;
  for (uint64_t bytes = 8; bytes <= kLargest; bytes *= 2) {
    const uint64_t count = bytes / bytes_of(request.element);
    request.count = has_parts ? 0 : count;
    request.counts.assign(has_parts ? ranks : 0, count);
    all.push_back({bytes, estimates_of(request, one_host, methods_of(request, one_host), costs)});
  }
  return all;
}

}  // namespace pw::collective
