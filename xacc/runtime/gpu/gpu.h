// The GPU that this process computes on, if any, and the streams that are its queues.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

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
  /// For Peerway's functions.
  [[nodiscard]] pw_device device() const { return {driver.vendor.kind, ordinal}; }
  [[nodiscard]] pw_stream stream(pw::cuda::CUstream queue) const { return {device(), queue}; }
  [[nodiscard]] std::string name() const { return driver.device_name(ordinal); }  ///< "cuda:0"

  /// Makes its context current in this thread, permanently.
  void enter() const;
  /// Throws Failure "ACTION of cuda:N: ..." unless `status` is success.
  void check(int status, const char* action) const;

 private:
  pw::cuda::CUcontext context_ = nullptr;
  int processors_ = 0;
};

/// Whether this process computes on a GPU, by the setting acc and the available devices. Throws Failure if
/// the setting requires a GPU and there is none.
bool computes_on_gpu();
/// The GPU, or null if this process computes on its CPUs. The first call opens chosen_gpu() permanently.
const Gpu* gpu();
/// The GPU, for callers that know that there is one; it enters the GPU's context in this thread.
const Gpu& the_gpu();

/// Chooses the GPU. Throws Failure if it does not exist, or if gpu() opened another one. Does nothing on
/// CPUs.
void choose_gpu(int number);
/// The number given to choose_gpu last, or of the GPU that Peerway assigns to this rank. Opens no GPU.
int chosen_gpu();
/// The number of GPUs that this process sees: those of the first vendor that has any here.
int gpu_count();
/// Whether these are AMD GPUs.
bool sees_amd_gpus();
/// The number of the first device in OpenACC's functions: the setting acc_first_device.
int first_device();

/// The queue of split reflects; no program can name it.
constexpr long kHaloQueue = std::numeric_limits<long>::min();

/// The queue of async without a number, which acc_set_default_async chooses.
long default_queue();
void choose_default_queue(long number);

/// The stream of a queue, ordered after the program's earlier work without a queue.
pw::cuda::CUstream stream_of(long queue);
pw_stream peerway_stream(long queue);

/// Lets the host wait for a queue. The host then has the results of its kernels' reductions.
void wait_for(long queue);
void wait_for_all();
/// Waits for the program's work without a queue, where the program assumes that it is done, such as before it
/// reads the clock.
void wait_for_unqueued();
/// Whether all work of a queue is done.
bool idle(long queue);
bool all_idle();
/// Orders later work of `queue` after the current work of `after`.
void order(long queue, long after);
/// The same, after all queues that were used.
void order_after_all(long queue);

/// Registers a call that is made when the queue is waited for; calls keep their order.
void when_finished(long queue, void (*call)(void*), void* user);

/// Call it before the context ends.
void free_queues();

}  // namespace pwx
