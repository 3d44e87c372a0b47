// The blocks of a kernel leave their values in GPU memory; the last block combines them, and writes the
// result into a slot of host memory, which the host polls. See kernels/reductions.cuh for the part in the
// kernel.
#include "xacc/runtime/gpu/kernel_reductions.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "base/relax.h"
#include "base/waiting.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/grid.h"

namespace pwx {
namespace {

using namespace pw::cuda;

constexpr size_t kWidest = 16;  // bytes of the largest value that a kernel reduces: double _Complex
constexpr size_t kPage = 4096;
// As in the library: kPolls outlasts most kernels that a program waits for, and kPollsBeforeSleep takes about
// as long as a sleep costs.
constexpr int kPolls = 4096, kPollsBeforeSleep = 256;

/// One result in host memory that the GPU writes: each word has 4 bytes of it, and above them the number of
/// the launch.
struct Slot {
  volatile uint64_t words[kWidest / sizeof(uint32_t)];
};
constexpr size_t kSlots = kPage / sizeof(Slot);

/// The memory of the reductions on one queue, whose kernels run one after another.
struct ReductionMemory {
  CUdeviceptr memory = 0;  ///< for each reduction, the values of all blocks; then its last sequence number
  Slot* slots = nullptr;   ///< a ring
  CUdeviceptr slots_on_gpu = 0;
  size_t next = 0;      ///< the next slot, counted without wrapping
  size_t awaited = 0;   ///< slots before `next` whose results the host has not taken yet
  uint32_t number = 0;  ///< of the last launch
};

std::map<long, ReductionMemory>& memory_of_queues() {
  static auto& all = *new std::map<long, ReductionMemory>;  // outlives atexit
  return all;
}

/// Bytes of a block's value, in words that have 4 of them and above these a sequence number.
constexpr size_t kNumbered = kWidest / sizeof(uint32_t) * sizeof(uint64_t);

size_t bytes_of_blocks(const Gpu& gpu) { return kNumbered * most_joined(gpu.processors()); }

ReductionMemory& memory_of_queue(long queue) {
  if (const auto known = memory_of_queues().find(queue); known != memory_of_queues().end())
    return known->second;
  const Gpu& gpu = the_gpu();
  ReductionMemory memory;
  const size_t bytes = kMostReductions * (bytes_of_blocks(gpu) + sizeof(uint64_t));
  gpu.check(gpu.driver.cuMemAlloc(&memory.memory, bytes), "memory of a reduction");
  gpu.check(gpu.driver.cuMemsetD8Async(memory.memory, 0, bytes, stream_of(queue)), "clearing memory");
  memory.slots = static_cast<Slot*>(std::aligned_alloc(kPage, kPage));
  if (memory.slots == nullptr) throw Failure("no memory for the result of a reduction");
  std::memset(static_cast<void*>(memory.slots), 0, kPage);
  gpu.check(gpu.driver.cuMemHostRegister(memory.slots, kPage, kHostRegisterPortable | kHostRegisterDeviceMap),
            "pinning memory");
  gpu.check(gpu.driver.cuMemHostGetDevicePointer(&memory.slots_on_gpu, memory.slots, 0), "pinning memory");
  return memory_of_queues().emplace(queue, memory).first->second;
}

pwx_op plain(pwx_op op) { return op == PWX_MINUS ? PWX_SUM : op; }

/// A result that the host must still take.
struct Pending {
  pwx_reduction reduction;
  long queue;
  size_t slot;
};

void combine_into_host(const Pending& pending) {
  ReductionMemory& from = memory_of_queue(pending.queue);
  std::array<uint32_t, kWidest / sizeof(uint32_t)> value;
  for (size_t w = 0; w < value.size(); ++w)
    value[w] = static_cast<uint32_t>(from.slots[pending.slot % kSlots].words[w]);
  combine_of(plain(pending.reduction.op), pending.reduction.type)(pending.reduction.host,
                                                                  pending.reduction.host, value.data(), 1);
  --from.awaited;
}

bool has_value(const Slot& slot, pwx_type type, uint32_t number) {
  for (size_t w = 0; w < (size_of(type) + 3) / sizeof(uint32_t); ++w)
    if (slot.words[w] >> 32 != number) return false;
  return true;
}

/// Polls for the value, which is faster than the driver's wait. If it takes long, the driver waits, which
/// also reports a kernel that failed.
void wait_for_value(const ReductionMemory& from, const Pending& pending) {
  const auto arrived = [&] {
    return has_value(from.slots[pending.slot % kSlots], pending.reduction.type, from.number);
  };
  static const int polls =
      pw::settings::wait.value() == pw::WaitPolicy::blocking ? kPollsBeforeSleep : kPolls;
  for (int i = 0; i < polls && !arrived(); ++i) pw::relax();
  if (!arrived()) wait_for(pending.queue);
}

}  // namespace

KernelReductions prepare_reductions(int count, const pwx_reduction* reductions, long queue) {
  KernelReductions prepared;
  const Gpu& gpu = the_gpu();
  ReductionMemory& with = memory_of_queue(queue);
  if (with.awaited + static_cast<size_t>(count) > kSlots) wait_for(queue);
  const CUdeviceptr last_numbers = with.memory + kMostReductions * bytes_of_blocks(gpu);
  ++with.number;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (size_of(reductions[i].type) > kWidest || kernel_name_of(reductions[i].type) == nullptr)
      refuse("a reduction of a type that GPUs do not have");
    Total& total = prepared.arguments[i];
    std::memset(static_cast<void*>(&total), 0, sizeof total);  // recordings compare also the padding
    total.of_blocks = reinterpret_cast<void*>(with.memory + i * bytes_of_blocks(gpu));
    total.last_number = reinterpret_cast<unsigned*>(last_numbers + i * sizeof(uint64_t));
    total.on_device = reductions[i].device;
    if (reductions[i].device != nullptr) continue;
    total.number = with.number;
    total.host_slot = reinterpret_cast<void*>(with.slots_on_gpu + with.next % kSlots * sizeof(Slot));
    prepared.slots.push_back(with.next++);
    ++with.awaited;
  }
  return prepared;
}

void deliver_reductions(const KernelReductions& totals, const pwx_reduction* reductions, int count,
                        long queue) {
  size_t next = 0;
  for (int i = 0; i < count; ++i) {
    if (reductions[i].device != nullptr) continue;
    const Pending pending{reductions[i], queue, totals.slots[next++]};
    if (queue == PWX_QUEUE_SYNC) {
      wait_for_value(memory_of_queue(queue), pending);
      combine_into_host(pending);
      continue;
    }
    when_finished(
        queue,
        [](void* user) {
          const std::unique_ptr<Pending> mine(static_cast<Pending*>(user));
          combine_into_host(*mine);
        },
        new Pending(pending));
  }
}

void reserve_reductions(long queue) { memory_of_queue(queue); }

void free_reductions() {
  for (auto& [queue, memory] : memory_of_queues()) {
    const Gpu& gpu = the_gpu();
    gpu.driver.cuMemFree(memory.memory);
    gpu.driver.cuMemHostUnregister(memory.slots);
    std::free(memory.slots);
  }
  memory_of_queues().clear();
}

}  // namespace pwx
