// A plan by which two ranks exchange a message, started in every way there is.
#pragma once

#include "rank.cuh"

namespace check {

/// All epochs of some turns in one kernel of one block.
static __global__ void exchange_by_block(pw_plan_handle plan, Message out, Message in, int rank,
                                         unsigned turns, Word* epoch, Word* wrong, Word* failed) {
  using namespace peerway::device;
  const Block block;
  Word now = *epoch;
  block.sync();
  for (unsigned turn = 0; turn < turns; ++turn) {
    ++now;
    fill(out, rank, now, threadIdx.x, blockDim.x);
    poison(in, threadIdx.x, blockDim.x);
    block.sync();
    if (start(block, plan) != Result::ok || finish(block, plan) != Result::ok) {
      if (threadIdx.x == 0) ++*failed;
      return;
    }
    compare(in, 1 - rank, now, wrong, threadIdx.x, blockDim.x);
    block.sync();
  }
  if (threadIdx.x == 0) *epoch = now;
}

/// All blocks of a cooperative launch meet. `arrived` is 0 before the launch.
__device__ inline void meet_in_grid(Word* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const Word goal = (atomicAdd(arrived, Word{1}) / gridDim.x + 1) * gridDim.x;
    while (peerway::device::detail::load_acquire(arrived) < goal) {
    }
    __threadfence();
  }
  __syncthreads();
}

/// The same by all blocks of a cooperative launch, which meet at a barrier of the grid.
static __global__ void exchange_by_grid(pw_plan_handle plan, Message out, Message in, int rank,
                                        unsigned turns, Word* epoch, Word* wrong, Word* failed,
                                        Word* arrived) {
  using namespace peerway::device;
  Word now = *epoch;
  meet_in_grid(arrived);
  for (unsigned turn = 0; turn < turns; ++turn) {
    ++now;
    fill(out, rank, now, thread_of_grid(), threads_of_grid());
    poison(in, thread_of_grid(), threads_of_grid());
    meet_in_grid(arrived);
    const bool started = start(Block{}, plan, blockIdx.x, gridDim.x) == Result::ok;
    const bool finished = started && finish(Block{}, plan, blockIdx.x, gridDim.x) == Result::ok;
    if (!finished && threadIdx.x == 0) atomicAdd(failed, Word{1});
    meet_in_grid(arrived);
    if (*static_cast<volatile Word*>(failed) != 0) return;
    compare(in, 1 - rank, now, wrong, thread_of_grid(), threads_of_grid());
    meet_in_grid(arrived);
  }
  if (thread_of_grid() == 0) *epoch = now;
}

/// Only a start, which a stream finishes.
static __global__ void start_by_block(pw_plan_handle plan, Word* failed) {
  using namespace peerway::device;
  if (start(Block{}, plan) != Result::ok && threadIdx.x == 0) ++*failed;
}

/// Only a finish, of what a stream started.
static __global__ void finish_by_block(pw_plan_handle plan, Word* failed) {
  using namespace peerway::device;
  if (finish(Block{}, plan) != Result::ok && threadIdx.x == 0) ++*failed;
}

class Exchange {
 public:
  Exchange(Rank& rank, Layout layout, bool sends = true, bool receives = true)
      : rank_(rank),
        layout_(layout),
        out_(rank.ctx.allocate(rank.device, layout.span())),
        in_(rank.ctx.allocate(rank.device, layout.span())),
        plan_(prepare(sends, receives)) {
    plan_.set_timeout(20s);
  }

  peerway::Plan& plan() { return plan_; }
  [[nodiscard]] Message out() const { return layout_.in(out_); }
  [[nodiscard]] Message in() const { return layout_.in(in_); }
  [[nodiscard]] Word* epoch() const { return counts_.get(); }
  [[nodiscard]] Word* wrong() const { return counts_.get() + 1; }
  [[nodiscard]] Word* failed() const { return counts_.get() + 2; }

  // ---- one epoch, in the order of the stream

  void make_ready() const {
    check::make_ready<<<64, 128, 0, rank_.stream>>>(out(), in(), rank_.rank, epoch());
  }
  void look_at() const {
    check::look_at<<<64, 128, 0, rank_.stream>>>(in(), rank_.partner, epoch(), wrong());
  }
  void count_up() const { check::count_up<<<1, 1, 0, rank_.stream>>>(epoch()); }

  // ---- several epochs, each way; all return after the last has been enqueued or done

  void from_host(unsigned turns) {
    for (unsigned turn = 0; turn < turns; ++turn) {
      make_ready();
      rank_.drain();
      peerway::check(plan_.start());
      peerway::check(plan_.finish(30s));
      look_at();
      count_up();
    }
  }
  void on_stream(unsigned turns, bool in_one) {
    for (unsigned turn = 0; turn < turns; ++turn) step_on_stream(in_one);
  }
  void by_graph(unsigned turns) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    CUDA(cudaStreamBeginCapture(rank_.stream, cudaStreamCaptureModeThreadLocal));
    step_on_stream(false);
    step_on_stream(true);
    CUDA(cudaStreamEndCapture(rank_.stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (unsigned turn = 0; turn < turns; ++turn) CUDA(cudaGraphLaunch(exec, rank_.stream));
    rank_.drain();
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
  void by_block(unsigned turns, unsigned threads = 256) {
    exchange_by_block<<<1, threads, 0, rank_.stream>>>(plan_.handle(), out(), in(), rank_.rank, turns,
                                                       epoch(), wrong(), failed());
  }
  void by_grid(unsigned turns, unsigned blocks) {
    pw_plan_handle plan = plan_.handle();
    Message from = out(), to = in();
    int rank = rank_.rank;
    Word *now = epoch(), *bad = wrong(), *lost = failed(), *arrived = counts_.get() + 3;
    void* arguments[] = {&plan, &from, &to, &rank, &turns, &now, &bad, &lost, &arrived};
    CUDA(cudaMemsetAsync(arrived, 0, sizeof(Word), rank_.stream));
    CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(exchange_by_grid), dim3(blocks), dim3(128),
                                     arguments, 0, rank_.stream));
  }
  /// A kernel starts, the stream finishes.
  void mixed_on_stream(unsigned turns) {
    for (unsigned turn = 0; turn < turns; ++turn) {
      make_ready();
      start_by_block<<<1, 256, 0, rank_.stream>>>(plan_.handle(), failed());
      peerway::check(plan_.finish(rank_.queue()));
      look_at();
      count_up();
    }
  }

  /// The stream starts, a kernel finishes.
  void mixed_in_kernel(unsigned turns) {
    for (unsigned turn = 0; turn < turns; ++turn) {
      make_ready();
      peerway::check(plan_.start(rank_.queue()));
      finish_by_block<<<1, 256, 0, rank_.stream>>>(plan_.handle(), failed());
      look_at();
      count_up();
    }
  }

  /// Whether all `epochs` were right so far.
  void judge(const std::string& name, Word epochs) {
    rank_.drain();
    const bool ok = counts_[0] == epochs && counts_[1] == 0 && counts_[2] == 0;
    const Status status = plan_.status();
    rank_.say(layout_.text() + ": " + name, ok && status == Status::ok,
              std::to_string(counts_[0]) + " of " + std::to_string(epochs) + " epochs, " +
                  std::to_string(counts_[1]) + " bytes wrong, " + std::to_string(counts_[2]) +
                  " failed in kernels" +
                  (status == Status::ok ? "" : std::string(": ") + peerway::error_message()));
  }

 private:
  peerway::Plan prepare(bool sends, bool receives) {
    auto builder = rank_.ctx.plan(rank_.device);
    if (sends) builder.send(rank_.partner, 1, layout_.of(out_));
    if (receives) builder.receive(rank_.partner, 1, layout_.of(in_));
    return builder.prepare();
  }
  void step_on_stream(bool in_one) {
    make_ready();
    if (in_one) {
      peerway::check(plan_.run(rank_.queue()));
    } else {
      peerway::check(plan_.start(rank_.queue()));
      peerway::check(plan_.finish(rank_.queue()));
    }
    look_at();
    count_up();
  }

  Rank& rank_;
  Layout layout_;
  peerway::Region out_, in_;
  peerway::Plan plan_;
  Words counts_{4};  ///< epochs done, bytes wrong, calls in kernels that failed, blocks that have met
};

/// All ways, one after the other and mixed, on one plan.
inline void exchange_every_way(Rank& rank, Layout layout) {
  Exchange it(rank, layout);
  const bool large = layout.bytes() > 1 << 20;
  const unsigned turns = rank.small ? 2 : large ? 4 : 12;
  Word epochs = 0;
  it.from_host(turns);
  it.judge("from the host", epochs += turns);
  it.on_stream(turns, false);
  it.judge("on a stream", epochs += turns);
  it.on_stream(turns, true);
  it.judge("on a stream in one piece", epochs += turns);
  it.by_graph(turns);
  it.judge("replays of a graph", epochs += 2 * turns);
  it.by_block(turns);
  it.judge("by one block of a kernel", epochs += turns);
  it.by_grid(turns, 4);
  it.judge("by four blocks of a kernel", epochs += turns);
  it.mixed_on_stream(turns);
  it.judge("started by a kernel, finished on a stream", epochs += turns);
  it.mixed_in_kernel(turns);
  it.judge("started on a stream, finished by a kernel", epochs += turns);
  for (unsigned n = 0; n < 3; ++n) {
    it.by_grid(2, 3);
    it.on_stream(1, n % 2 == 0);
    it.by_block(1, 32);
    it.by_graph(2);
    it.from_host(1);
    it.on_stream(2, n % 2 == 1);
    epochs += 2 + 1 + 1 + 4 + 1 + 2;
  }
  it.judge("every way in turn", epochs);
  rank.meet();
}

/// Several messages of different sizes in one plan.
inline void many_lanes(Rank& rank) {
  constexpr uint64_t kSizes[] = {8, 1, 4096, 24, 100000, 2, 300, 70000};
  constexpr uint64_t kRoom = 1 << 17;
  const auto out = rank.ctx.allocate(rank.device, std::size(kSizes) * kRoom);
  const auto in = rank.ctx.allocate(rank.device, std::size(kSizes) * kRoom);
  auto builder = rank.ctx.plan(rank.device);
  for (size_t n = 0; n < std::size(kSizes); ++n) {
    builder.send(rank.partner, static_cast<int>(n), out.span(n * kRoom, kSizes[n]));
    builder.receive(rank.partner, static_cast<int>(n), in.span(n * kRoom, kSizes[n]));
  }
  auto plan = builder.prepare();
  plan.set_timeout(20s);
  const Words counts(2);
  for (unsigned turn = 0; turn < 20; ++turn) {
    const auto at = [&](const peerway::Region& region, size_t n) {
      return Message{static_cast<unsigned char*>(region.address()) + n * kRoom, kSizes[n], kSizes[n],
                     kSizes[n]};
    };
    for (size_t n = 0; n < std::size(kSizes); ++n)
      check::make_ready<<<16, 128, 0, rank.stream>>>(at(out, n), at(in, n), rank.rank, counts.get());
    peerway::check(plan.run(rank.queue()));
    for (size_t n = 0; n < std::size(kSizes); ++n)
      check::look_at<<<16, 128, 0, rank.stream>>>(at(in, n), rank.partner, counts.get(), counts.get() + 1);
    check::count_up<<<1, 1, 0, rank.stream>>>(counts.get());
  }
  rank.drain();
  rank.say("several messages in one plan", counts[0] == 20 && counts[1] == 0 && plan.status() == Status::ok,
           std::to_string(counts[1]) + " bytes wrong");
  rank.meet();
}

/// One rank only sends, the other only receives and is slow: credits and ready-to-receive flags keep them in
/// step.
inline void one_direction(Rank& rank, Layout layout) {
  Exchange it(rank, layout, rank.rank == 0, rank.rank == 1);
  const unsigned turns = rank.small ? 3 : 40;
  for (unsigned turn = 0; turn < turns; ++turn) {
    it.make_ready();
    peerway::check(it.plan().start(rank.queue()));
    peerway::check(it.plan().finish(rank.queue()));
    if (rank.rank == 1) {
      dawdle<<<1, 1, 0, rank.stream>>>(200);
      it.look_at();
    }
    it.count_up();
  }
  it.judge("one direction to a slow receiver", turns);
  rank.meet();
}

/// An exchange in which one side takes its time after every finish.
inline void slow_partner(Rank& rank, Layout layout) {
  Exchange it(rank, layout);
  const unsigned turns = rank.small ? 3 : 40;
  for (unsigned turn = 0; turn < turns; ++turn) {
    it.make_ready();
    peerway::check(it.plan().start(rank.queue()));
    peerway::check(it.plan().finish(rank.queue()));
    if (rank.rank == 1) dawdle<<<1, 1, 0, rank.stream>>>(200);
    it.look_at();
    it.count_up();
  }
  it.judge("with a slow partner", turns);
  rank.meet();
}

}  // namespace check
