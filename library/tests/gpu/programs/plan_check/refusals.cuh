// What is refused, and how waits end: timeouts, streams of others, starts out of turn, captures that cannot
// be.
#pragma once

#include "one_sided.cuh"

namespace check {

inline void expect(Rank& rank, const std::string& name, Status status, Status wanted) {
  rank.say(name, status == wanted,
           std::string(peerway::to_string(status)) +
               (status == Status::ok ? "" : ": " + peerway::error_message()));
}

inline void refuse_starts(Rank& rank, int gpus) {
  Exchange it(rank, {1024, 1, 1024});
  if (gpus > 1) {
    const int other = (rank.device.index + 1) % gpus;
    cudaStream_t foreign = nullptr;
    CUDA(cudaSetDevice(other));
    CUDA(cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking));
    CUDA(cudaSetDevice(rank.device.index));
    expect(rank, "a stream of another device is refused",
           it.plan().start(peerway::cuda_stream(foreign, rank.device.index)), Status::invalid_argument);
    expect(rank, "a stream that names another device is refused",
           it.plan().start(peerway::cuda_stream(rank.stream, other)), Status::invalid_argument);
    CUDA(cudaSetDevice(other));
    CUDA(cudaStreamDestroy(foreign));
    CUDA(cudaSetDevice(rank.device.index));
  }
  expect(rank, "a finish before any start is refused", it.plan().finish(1s), Status::invalid_argument);
  rank.meet();
  it.make_ready();
  rank.drain();
  expect(rank, "a start", it.plan().start(), Status::ok);
  expect(rank, "a second start is refused", it.plan().start(), Status::invalid_argument);
  expect(rank, "a second start on a stream is refused", it.plan().start(rank.queue()),
         Status::invalid_argument);
  expect(rank, "its finish", it.plan().finish(20s), Status::ok);
  it.look_at();
  it.count_up();
  it.judge("after refused starts", 1);
  rank.meet();
}

inline void refuse_capture(Rank& rank) {
  auto stream = rank.ctx.stream(rank.device);
  const auto queue = static_cast<cudaStream_t>(stream.get().queue);
  CUDA(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal));
  const Status waited = stream.wait(5s);
  rank.say("a wait for a stream that is being captured is refused",
           waited == Status::device || waited == Status::invalid_argument || waited == Status::unsupported,
           std::string(peerway::to_string(waited)) + ": " + peerway::error_message());
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(queue, &graph);  // it may have been ended by the refused call
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
  expect(rank, "the stream goes on after it", stream.wait(5s), Status::ok);
  rank.meet();
}

/// Counts the waits that ended otherwise.
static __global__ void wait_for(pw_signal_handle signal, Word value, Result wanted, Word* others) {
  const Result ended = peerway::device::wait(peerway::device::Block{}, signal, value);
  if (ended != wanted && threadIdx.x == 0) ++*others;
}

inline void time_out(Rank& rank) {
  Exchange on_stream(rank, {1024, 1, 1024}), in_kernel(rank, {300000, 1, 300000});
  auto signal = signal_in(rank, true);
  rank.meet();
  if (rank.rank == 0) {  // the other one starts nothing
    on_stream.plan().set_timeout(100ms);
    peerway::check(on_stream.plan().run(rank.queue()));
    peerway::check(on_stream.plan().run(rank.queue()));
    rank.drain();
    expect(rank, "a wait in a stream times out", on_stream.plan().status(), Status::timeout);
    expect(rank, "a cancelled plan starts no more", on_stream.plan().start(), Status::timeout);
    in_kernel.plan().set_timeout(100ms);
    in_kernel.by_block(3);
    rank.drain();
    expect(rank, "a wait of a plan in a kernel times out", in_kernel.plan().status(), Status::timeout);
    const Words others(1);
    wait_for<<<1, 64, 0, rank.stream>>>(signal.handle(rank.device, 100ms), 1, Result::timeout, others.get());
    rank.drain();
    expect(rank, "a wait for a signal in a kernel times out", signal.status(), Status::timeout);
    rank.say("and says so to the kernel", others[0] == 0);
  }
  rank.meet();
}

}  // namespace check
