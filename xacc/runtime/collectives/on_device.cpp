// reduction and bcast with acc: of values on the GPU, in the order of the work without a queue. A plan brings
// them from GPU to GPU, and the host goes on at once. gmove with acc goes through the host's memory.
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

/// The kernel that joins the values of all ranks, in their order, so that all ranks get the same bits: those
/// of an exchange, or, with `exchanges`, as it exchanges them.
pwx_kernel& joining(pwx_op op, pwx_type type, bool exchanges) {
  struct Joining {
    std::string source;
    pwx_kernel kernel;
  };
  static auto& all = *new std::map<std::tuple<std::string, std::string, bool>, Joining>;  // outlives atexit
  const std::string operation = kernel_name_of(op), value = kernel_name_of(type);
  auto [slot, is_new] = all.try_emplace({operation, value, exchanges});
  Joining& joining = slot->second;
  if (!is_new) return joining.kernel;
  if (exchanges)
    joining.source = std::string(exchange_text()) + "extern \"C\" __global__ void pwx_join(" + value +
                     "* values, long count, const pwx_peers peers) {\n  pwx_exchange(" + operation +
                     "(), values, count, peers);\n}\n";
  else
    joining.source = "extern \"C\" __global__ void pwx_join(" + value + "* result, const " + value +
                     "* parts, long count, long stride, long ranks) {\n"
                     "  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count;\n"
                     "       i += (long)gridDim.x * blockDim.x) {\n"
                     "    " +
                     value +
                     " value = parts[i];\n"
                     "    for (long rank = 1; rank < ranks; ++rank) value = " +
                     operation +
                     "()(value, parts[rank * stride + i]);\n"
                     "    result[i] = value;\n  }\n}\n";
  static const unsigned sizes[] = {sizeof(void*), sizeof(long), sizeof(pwx_peers)};
  joining.kernel = {"pwx_join", joining.source.c_str(), nullptr, exchanges ? sizes : nullptr,
                    exchanges ? 1 : 0};
  return joining.kernel;
}

/// One launch, where the ranks' kernels reach each other's memory.
void reduce_by_kernel(Exchange& exchange, pwx_op op, pwx_type type, void* device, size_t count,
                      const pwx_where* where) {
  peerway::check(exchange.plan.status());
  constexpr size_t kWord = sizeof(uint64_t);
  long length = static_cast<long>(count);
  // By the bytes, not the values: blocks count their epochs.
  const auto words = static_cast<long>((count * size_of(type) + kWord - 1) / kWord);
  void* arguments[] = {static_cast<void*>(&device), &length, &*exchange.peers};
  const pwx_shape shape{{words, 1, 1}, 0, kExchangeBlocks, 0};
  pwx_launch(&joining(op, type, true), &shape, arguments, 3, 0, nullptr, PWX_QUEUE_SYNC, where);
}

void reduce_there(const Set& set, pwx_op op, pwx_type type, void* device, size_t count,
                  const pwx_where* where) {
  constexpr size_t kSmallestPacket = 4;
  const size_t element = size_of(type);
  Exchange& exchange = exchange_of(set, count * element, kNoRoot, element % kSmallestPacket == 0);
  if (exchange.peers) return reduce_by_kernel(exchange, op, type, device, count, where);
  copy_values(exchange.part(set.index), device, count * element);
  exchange.run();
  const void* parts = exchange.part(0);
  long length = static_cast<long>(count), stride = static_cast<long>(exchange.stride / element),
       ranks = set.size();
  void* arguments[] = {static_cast<void*>(&device), static_cast<void*>(&parts), &length, &stride, &ranks};
  const pwx_shape shape{{length, 1, 1}, 0, 0, 0};
  pwx_launch(&joining(op, type, false), &shape, arguments, 5, 0, nullptr, PWX_QUEUE_SYNC, where);
}

/// For types that kernels do not have.
void reduce_on_host(const Set& set, Combine combine, size_t element, void* device, size_t count) {
  std::vector<std::byte> values(count * element);
  copy_values(values.data(), device, values.size());
  wait_for(PWX_QUEUE_SYNC);
  reduce(program(), set, combine, values.data(), count, element);
  copy_values(device, values.data(), values.size());
  wait_for(PWX_QUEUE_SYNC);
}

void broadcast_there(const Set& set, int root, void* device, size_t bytes) {
  Exchange& exchange = exchange_of(set, bytes, root, false);
  if (set.index == root) copy_values(exchange.part(0), device, bytes);
  exchange.run();
  if (set.index != root) copy_values(device, exchange.part(0), bytes);
}

/// All that the GPU has of what a section is of, to the host or back.
void update_section(const pwx_section& section, bool to_host, const pwx_where* where) {
  pwx_data data{PWX_DATA_PRESENT, "a section", nullptr, section.base, 0};
  if (section.array != nullptr) {
    present(*section.array, "gmove");
    data = {PWX_DATA_PRESENT, section.array->name, const_cast<pwx_array*>(section.array), nullptr, 0};
  }
  // A variable of the host alone is taken, or set, there.
  (to_host ? pwx_update_host : pwx_update_device)(1, &data, 1, PWX_QUEUE_SYNC, where);
}

}  // namespace

}  // namespace pwx

extern "C" {

void pwx_reduce_device(const pwx_ref* on, pwx_op op, pwx_type type, void* device, size_t count,
                       const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_reduce(on, op, type, device, count, where);
    const pwx::Set& set = pwx::program().set_of(on);
    const pwx::Combine combine = pwx::combine_of(op, type);
    if (set.index < 0 || set.size() == 1 || count == 0) return;
    if (pwx::kernel_name_of(op) != nullptr && pwx::kernel_name_of(type) != nullptr)
      pwx::reduce_there(set, op, type, device, count, where);
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
    if (set.size() > 1) pwx::broadcast_there(set, root, device, bytes);
  });
}

void pwx_gmove_device(pwx_gmove_mode mode, const pwx_section* target, const pwx_section* source,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_gmove(mode, target, source, where);
    pwx::update_section(*source, true, where);
    pwx::update_section(*target, true, where);  // what the gmove leaves as it is comes back unchanged
    const bool in = mode == PWX_IN || mode == PWX_IN_FROM_GPUS;
    pwx_gmove(mode == PWX_COLLECTIVE ? mode : in ? PWX_IN_FROM_GPUS : PWX_OUT_TO_GPUS, target, source, where);
    pwx::update_section(*target, false, where);
  });
}

}  // extern "C"
