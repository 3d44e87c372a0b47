// The GPU that this process computes on, if there is one, and the streams that are its queues.
#pragma once

#include <cstdint>
#include <limits>

#include "base/setting.h"
#include "device/cuda/driver.h"
#include "peerway/peerway.hpp"
#include "peerway/xacc/acc.h"

namespace pwx {

namespace settings {

enum class Acc : uint8_t { automatic, gpu, host };
extern const pw::ChoiceSetting<Acc> acc;

}  // namespace settings

using Driver = pw::cuda::Driver;

class Gpu {
 public:
  Gpu(const Driver& driver, int ordinal);

  const Driver& driver;
  const int ordinal;
  [[nodiscard]] int processors() const { return processors_; }
  [[nodiscard]] int capability() const { return capability_; }  ///< 90 is 9.0

  /// Makes its context the current one of this thread, for good.
  void enter() const;
  /// Throws Failure "WHAT: CUDA_ERROR_..." unless `result` is success.
  void check(int status, const char* action) const;
  [[nodiscard]] int attribute(int which) const;

 private:
  pw::cuda::CUcontext context_ = nullptr;
  int processors_ = 0, capability_ = 0;
};

/// Whether this process computes on a GPU, by the setting acc and what there is. Throws Failure where the
/// setting asks for a GPU in vain.
bool computes_on_gpu();
/// Null: this process computes on its CPUs. The first call opens chosen_gpu(), for good.
const Gpu* gpu();
/// gpu(), where it is known that there is one; this thread may use it then.
const Gpu& the_gpu();

/// Throws Failure where there is no such GPU, or gpu() opened another one. Nothing on CPUs.
void choose_gpu(int number);
/// The number that choose_gpu got last, or of the GPU that Peerway gives this rank. Opens none.
int chosen_gpu();
/// How many GPUs this process sees.
int gpu_count();
/// The number of the first device, for OpenACC's functions: the setting acc_first_device.
int first_device();

/// A queue that no program can name: that of reflects that are split.
constexpr long kHaloQueue = std::numeric_limits<long>::min();

/// The queue of async without a number, which acc_set_default_async chooses.
long default_queue();
void choose_default_queue(long number);

/// The stream of a queue, ordered after what the program did without a queue before.
pw::cuda::CUstream stream_of(long queue);
pw_stream peerway_stream(long queue);

/// The host waits for a queue. What its kernels' reductions give the host is there then.
void wait_for(long queue);
void wait_for_all();
/// For what the program did without a queue, which it takes for done: before it reads the clock, say.
void wait_for_unqueued();
/// Whether all of a queue is done.
bool idle(long queue);
bool all_idle();
/// `queue` goes on after what `after` has now.
void order(long queue, long after);
/// All queues that were used.
void order_after_all(long queue);

/// Called when the queue is waited for, in the order of the calls.
void when_finished(long queue, void (*call)(void*), void* user);

/// Before the context ends.
void free_queues();

}  // namespace pwx
