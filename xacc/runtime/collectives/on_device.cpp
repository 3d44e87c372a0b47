// reduction and bcast with acc: of values on the GPU, in the order of the work without a queue. A plan sends
// them from GPU to GPU, and the host continues at once.
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/collectives/exchanges.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/kernels.h"
#include "xacc/runtime/program/collective.h"

namespace pwx {
namespace {

using namespace pw::cuda;

void copy_values(void* to, const void* from, size_t bytes) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                     bytes, stream_of(PWX_QUEUE_SYNC)),
            "a copy of the values");
}

/// The kernel that combines the values of all ranks in rank order, so that all ranks get the same bits: from
/// the memory of an exchange or, with `exchanges`, while it exchanges them itself.
pwx_kernel& combining_kernel(pwx_op op, pwx_type type, bool exchanges) {
  struct CombiningKernel {
    std::string source;
    pwx_kernel kernel;
  };
  static auto& all =
      *new std::map<std::tuple<std::string, std::string, bool>, CombiningKernel>;  // outlives atexit
  const std::string operation = kernel_name_of(op), value = kernel_name_of(type);
  auto [slot, is_new] = all.try_emplace({operation, value, exchanges});
  CombiningKernel& entry = slot->second;
  if (!is_new) return entry.kernel;
  if (exchanges)
    entry.source = std::string(rank_reduction_text()) + "extern \"C\" __global__ void pwx_join(" + value +
                   "* values, long count, const pw_all_reduce_handle ranks,\n"
                   "    unsigned long long* epochs, const int* pwx_state) {\n  pwx_reduce_ranks(" +
                   operation + "(), values, count, ranks, epochs, pwx_state);\n}\n";
  else
    entry.source = "extern \"C\" __global__ void pwx_join(" + value + "* result, const " + value +
                   "* parts, long count, long stride, long ranks,\n"
                   "    const int* pwx_state) {\n  pwx_begin_in_order();\n"
                   "  if (!pwx_goes_on(pwx_state)) return;\n"
                   "  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count;\n"
                   "       i += (long)gridDim.x * blockDim.x) {\n"
                   "    " +
                   value +
                   " value = parts[i];\n"
                   "    for (long rank = 1; rank < ranks; ++rank) value = " +
                   operation +
                   "()(value, parts[rank * stride + i]);\n"
                   "    result[i] = value;\n  }\n}\n";
  static const unsigned sizes[] = {sizeof(void*), sizeof(long), sizeof(pw_all_reduce_handle), sizeof(void*)};
  entry.kernel = {"pwx_join", entry.source.c_str(), nullptr, exchanges ? sizes : nullptr,
                  nullptr,    exchanges ? 1 : 0};
  return entry.kernel;
}

/// Reduces in one kernel launch, if the ranks' kernels reach each other's memory.
void reduce_by_kernel(Exchange& exchange, pwx_op op, pwx_type type, void* device, size_t count) {
  peerway::check(exchange.plan.status());
  constexpr size_t kWord = sizeof(uint64_t), kHalfWord = kWord / 2;
  const size_t element = size_of(type);
  pw_all_reduce_handle lanes = *exchange.lanes;
  lanes.unit = element % kWord == 0 ? kWord : kHalfWord;
  void* epochs = exchange.epochs->address();
  long length = static_cast<long>(count);
  // The grid depends on the bytes, not on the values, because each block counts its epochs.
  const auto words = static_cast<long>((count * element + kWord - 1) / kWord);
  void* arguments[] = {static_cast<void*>(&device), &length, &lanes, static_cast<void*>(&epochs)};
  launch_rank_reduction(combining_kernel(op, type, true),
                        {{words, 1, 1}, 0, kExchangeBlocks, PWX_BY_THREAD, 0}, arguments, 4, exchange.plan);
}

void reduce_on_gpus(const Set& set, pwx_op op, pwx_type type, void* device, size_t count,
                    const pwx_where* where) {
  constexpr size_t kSmallestPacket = 4;
  const size_t element = size_of(type);
  Exchange& exchange = exchange_of(set, count * element, kNoRoot, element % kSmallestPacket == 0);
  if (exchange.lanes) return reduce_by_kernel(exchange, op, type, device, count);
  copy_values(exchange.part(set.index), device, count * element);
  exchange.run();
  const void* parts = exchange.part(0);
  long length = static_cast<long>(count), stride = static_cast<long>(exchange.stride / element),
       ranks = set.size();
  void* arguments[] = {static_cast<void*>(&device), static_cast<void*>(&parts), &length, &stride, &ranks};
  const pwx_shape shape{{length, 1, 1}, 0, 0, PWX_BY_THREAD, 0};
  pwx_launch(&combining_kernel(op, type, false), &shape, arguments, 5, 0, nullptr, PWX_QUEUE_SYNC, where);
}

/// Reduces types that kernels do not have.
void reduce_on_host(const Set& set, Combine combine, size_t element, void* device, size_t count) {
  std::vector<std::byte> values(count * element);
  copy_values(values.data(), device, values.size());
  wait_for(PWX_QUEUE_SYNC);
  reduce(program(), set, combine, values.data(), count, element);
  copy_values(device, values.data(), values.size());
  wait_for(PWX_QUEUE_SYNC);
}

void broadcast_on_gpus(const Set& set, int root, void* device, size_t bytes) {
  Exchange& exchange = exchange_of(set, bytes, root, false);
  if (set.index == root) copy_values(exchange.part(0), device, bytes);
  exchange.run();
  if (set.index != root) copy_values(device, exchange.part(0), bytes);
}

}  // namespace

}  // namespace pwx

extern "C" {

void pwx_preload_reduction(pwx_op op, pwx_type type) {
  if (pwx::program().size() > 1 && pwx::kernel_name_of(op) != nullptr && pwx::kernel_name_of(type) != nullptr)
    pwx::preload(pwx::combining_kernel(op, type, true));
}

void pwx_reduce_device(const pwx_ref* on, pwx_op op, pwx_type type, void* device, size_t count,
                       const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_reduce(on, op, type, device, count, where);
    const pwx::Set& set = pwx::program().set_of(on);
    const pwx::Combine combine = pwx::combine_of(op, type);
    if (set.index < 0 || set.size() == 1 || count == 0) return;
    if (pwx::kernel_name_of(op) != nullptr && pwx::kernel_name_of(type) != nullptr)
      pwx::reduce_on_gpus(set, op, type, device, count, where);
    else
      pwx::reduce_on_host(set, combine, pwx::size_of(type), device, count);
  });
}

void pwx_bcast_device(const pwx_ref* on, const pwx_ref* from, void* device, size_t bytes,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_bcast(on, from, device, bytes, where);
    const pwx::Set& set = pwx::program().set_of(on);
    if (set.index < 0 || bytes == 0) return;
    const int root = pwx::root_of(set, from);
    if (set.size() > 1) pwx::broadcast_on_gpus(set, root, device, bytes);
  });
}

}  // extern "C"
