// Kernels that move packets themselves over the lanes of a plan: by one thread, a warp, a block, and several
// blocks with a part each.
#pragma once

#include "exchange.cuh"

namespace check {

/// `turns` epochs from `first` on; every worker (a scope of its own) has a part of `part` bytes.
template <class Scope>
__device__ void exchange_by_lanes(const Scope& scope, Word worker, const pw_lane_handle& to,
                                  const pw_lane_handle& from, unsigned char* out, unsigned char* in,
                                  Word part, int rank, Word first, unsigned turns, Word* wrong,
                                  Word* failed) {
  using namespace peerway::device;
  out += worker * part;
  in += worker * part;
  for (Word epoch = first; epoch < first + turns; ++epoch) {
    const Message mine{out, part, part, part}, theirs{in, part, part, part};
    fill(mine, rank, epoch * 64 + worker, scope.index(), scope.count());
    poison(theirs, scope.index(), scope.count());
    scope.sync();
    if (send(scope, to, epoch, out, part, worker * part) != Result::ok ||
        receive(scope, from, epoch, in, part, worker * part) != Result::ok) {
      if (scope.index() == 0) atomicAdd(failed, Word{1});
      return;
    }
    compare(theirs, 1 - rank, epoch * 64 + worker, wrong, scope.index(), scope.count());
    scope.sync();
  }
}

enum class By { thread, warp, block };

static __global__ void exchange_by_lane(By by, pw_lane_handle to, pw_lane_handle from, unsigned char* out,
                                        unsigned char* in, Word part, int rank, Word first, unsigned turns,
                                        Word* wrong, Word* failed) {
  using namespace peerway::device;
  if (by == By::thread)
    exchange_by_lanes(Thread{}, thread_of_grid(), to, from, out, in, part, rank, first, turns, wrong, failed);
  else if (by == By::warp)
    exchange_by_lanes(Warp{}, thread_of_grid() / 32, to, from, out, in, part, rank, first, turns, wrong,
                      failed);
  else
    exchange_by_lanes(Block{}, blockIdx.x, to, from, out, in, part, rank, first, turns, wrong, failed);
}

static __global__ void lanes_refuse(pw_lane_handle to, pw_lane_handle from, unsigned char* at,
                                    Word* accepted) {
  using namespace peerway::device;
  if (send(Thread{}, to, 1, at, to.slot_bytes) != Result::out_of_range) ++*accepted;  // twice what fits
  if (send(Thread{}, to, 1, at + 1, 8) != Result::misaligned) ++*accepted;            // no whole word
  if (receive(Thread{}, from, 1, at, 8, to.slot_bytes) != Result::out_of_range) ++*accepted;
}

inline void lanes(Rank& rank, uint64_t bytes) {
  const auto out = rank.ctx.allocate(rank.device, bytes), in = rank.ctx.allocate(rank.device, bytes);
  auto plan = rank.ctx.plan(rank.device)
                  .send(rank.partner, 5, out.span(0, bytes))
                  .receive(rank.partner, 5, in.span(0, bytes))
                  .prepare();
  plan.set_timeout(20s);
  pw_lane_handle to{}, from{};
  peerway::check(pw_plan_get_lane(plan.get(), PW_SEND, rank.partner, 5, &to));
  peerway::check(pw_plan_get_lane(plan.get(), PW_RECEIVE, rank.partner, 5, &from));
  const Words counts(2);
  const unsigned turns = rank.small ? 3 : 50;
  auto* mine = static_cast<unsigned char*>(out.address());
  auto* theirs = static_cast<unsigned char*>(in.address());
  Word first = 1;
  // Parts of whole words of the lane, one after the other: what a worker number moves changes between
  // launches, which follow one another in the stream.
  struct {
    const char* name;
    By by;
    unsigned workers, blocks, threads;
  } const cases[] = {{"a thread", By::thread, 1, 1, 1},
                     {"a warp", By::warp, 1, 1, 32},
                     {"a block", By::block, 1, 1, 256},
                     {"four warps", By::warp, 4, 2, 64},
                     {"five blocks", By::block, 5, 5, 96}};
  for (const auto& test_case : cases) {
    const Word words = bytes / to.unit;
    if (words % test_case.workers != 0) continue;
    rank.meet();
    exchange_by_lane<<<test_case.blocks, test_case.threads, 0, rank.stream>>>(
        test_case.by, to, from, mine, theirs, bytes / test_case.workers, rank.rank, first, turns,
        counts.get(), counts.get() + 1);
    rank.drain();
    rank.say(std::to_string(bytes) + " B over a lane by " + test_case.name, counts[0] == 0 && counts[1] == 0,
             std::to_string(counts[0]) + " bytes wrong, " + std::to_string(counts[1]) + " workers failed");
    first += turns;
  }
  const Words accepted(1);
  lanes_refuse<<<1, 1, 0, rank.stream>>>(to, from, mine, accepted.get());
  rank.drain();
  rank.say(std::to_string(bytes) + " B over a lane: what does not fit is refused", accepted[0] == 0);
  rank.meet();
}

}  // namespace check
