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
  peerway::Context& context = program().context;
  peerway::Region parts = context.allocate(device, places * stride);
  constexpr auto kBytes = peerway::Element::uint8;
  peerway::Plan plan =
      root == kNoRoot
          ? context.all_gather(kBytes, parts.all(),
                               parts.span(static_cast<size_t>(set.index) * stride, stride), {}, set.ranks)
          : context.broadcast(kBytes, parts.span(0, bytes), set.ranks[static_cast<size_t>(root)], set.ranks);
  return {stride, std::move(parts), std::move(plan)};
}

/// The lanes of an all-to-all exchange; nullopt unless this rank sends and receives everything as packets.
std::optional<pw_all_reduce_handle> lanes_of(const Exchange& exchange, const Set& set) {
  const auto members = static_cast<unsigned>(set.size()), own = static_cast<unsigned>(set.index);
  if (members > PW_KERNEL_MEMBERS) return std::nullopt;
  pw_all_reduce_handle lanes{};
  lanes.version = PW_HANDLE_VERSION;
  lanes.members = members;
  lanes.own = own;
  for (unsigned member = 0; member < members; ++member) {
    const int rank = lanes.rank[member] = set.ranks[member];
    if (member == own) continue;
    pw_lane_handle to{}, from{};
    if (pw_plan_get_lane(exchange.plan.get(), PW_SEND, rank, 0, &to) != PW_OK ||
        pw_plan_get_lane(exchange.plan.get(), PW_RECEIVE, rank, 0, &from) != PW_OK ||
        to.slot_bytes != from.slot_bytes)
      return std::nullopt;
    lanes.guard = from.guard;
    lanes.slot_bytes = from.slot_bytes;
    lanes.to[member] = to.slots;
    lanes.from[member] = from.slots;
  }
  return lanes;
}

/// Lets kernels exchange the values, if all ranks can.
void use_kernels(Exchange& exchange, const Set& set) {
  const auto lanes = lanes_of(exchange, set);
  int can = lanes ? 1 : 0;
  reduce(program(), set, combine_of(PWX_MIN, PWX_INT), &can, 1, sizeof can);
  if (can == 0) return;
  const Gpu& gpu = the_gpu();
  const size_t bytes = kExchangeBlocks * sizeof(uint64_t);
  exchange.epochs.emplace(program().context.allocate(gpu.device(), bytes));
  gpu.check(gpu.driver.cuMemsetD8Async(reinterpret_cast<pw::cuda::CUdeviceptr>(exchange.epochs->address()), 0,
                                       bytes, stream_of(PWX_QUEUE_SYNC)),
            "clearing memory");
  exchange.lanes = lanes;
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
