#include "xacc/runtime/collectives/exchanges.h"

#include <map>
#include <tuple>
#include <utility>

#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

using ExchangeKey = std::tuple<const Set*, size_t, int, bool>;  // ranks, bytes, root, by a kernel
std::map<ExchangeKey, Exchange>& exchanges() {
  static auto& all = *new std::map<ExchangeKey, Exchange>;  // outlives atexit
  return all;
}

Exchange make_exchange(const Set& set, size_t bytes, int root) {
  constexpr size_t kAlignedPart = 16;
  const size_t stride = (bytes + kAlignedPart - 1) / kAlignedPart * kAlignedPart;
  const pw_device device = the_gpu().device();
  const auto places = static_cast<size_t>(root == kNoRoot ? set.size() : 1);
  peerway::Region parts = program().context.allocate(device, places * stride);
  peerway::PlanBuilder builder = program().context.plan(device);
  for (int place = 0; place < set.size(); ++place) {
    if (place == set.index) continue;
    const int other = set.ranks[static_cast<size_t>(place)];
    const auto span = [&](int of) {
      return parts.span(root == kNoRoot ? static_cast<size_t>(of) * stride : 0, bytes);
    };
    if (root == kNoRoot || root == set.index) builder.send(other, 0, span(set.index));
    if (root == kNoRoot || root == place) builder.receive(other, 0, span(place));
  }
  peerway::Plan plan = builder.prepare_among(set.ranks);
  return {stride, std::move(parts), std::move(plan)};
}

/// The peers of a kernel that exchanges values; nullopt unless this rank sends and receives everything as
/// packets.
std::optional<pwx_peers> peers_of(const Exchange& exchange, const Set& set) {
  if (set.size() > pwx_most_peers + 1) return std::nullopt;
  pwx_peers peers{};
  peers.place = set.index;
  for (int place = 0; place < set.size(); ++place) {
    if (place == set.index) continue;
    const int rank = set.ranks[static_cast<size_t>(place)];
    pw_lane_handle to{}, from{};
    if (pw_plan_get_lane(exchange.plan.get(), PW_SEND, rank, 0, &to) != PW_OK ||
        pw_plan_get_lane(exchange.plan.get(), PW_RECEIVE, rank, 0, &from) != PW_OK ||
        to.slot_bytes != from.slot_bytes)
      return std::nullopt;
    peers.guard = from.guard;
    peers.slot_bytes = from.slot_bytes;
    peers.of[peers.count++] = {to.slots, from.slots, rank};
  }
  return peers;
}

/// Lets kernels exchange the values, if all ranks can.
void use_kernels(Exchange& exchange, const Set& set) {
  auto peers = peers_of(exchange, set);
  int can = peers ? 1 : 0;
  reduce(program(), set, combine_of(PWX_MIN, PWX_INT), &can, 1, sizeof can);
  if (can == 0) return;
  const Gpu& gpu = the_gpu();
  const size_t bytes = kExchangeBlocks * sizeof(uint64_t);
  exchange.epochs.emplace(program().context.allocate(gpu.device(), bytes));
  peers->epochs = static_cast<unsigned long long*>(exchange.epochs->address());
  gpu.check(gpu.driver.cuMemsetD8Async(reinterpret_cast<pw::cuda::CUdeviceptr>(peers->epochs), 0, bytes,
                                       stream_of(PWX_QUEUE_SYNC)),
            "clearing memory");
  exchange.peers = peers;
}

}  // namespace

void Exchange::run() { peerway::check(plan.run(peerway_stream(PWX_QUEUE_SYNC))); }

Exchange& exchange_of(const Set& set, size_t bytes, int root, bool by_kernel) {
  const ExchangeKey key{&set, bytes, root, by_kernel};
  const auto known = exchanges().find(key);
  if (known != exchanges().end()) return known->second;
  Exchange& exchange = exchanges().emplace(key, make_exchange(set, bytes, root)).first->second;
  if (by_kernel) use_kernels(exchange, set);
  return exchange;
}

void free_exchanges() { exchanges().clear(); }

}  // namespace pwx
