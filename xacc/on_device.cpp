// reduction and bcast with acc: of values on the GPU, in the order of the work without a queue. A plan brings
// them from GPU to GPU, and the host goes on at once. gmove with acc goes through the host's memory.
#include "xacc/on_device.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "xacc/collective.h"
#include "xacc/failure.h"
#include "xacc/gpu.h"
#include "xacc/present.h"

namespace pwx {
namespace {

using namespace pw::cuda;

constexpr int kNoRoot = -1;  // of an exchange where all send to all

/// Room on the GPU for the values of the ranks of a set, and the plan that brings them there.
struct Exchange {
  size_t stride;  ///< bytes from one rank's values to the next one's
  peerway::Region parts;
  peerway::Plan plan;

  [[nodiscard]] std::byte* part(int place) const {
    return static_cast<std::byte*>(parts.address()) + static_cast<size_t>(place) * stride;
  }
  void run() { peerway::check(plan.run(peerway_stream(PWX_QUEUE_SYNC))); }
};

using ExchangeKey = std::tuple<const Set*, size_t, int>;  // the ranks, bytes, root
std::map<ExchangeKey, Exchange>& exchanges() {
  static auto& all = *new std::map<ExchangeKey, Exchange>;  // outlives atexit
  return all;
}

Exchange make_exchange(const Set& set, size_t bytes, int root) {
  constexpr size_t kAligned = 16;
  const size_t stride = (bytes + kAligned - 1) / kAligned * kAligned;
  const pw_device device = peerway::cuda(the_gpu().ordinal);
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

/// Every rank of the set asks for the same ones in the same order.
Exchange& exchange_of(const Set& set, size_t bytes, int root) {
  const ExchangeKey key{&set, bytes, root};
  const auto found = exchanges().find(key);
  return found != exchanges().end() ? found->second
                                    : exchanges().emplace(key, make_exchange(set, bytes, root)).first->second;
}

void copy_values(void* to, const void* from, size_t bytes) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                     bytes, stream_of(PWX_QUEUE_SYNC)),
            "a copy of the values");
}

/// The kernel that joins the values of all ranks, in their order, so that all ranks get the same bits.
pwx_kernel& joining(pwx_op op, pwx_type type) {
  struct Joining {
    std::string source;
    pwx_kernel kernel;
  };
  static auto& all = *new std::map<std::pair<std::string, std::string>, Joining>;  // outlives atexit
  const std::string operation = kernel_name_of(op), value = kernel_name_of(type);
  auto [found, is_new] = all.try_emplace({operation, value});
  Joining& one = found->second;
  if (is_new) {
    one.source = "extern \"C\" __global__ void pwx_join(" + value + "* result, const " + value +
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
    one.kernel = {"pwx_join", one.source.c_str(), nullptr};
  }
  return one.kernel;
}

void reduce_there(const Set& set, pwx_op op, pwx_type type, void* device, size_t count,
                  const pwx_where* where) {
  const size_t element = size_of(type);
  Exchange& exchange = exchange_of(set, count * element, kNoRoot);
  copy_values(exchange.part(set.index), device, count * element);
  exchange.run();
  const void* parts = exchange.part(0);
  long length = static_cast<long>(count), stride = static_cast<long>(exchange.stride / element),
       ranks = set.size();
  void* arguments[] = {static_cast<void*>(&device), static_cast<void*>(&parts), &length, &stride, &ranks};
  const pwx_shape shape{{length, 1, 1}, 0, 0, 0};
  pwx_launch(&joining(op, type), &shape, arguments, 5, 0, nullptr, PWX_QUEUE_SYNC, where);
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
  Exchange& exchange = exchange_of(set, bytes, root);
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

void free_exchanges() { exchanges().clear(); }

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

void pwx_gmove_device(pwx_gmove_mode mode, const pwx_section* left, const pwx_section* right,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_gmove(mode, left, right, where);
    pwx::update_section(*right, true, where);
    pwx::update_section(*left, true, where);  // what the gmove leaves as it is comes back unchanged
    const bool in = mode == PWX_IN || mode == PWX_IN_FROM_GPUS;
    pwx_gmove(mode == PWX_COLLECTIVE ? mode : in ? PWX_IN_FROM_GPUS : PWX_OUT_TO_GPUS, left, right, where);
    pwx::update_section(*left, false, where);
  });
}

}  // extern "C"
