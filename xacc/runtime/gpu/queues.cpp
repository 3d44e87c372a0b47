// OpenACC's queues as streams. Work without a queue has a stream, too: the host continues at once, and waits
// when a directive copies to it.
#include <map>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/sequences.h"

namespace pwx {
namespace {

using namespace pw::cuda;

struct Waiting {
  void (*call)(void*);
  void* user;
};

struct Queue {
  CUstream stream = nullptr;
  CUevent reached = nullptr;  ///< recorded for queues that continue after this one
  uint64_t ordered = 0;       ///< the count of work without a queue that this one is ordered after
  std::vector<Waiting> waiting;
};

long chosen_default = 0;  ///< the queue of async without a number

long numbered(long number) { return number == PWX_QUEUE_DEFAULT ? chosen_default : number; }

uint64_t unqueued = 1;  ///< counts the program's work without a queue

std::map<long, Queue>& queues() {
  static auto& all = *new std::map<long, Queue>;  // outlives atexit
  return all;
}

/// The queue of halos has priority: the blocks that send them are few, and other ranks wait for them.
int priority_of(long number) {
  const Gpu& gpu = the_gpu();
  int least = 0, greatest = 0;
  if (number == kHaloQueue)
    gpu.check(gpu.driver.cuCtxGetStreamPriorityRange(&least, &greatest), "the priorities of queues");
  return greatest;
}

Queue& opened_queue(long requested) {
  const long number = numbered(requested);
  if (number < PWX_QUEUE_SYNC && number != kHaloQueue)
    refuse("async(", number, "); a queue is a number from 0 on");
  Queue& queue = queues()[number];
  if (queue.stream == nullptr) {
    const Gpu& gpu = the_gpu();
    gpu.check(
        gpu.driver.cuStreamCreateWithPriority(&queue.stream, CU_STREAM_NON_BLOCKING, priority_of(number)),
        "a queue");
    gpu.check(gpu.driver.cuEventCreate(&queue.reached, CU_EVENT_DISABLE_TIMING), "an event of a queue");
  }
  return queue;
}

void order_stream_after(Queue& queue, Queue& other) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuEventRecord(other.reached, other.stream), "ordering queues");
  gpu.check(gpu.driver.cuStreamWaitEvent(queue.stream, other.reached, 0), "ordering queues");
}

void finish(Queue& queue) {
  const Gpu& gpu = the_gpu();
  gpu.check(gpu.driver.cuStreamSynchronize(queue.stream), "a kernel or copy before this line");
  std::vector<Waiting> waiting;
  waiting.swap(queue.waiting);
  for (const Waiting& callback : waiting) callback.call(callback.user);
}

}  // namespace

long default_queue() { return chosen_default; }
void choose_default_queue(long number) {
  if (number < PWX_QUEUE_SYNC) refuse("a default queue of ", number, "; a queue is a number from 0 on");
  if (number != PWX_QUEUE_DEFAULT) chosen_default = number;
}

CUstream stream_of(long requested) {
  const long number = numbered(requested);
  launch_recorded();
  static Queue* const unnumbered = &opened_queue(PWX_QUEUE_SYNC);
  if (number == PWX_QUEUE_SYNC) {
    ++unqueued;
    return unnumbered->stream;
  }
  Queue& queue = opened_queue(number);
  if (queue.ordered != unqueued) {
    order_stream_after(queue, *unnumbered);
    queue.ordered = unqueued;
  }
  return queue.stream;
}

pw_stream peerway_stream(long queue) { return the_gpu().stream(stream_of(queue)); }

void wait_for(long number) {
  launch_recorded();
  if (const auto queue = queues().find(numbered(number)); queue != queues().end()) finish(queue->second);
}

void wait_for_all() {
  launch_recorded();
  for (auto& [number, queue] : queues()) finish(queue);
}

void wait_for_unqueued() { wait_for(PWX_QUEUE_SYNC); }

bool idle(long number) {
  launch_recorded();
  const auto queue = queues().find(numbered(number));
  if (queue == queues().end()) return true;
  const Gpu& gpu = the_gpu();
  const int status = gpu.driver.cuStreamQuery(queue->second.stream);
  if (status == CUDA_ERROR_NOT_READY) return false;
  gpu.check(status, "a kernel or copy before this line");
  finish(queue->second);
  return true;
}

bool all_idle() {
  bool all = true;
  for (const auto& [number, queue] : queues()) all = idle(number) && all;
  return all;
}

void order(long requested, long after) {
  const long number = numbered(requested);
  launch_recorded();
  const auto other = queues().find(numbered(after));
  if (other == queues().end() || number == other->first) return;
  order_stream_after(opened_queue(number), other->second);
  if (number == PWX_QUEUE_SYNC) ++unqueued;
}

void order_after_all(long number) {
  for (const auto& [other, queue] : queues()) order(number, other);
}

void when_finished(long number, void (*call)(void*), void* user) {
  opened_queue(number).waiting.push_back({call, user});
}

void free_queues() {
  for (auto& [number, queue] : queues()) {
    const Gpu& gpu = the_gpu();
    gpu.driver.cuStreamSynchronize(queue.stream);
    gpu.driver.cuEventDestroy(queue.reached);
    gpu.driver.cuStreamDestroy(queue.stream);
  }
  queues().clear();
}

}  // namespace pwx

extern "C" void pwx_acc_wait(int count, const long* numbers, long queue, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return;
    if (queue != PWX_QUEUE_SYNC) {
      if (count == 0) pwx::order_after_all(queue);
      for (int i = 0; i < count; ++i) pwx::order(queue, numbers[i]);
      return;
    }
    if (count == 0) pwx::wait_for_all();
    for (int i = 0; i < count; ++i) pwx::wait_for(numbers[i]);
  });
}
