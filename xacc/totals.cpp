#include "xacc/totals.h"

#include <cstdlib>
#include <map>
#include <memory>

#include "base/config.h"
#include "base/relax.h"
#include "xacc/failure.h"
#include "xacc/gpu.h"
#include "xacc/launches.h"
#include "xacc/operators.h"

namespace pwx {
namespace {

using namespace pw::cuda;

constexpr size_t kWidest = 16;  // bytes of a value that a kernel reduces: double _Complex
constexpr size_t kPage = 4096;
// As the library waits: longer than most kernels that a program waits for take, or what sleeping costs.
constexpr int kPolls = 4096, kPollsBeforeSleep = 256;

/// One result, in host memory that the GPU writes.
struct Slot {
  std::byte value[kWidest];
  volatile uint64_t told;  ///< the number of the launch whose result is there
  uint64_t unused;
};
constexpr size_t kSlots = kPage / sizeof(Slot);

/// What the reductions on one queue use, whose kernels run one after the other.
struct Joining {
  CUdeviceptr memory = 0;  ///< room for the values of the blocks, of each reduction; then `done` of each
  Slot* slots = nullptr;   ///< a ring
  CUdeviceptr slots_on_gpu = 0;
  size_t next = 0;      ///< slot, counted on for ever
  size_t awaited = 0;   ///< slots before `next` whose results the host has not taken yet
  uint64_t number = 0;  ///< of the last launch
};

std::map<long, Joining>& joining() {
  static auto& all = *new std::map<long, Joining>;  // outlives atexit
  return all;
}

size_t room_of_blocks(const Gpu& gpu) { return kWidest * most_joined(gpu.processors()); }

Joining& joining_of(long queue) {
  if (const auto found = joining().find(queue); found != joining().end()) return found->second;
  const Gpu& gpu = the_gpu();
  Joining made;
  const size_t bytes = kMostReductions * (room_of_blocks(gpu) + sizeof(uint64_t));
  gpu.check(gpu.driver.cuMemAlloc(&made.memory, bytes), "memory of a reduction");
  gpu.check(gpu.driver.cuMemsetD8Async(made.memory, 0, bytes, stream_of(queue)), "clearing memory");
  made.slots = static_cast<Slot*>(std::aligned_alloc(kPage, kPage));
  if (made.slots == nullptr) throw Failure("no memory for the result of a reduction");
  for (size_t i = 0; i < kSlots; ++i) made.slots[i].told = 0;
  gpu.check(gpu.driver.cuMemHostRegister(made.slots, kPage, kHostRegisterPortable | kHostRegisterDeviceMap),
            "pinning memory");
  gpu.check(gpu.driver.cuMemHostGetDevicePointer(&made.slots_on_gpu, made.slots, 0), "pinning memory");
  return joining().emplace(queue, made).first->second;
}

pwx_op plain(pwx_op op) { return op == PWX_MINUS ? PWX_SUM : op; }

/// A result that the host is to have.
struct Pending {
  pwx_reduction asked;
  long queue;
  size_t slot;
};

void take(const Pending& one) {
  Joining& from = joining_of(one.queue);
  combine_of(plain(one.asked.op), one.asked.type)(one.asked.host, one.asked.host,
                                                  from.slots[one.slot % kSlots].value, 1);
  --from.awaited;
}

/// Waits by polling, which is quicker than the driver's wait; a long wait is the driver's, which also tells
/// of a kernel that failed.
void wait_until_told(const Joining& from, size_t slot, long queue) {
  const volatile uint64_t& told = from.slots[slot % kSlots].told;
  static const int polls = pw::config("wait") == "blocking" ? kPollsBeforeSleep : kPolls;
  for (int i = 0; i < polls && told != from.number; ++i) pw::relax();
  if (told != from.number) wait_for(queue);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

}  // namespace

Totals prepare_totals(int count, const pwx_reduction* asked, long queue) {
  Totals made;
  const Gpu& gpu = the_gpu();
  Joining& with = joining_of(queue);
  if (with.awaited + static_cast<size_t>(count) > kSlots) wait_for(queue);
  const CUdeviceptr done = with.memory + kMostReductions * room_of_blocks(gpu);
  ++with.number;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (size_of(asked[i].type) > kWidest || kernel_name_of(asked[i].type) == nullptr)
      refuse("a reduction of a type that GPUs do not have");
    Total& total = made.arguments[i];
    total = {reinterpret_cast<void*>(with.memory + i * room_of_blocks(gpu)),
             reinterpret_cast<unsigned*>(done + i * sizeof(uint64_t)),
             asked[i].device,
             1,
             nullptr,
             with.number};
    if (asked[i].device != nullptr) continue;
    const CUdeviceptr slot = with.slots_on_gpu + with.next % kSlots * sizeof(Slot);
    total.result = reinterpret_cast<void*>(slot + offsetof(Slot, value));
    total.told = reinterpret_cast<volatile uint64_t*>(slot + offsetof(Slot, told));
    total.join = 0;
    made.slots.push_back(with.next++);
    ++with.awaited;
  }
  return made;
}

void deliver_totals(const Totals& totals, const pwx_reduction* asked, int count, long queue) {
  size_t next = 0;
  for (int i = 0; i < count; ++i) {
    if (asked[i].device != nullptr) continue;
    const Pending one{asked[i], queue, totals.slots[next++]};
    if (queue == PWX_QUEUE_SYNC) {
      wait_until_told(joining_of(queue), one.slot, queue);
      take(one);
      continue;
    }
    when_finished(
        queue,
        [](void* user) {
          const std::unique_ptr<Pending> mine(static_cast<Pending*>(user));
          take(*mine);
        },
        new Pending(one));
  }
}

void ready_totals(long queue) { joining_of(queue); }

void free_totals() {
  for (auto& [queue, one] : joining()) {
    const Gpu& gpu = the_gpu();
    gpu.driver.cuMemFree(one.memory);
    gpu.driver.cuMemHostUnregister(one.slots);
    std::free(one.slots);
  }
  joining().clear();
}

}  // namespace pwx
