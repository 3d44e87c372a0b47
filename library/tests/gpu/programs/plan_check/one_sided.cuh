// One-sided operations: by plans on streams, and by kernels with handles of remotes and signals; with signals
// in host memory and in the GPU's.
#pragma once

#include "exchange.cuh"

namespace check {

inline peerway::Signal signal_in(Rank& rank, bool on_gpu) {
  return rank.ctx.signal(rank.partner, on_gpu ? rank.device : peerway::host);
}

/// put + signal as one plan, the wait as another, on a stream. The partner's `used` says when its target may
/// be written again.
inline void two_plans(Rank& rank, Layout layout, bool on_gpu) {
  const auto out = rank.ctx.allocate(rank.device, layout.span());
  const auto in = rank.ctx.allocate(rank.device, layout.span());
  const auto arrived = signal_in(rank, on_gpu), used = signal_in(rank, on_gpu);
  const auto target = rank.theirs(in);
  const auto notify_arrived = rank.theirs(arrived), notify_used = rank.theirs(used);
  auto put = rank.ctx.plan(rank.device)
                 .put(layout.of(target), layout.of(out), peerway::notify(notify_arrived, 3))
                 .after(used, 1)
                 .prepare_alone();
  auto wait = rank.ctx.plan(rank.device).wait(arrived, 3).prepare_alone();
  auto done = rank.ctx.plan(rank.device).notify(peerway::notify(notify_used)).prepare_alone();
  for (auto* plan : {&put, &wait, &done}) plan->set_timeout(20s);
  rank.meet();  // nobody starts before the signals are counted
  const Words counts(2);
  const auto epoch = [&] {
    make_ready<<<64, 128, 0, rank.stream>>>(layout.in(out), {}, rank.rank, counts.get());
    peerway::check(put.run(rank.queue()));
    peerway::check(wait.run(rank.queue()));
    look_at<<<64, 128, 0, rank.stream>>>(layout.in(in), rank.partner, counts.get(), counts.get() + 1);
    peerway::check(done.run(rank.queue()));
    count_up<<<1, 1, 0, rank.stream>>>(counts.get());
  };
  const unsigned turns = rank.small ? 3 : 20;
  for (unsigned turn = 0; turn < turns; ++turn) epoch();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
  epoch();
  CUDA(cudaStreamEndCapture(rank.stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (unsigned turn = 0; turn < turns; ++turn) CUDA(cudaGraphLaunch(exec, rank.stream));
  rank.drain();
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  const bool ok = counts[0] == 2 * turns && counts[1] == 0 && put.status() == Status::ok &&
                  wait.status() == Status::ok && done.status() == Status::ok;
  const uint64_t value = arrived.value();
  rank.say(layout.text() + ": put + signal and wait as two plans, signals in memory of the " +
               (on_gpu ? "GPU" : "host"),
           ok && value == 2 * turns * 3,
           std::to_string(counts[1]) + " bytes wrong, signal at " + std::to_string(value));
  rank.meet();
}

/// The same by device functions in one kernel.
static __global__ void put_and_wait(pw_remote_handle to, pw_notify_handle notify_arrived,
                                    pw_notify_handle notify_used, pw_signal_handle arrived,
                                    pw_signal_handle used, Message out, Message in, int rank, unsigned turns,
                                    Word* wrong, Word* failed) {
  using namespace peerway::device;
  const Block block;
  for (Word epoch = 1; epoch <= turns; ++epoch) {
    fill(out, rank, epoch, threadIdx.x, blockDim.x);
    block.sync();
    const bool there = wait(block, used, epoch - 1) == Result::ok &&
                       put(block, to, 0, out.at, out.bytes, notify_arrived, 2) == Result::ok &&
                       wait(block, arrived, 2 * epoch) == Result::ok;
    if (!there) {
      if (threadIdx.x == 0) ++*failed;
      return;
    }
    compare(in, 1 - rank, epoch, wrong, threadIdx.x, blockDim.x);
    block.sync();
    poison(in, threadIdx.x, blockDim.x);
    notify(block, notify_used);
  }
}

static __global__ void put_past_the_end(pw_remote_handle to, unsigned char* from, Word* accepted) {
  using namespace peerway::device;
  if (put(Thread{}, to, to.bytes - 7, from, 8) != Result::out_of_range) ++*accepted;
  if (put(Thread{}, to, ~0ull, from, 8) != Result::out_of_range) ++*accepted;
  to.version += 1;
  if (put(Thread{}, to, 0, from, 8) != Result::other_version) ++*accepted;
}

inline void by_handles(Rank& rank, uint64_t bytes, bool on_gpu) {
  const auto out = rank.ctx.allocate(rank.device, bytes + 8), in = rank.ctx.allocate(rank.device, bytes);
  auto arrived = signal_in(rank, on_gpu), used = signal_in(rank, on_gpu);
  const auto target = rank.theirs(in);
  auto notify_arrived = rank.theirs(arrived), notify_used = rank.theirs(used);
  const Layout layout{bytes, 1, bytes};
  const Words counts(3);
  const unsigned turns = rank.small ? 3 : 50;
  const pw_remote_handle to = target.handle(rank.device);
  rank.meet();
  put_and_wait<<<1, 256, 0, rank.stream>>>(
      to, notify_arrived.notify_handle(rank.device), notify_used.notify_handle(rank.device),
      arrived.handle(rank.device, 20s), used.handle(rank.device, 20s), layout.in(out), layout.in(in),
      rank.rank, turns, counts.get(), counts.get() + 1);
  put_past_the_end<<<1, 1, 0, rank.stream>>>(to, static_cast<unsigned char*>(out.address()),
                                             counts.get() + 2);
  rank.drain();
  const std::string name =
      std::to_string(bytes) + " B by device functions, signals in memory of the " + (on_gpu ? "GPU" : "host");
  rank.say(name, counts[0] == 0 && counts[1] == 0 && arrived.status() == Status::ok,
           std::to_string(counts[0]) + " bytes wrong, " + std::to_string(counts[1]) + " kernels failed");
  rank.say(name + ": past the end, and of another version, is refused", counts[2] == 0);
  const auto refused = rank.ctx.notify(peerway::notify(notify_arrived));
  rank.say(name + ": the host cannot notify it meanwhile",
           refused == (on_gpu ? Status::unsupported : Status::invalid_argument), peerway::error_message());
  notify_arrived.release_notify_handle();
  notify_used.release_notify_handle();
  if (!on_gpu) peerway::check(rank.ctx.notify(peerway::notify(notify_arrived)));
  rank.meet();
  const uint64_t value = arrived.value(), wanted = 2 * turns + (on_gpu ? 0 : 1);
  rank.say(name + ": notifications go on from there", value == wanted, "at " + std::to_string(value));
  rank.meet();
}

}  // namespace check
