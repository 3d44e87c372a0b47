// Two ranks of one process, driven in turn so that no kernel ever waits for one that comes later: tools that
// run one kernel at a time can follow it.
#pragma once

#include "one_sided.cuh"

namespace check {

static __global__ void start_alone(pw_plan_handle plan, Word* failed) {
  if (peerway::device::start(peerway::device::Block{}, plan, blockIdx.x, gridDim.x) != Result::ok &&
      threadIdx.x == 0)
    atomicAdd(failed, Word{1});
}
static __global__ void finish_alone(pw_plan_handle plan, Word* failed) {
  if (peerway::device::finish(peerway::device::Block{}, plan, blockIdx.x, gridDim.x) != Result::ok &&
      threadIdx.x == 0)
    atomicAdd(failed, Word{1});
}
template <class Scope>
static __global__ void send_alone(pw_lane_handle to, unsigned char* from, Word bytes, Word epoch,
                                  Word* failed) {
  if (peerway::device::send(Scope{}, to, epoch, from, bytes) != Result::ok) ++*failed;
}
template <class Scope>
static __global__ void receive_alone(pw_lane_handle from, unsigned char* to, Word bytes, Word epoch,
                                     Word* failed) {
  if (peerway::device::receive(Scope{}, from, epoch, to, bytes) != Result::ok) ++*failed;
}
static __global__ void put_alone(pw_remote_handle to, pw_notify_handle far_signal, unsigned char* from,
                                 Word* failed) {
  using namespace peerway::device;
  if (put(Block{}, to, 0, from, to.bytes, far_signal) != Result::ok) ++*failed;
}
static __global__ void wait_alone(pw_signal_handle signal, Word value, Word* failed) {
  if (peerway::device::wait(peerway::device::Warp{}, signal, value) != Result::ok) ++*failed;
}

/// One side of everything; made by both ranks at once, used by one thread.
struct Side {
  Side(Rank& its_rank, Layout layout, bool sends, bool receives)
      : rank(its_rank), exchange(its_rank, layout, sends, receives) {}
  void on_gpu() const { CUDA(cudaSetDevice(rank.device.index)); }
  /// Enqueues the body's work on the rank's GPU and waits for it.
  template <typename Body>
  void step(Body&& body) {
    on_gpu();
    body();
    CUDA(cudaGetLastError());
    rank.drain();
  }
  Rank& rank;
  Exchange exchange;
};

/// Both messages go by packets, or one goes straight from rank 0 to rank 1: rank 1 starts first, and so
/// nothing waits.
inline void drive_exchange(Side& rank_0, Side& rank_1, const std::string& name, unsigned turns) {
  for (unsigned turn = 0; turn < turns; ++turn) {
    const bool in_kernel = turn % 2 == 1;
    for (Side* side : {&rank_1, &rank_0})
      side->step([&] {
        side->exchange.make_ready();
        if (in_kernel)
          start_alone<<<2, 64, 0, side->rank.stream>>>(side->exchange.plan().handle(),
                                                       side->exchange.failed());
        else
          peerway::check(side->exchange.plan().start(side->rank.queue()));
      });
    for (Side* side : {&rank_1, &rank_0})
      side->step([&] {
        if (in_kernel)
          finish_alone<<<3, 64, 0, side->rank.stream>>>(side->exchange.plan().handle(),
                                                        side->exchange.failed());
        else
          peerway::check(side->exchange.plan().finish(side->rank.queue()));
      });
    rank_1.step([&] { rank_1.exchange.look_at(); });
    for (Side* side : {&rank_1, &rank_0}) side->step([&] { side->exchange.count_up(); });
  }
  for (Side* side : {&rank_0, &rank_1}) {
    side->on_gpu();
    side->exchange.judge(name, turns);
  }
}

/// What a rank has for packets over lanes and for one-sided operations, with its handles.
struct Parts {
  explicit Parts(Rank& its_rank)
      : rank(its_rank),
        out(rank.ctx.allocate(rank.device, kBytes)),
        in(rank.ctx.allocate(rank.device, kBytes)),
        signal(signal_in(rank, true)),
        target(rank.theirs(in)),
        far_signal(rank.theirs(signal)),
        plan(rank.ctx.plan(rank.device)
                 .send(rank.partner, 3, out.span(0, kBytes))
                 .receive(rank.partner, 3, in.span(0, kBytes))
                 .prepare()) {
    peerway::check(pw_plan_get_lane(plan.get(), PW_SEND, rank.partner, 3, &to));
    peerway::check(pw_plan_get_lane(plan.get(), PW_RECEIVE, rank.partner, 3, &from));
  }
  static constexpr uint64_t kBytes = 2000;
  static constexpr Layout kLayout{kBytes, 1, kBytes};

  Rank& rank;
  peerway::Region out, in;
  peerway::Signal signal;
  peerway::Remote target, far_signal;
  peerway::Plan plan;
  pw_lane_handle to{}, from{};
  Words counts{3};  ///< epochs, bytes wrong, calls that failed
};

template <class Scope>
void drive_lane(Parts& rank_0, Parts& rank_1, Word epoch, unsigned threads) {
  for (Parts* side : {&rank_0, &rank_1}) {
    CUDA(cudaSetDevice(side->rank.device.index));
    make_ready<<<4, 64, 0, side->rank.stream>>>(Parts::kLayout.in(side->out), Parts::kLayout.in(side->in),
                                                side->rank.rank, side->counts.get());
    send_alone<Scope><<<1, threads, 0, side->rank.stream>>>(side->to,
                                                            static_cast<unsigned char*>(side->out.address()),
                                                            Parts::kBytes, epoch, side->counts.get() + 2);
    side->rank.drain();
  }
  for (Parts* side : {&rank_0, &rank_1}) {
    CUDA(cudaSetDevice(side->rank.device.index));
    receive_alone<Scope>
        <<<1, threads, 0, side->rank.stream>>>(side->from, static_cast<unsigned char*>(side->in.address()),
                                               Parts::kBytes, epoch, side->counts.get() + 2);
    look_at<<<4, 64, 0, side->rank.stream>>>(Parts::kLayout.in(side->in), side->rank.partner,
                                             side->counts.get(), side->counts.get() + 1);
    count_up<<<1, 1, 0, side->rank.stream>>>(side->counts.get());
    side->rank.drain();
  }
}

inline void drive_put(Parts& from, Parts& to, Word value) {
  CUDA(cudaSetDevice(to.rank.device.index));
  poison_all<<<4, 64, 0, to.rank.stream>>>(Parts::kLayout.in(to.in));
  to.rank.drain();
  CUDA(cudaSetDevice(from.rank.device.index));
  make_ready<<<4, 64, 0, from.rank.stream>>>(Parts::kLayout.in(from.out), {}, from.rank.rank,
                                             from.counts.get());
  put_alone<<<1, 128, 0, from.rank.stream>>>(
      from.target.handle(from.rank.device), from.far_signal.notify_handle(from.rank.device),
      static_cast<unsigned char*>(from.out.address()), from.counts.get() + 2);
  from.rank.drain();
  CUDA(cudaSetDevice(to.rank.device.index));
  wait_alone<<<1, 32, 0, to.rank.stream>>>(to.signal.handle(to.rank.device, 20s), value, to.counts.get() + 2);
  look_at<<<4, 64, 0, to.rank.stream>>>(Parts::kLayout.in(to.in), to.rank.partner, to.counts.get(),
                                        to.counts.get() + 1);
  to.rank.drain();
}

inline void drive_parts(Parts& rank_0, Parts& rank_1) {
  using namespace peerway::device;
  drive_lane<Thread>(rank_0, rank_1, 1, 1);
  drive_lane<Warp>(rank_0, rank_1, 2, 32);
  drive_lane<Block>(rank_0, rank_1, 3, 96);
  drive_put(rank_0, rank_1, 1);
  drive_put(rank_1, rank_0, 1);
  drive_put(rank_0, rank_1, 2);
  for (Parts* side : {&rank_0, &rank_1}) {
    CUDA(cudaSetDevice(side->rank.device.index));
    side->rank.say("lanes and device functions in turn",
                   side->counts[0] == 3 && side->counts[1] == 0 && side->counts[2] == 0,
                   std::to_string(side->counts[1]) + " bytes wrong, " + std::to_string(side->counts[2]) +
                       " calls failed");
  }
}

}  // namespace check
