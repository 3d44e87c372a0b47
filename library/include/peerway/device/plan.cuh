// Runs a plan on a device: a table of steps, cut into pieces that blocks share. Each piece counts its own
// epochs in device memory. So launches, replays of a graph and calls in kernels all count alike, and no block
// waits for another block of its GPU.
#ifndef PEERWAY_DEVICE_PLAN_CUH
#define PEERWAY_DEVICE_PLAN_CUH

#include "peerway/device/slots.cuh"
#include "peerway/device/step.cuh"
#include "peerway/device/times.cuh"

namespace peerway::device {

namespace detail {

/// Stores the marks of the pieces after everything that the scope's threads have stored; the threads must
/// have synchronised since. If all pieces share a mark, the last piece to finish stores it.
template <class Scope>
PW_ON_DEVICE void store_marks(const Scope& scope, const Step& step, const Pieces& pieces, Word epoch) {
  if (step.mark.word == nullptr || scope.index() != 0) return;
  const Word value = value_in(step.mark, epoch);
  if (step.finished != nullptr) {
    if (pieces.count == step.pieces)
      store_relaxed(step.finished, epoch * step.pieces);
    else if (fetch_add(step.finished, pieces.count) + pieces.count != epoch * step.pieces)
      return;
    store_release(step.mark.word, value);
    return;
  }
  fence();
  for (unsigned n = 0; n < pieces.count; ++n)
    store_relaxed(step.mark.word + pieces.first + n * pieces.stride, value);
}

/// Returns the words of a copy that a worker with these pieces copies: those of its piece or, if there are
/// fewer workers than pieces, an equal part of all words.
PW_ON_DEVICE Share share_of(const Step& step, const Pieces& pieces) {
  return pieces.stride >= step.pieces
             ? share_of(step, pieces.first, step.share)
             : share_of(step, pieces.first, (step.copy.words + pieces.stride - 1) / pieces.stride);
}

/// Copies a worker's words, whatever their layout.
template <class Scope>
PW_ON_DEVICE bool copy_any(const Scope& scope, const Step& step, const Pieces& pieces, const Epoch& epoch,
                           PieceTarget& to) {
  if (step.early == 0 && !to.open()) return false;
  const unsigned char* const from =
      step.early == 0 ? slot_of_epoch(step.copy.from, step.from_odd_offset, epoch.now()) : step.copy.from;
  const Share share = share_of(step, pieces);
  if (!copy_words(AnyWords{step.unit}, step.copy, to, from, share.first, share.last, scope.index(),
                  scope.count()))
    return false;
  if (pieces.first != 0 || step.copy.head + step.copy.tail <= scope.index()) return true;
  if (!to.open()) return false;
  copy_edges(step.copy, to.address, from, static_cast<unsigned long long>(step.copy.words) * step.unit,
             scope.index(), scope.count());
  return true;
}

/// Returns whether copy_flat() can do the copy. In copy_flat() nothing waits for a load of the step table.
PW_ON_DEVICE bool is_flat(const Step& step) {
  const StridedCopy& copy = step.copy;
  return step.early != 0 && step.unit >= sizeof(Word) && copy.inner_levels == 0 &&
         copy.head + copy.tail == 0 && copy.outer_to == step.unit && copy.outer_from == step.unit;
}

/// Copies all pieces of a worker together: one wait (the words of all pieces are stored together, once the
/// target may be written), one range of words, one fence. `here` is a copy of `step` in registers.
template <class Scope>
PW_ON_DEVICE bool run_copy(const Scope& scope, const Step& step, const Step& here, const Pieces& pieces,
                           const Epoch& epoch, const pw_guard& guard) {
  PieceTarget to = target_of_piece(here, pieces.first, epoch, guard);
  bool there;
  if (is_flat(here)) {
    const Share share = share_of(here, pieces);
    there = here.unit == sizeof(Word16)
                ? copy_flat<Word16>(to, here.copy.from, share.first, share.last, scope.index(), scope.count())
                : copy_flat<Word>(to, here.copy.from, share.first, share.last, scope.index(), scope.count());
  } else {
    there = copy_any(scope, step, pieces, epoch, to);
  }
  const bool all = scope.all(there && !epoch.cancelled());
  if (all) store_marks(scope, here, pieces, epoch.now());
  epoch.increment(scope);
  return all;
}

template <class Scope>
PW_ON_DEVICE bool run_wait(const Scope& scope, const Step& step, Word epoch, Deadline& deadline) {
  const Word value = value_in(step.wait, epoch);
  bool there = true;
  for (unsigned w = scope.index(); w < step.words && there; w += scope.count())
    there = wait_at_least(step.wait.word + w, value, deadline);
  return there;
}

/// Runs pieces of one step in their next epoch and increments their counts. Returns false in threads that
/// found the plan cancelled. A step that is not a copy is a single piece.
template <class Scope>
PW_ON_DEVICE bool run_step(const Scope& scope, const Step& step, const Step& here, const Pieces& pieces,
                           const Epoch& epoch, const pw_guard& guard) {
  if (here.kind == StepKind::send_packets || here.kind == StepKind::send_lines)
    return run_send(scope, step, here, pieces.first, epoch, guard);
  if (here.kind == StepKind::receive_packets || here.kind == StepKind::receive_lines)
    return run_receive(scope, step, here, pieces.first, epoch, guard);
  if (here.kind == StepKind::copy) return run_copy(scope, step, here, pieces, epoch, guard);
  epoch.increment_in_step(scope);
  if (epoch.cancelled()) return false;
  const Word now = epoch.now();
  Deadline deadline(guard, here.rank, now);
  if (here.kind == StepKind::wait) return run_wait(scope, here, now, deadline);
  const bool ready = here.kind == StepKind::ready;
  for (unsigned w = scope.index(); w < here.words; w += scope.count())
    ready ? store_relaxed(here.mark.word + w, value_in(here.mark, now))
          : store_release(here.mark.word + w, value_in(here.mark, now));
  return true;
}

/// Returns whether a piece after the first was cancelled. The first piece's count is at `word`.
PW_ON_DEVICE bool any_cancelled(const Word* word, const Pieces& pieces) {
  for (unsigned n = 1; n < pieces.count; ++n)
    if ((load_relaxed(word + n * pieces.stride) & kCancelled) != 0) return true;
  return false;
}

/// Runs every `workers`-th piece from `first + worker` on, each in its next epoch. Returns false in threads
/// that found a piece cancelled.
template <class Scope>
PW_ON_DEVICE bool run_pieces(const Scope& scope, const Step* steps, unsigned first, unsigned last,
                             Word* epochs, const pw_guard& guard, unsigned worker, unsigned workers) {
  bool whole = true;
  const Step* step = steps;
  for (unsigned piece = first + worker; piece < last;) {
    Word* const word = epochs + piece;
    while (piece >= step->first + step->pieces) ++step;
    // Loads every field of the step that is used, so that these loads wait neither for one another nor for
    // the load of the epoch.
    const Step here = *step;
    const Word before = load_relaxed(word);
    const unsigned remaining = here.first + here.pieces - piece;
    const unsigned count =
        here.kind == StepKind::copy && remaining > workers ? (remaining - 1) / workers + 1 : 1;
    const Pieces pieces{piece - here.first, workers, count};
    if (any_cancelled(word, pieces) ||
        !run_step(scope, *step, here, pieces, Epoch{word, before, workers, count}, guard)) {
      for (unsigned n = 0; n < count; ++n) set_bits(word + n * workers, kCancelled);
      whole = false;
    }
    piece += count * workers;
  }
  return whole;
}

/// Returns where the plan's times are kept, or null if the plan is not traced.
PW_ON_DEVICE StepTimes* times_of(const pw_plan_handle& plan) {
  return plan.times == 0 ? nullptr : reinterpret_cast<StepTimes*>(plan.epoch + plan.times);
}

/// Calls `run`, and records its times if `times` is not null.
template <class Run, class Scope>
PW_ON_DEVICE void run_timed(const Scope& scope, StepTimes* times, unsigned part, unsigned workers,
                            Run&& run) {
  if (times != nullptr) note_begin(scope, times, part, workers);
  run();
  if (times != nullptr) note_end(scope, times, part, workers);
}

}  // namespace detail

/// Does this worker's part of the plan's next start. The plan has been started once all `workers` have called
/// it. A worker is a block of one running kernel (a single worker may also be a warp or a thread) and keeps
/// its number from start to start. Does nothing if the plan was cancelled or a wait of it timed out. Returns
/// ok, cancelled, timeout or other_version.
template <class Scope>
PW_ON_DEVICE Result start(const Scope& scope, const pw_plan_handle& plan, unsigned worker = 0,
                          unsigned workers = 1) {
  if (!detail::is_of_this_version(plan)) return Result::other_version;
  bool whole = false;
  detail::run_timed(scope, detail::times_of(plan), StepTimes::in_kernels, workers, [&] {
    whole = detail::run_pieces(scope, static_cast<const Step*>(plan.steps), 0, plan.start_pieces, plan.epoch,
                               plan.guard, worker, workers);
  });
  return detail::result_of(scope, whole, plan.guard);
}

/// Does this worker's part of the finish that belongs to the start. After ok, what this worker received is
/// visible to its scope. Returns what start() can return.
template <class Scope>
PW_ON_DEVICE Result finish(const Scope& scope, const pw_plan_handle& plan, unsigned worker = 0,
                           unsigned workers = 1) {
  if (!detail::is_of_this_version(plan)) return Result::other_version;
  bool whole = false;
  detail::run_timed(scope, detail::times_of(plan), StepTimes::in_kernels + 1, workers, [&] {
    whole =
        detail::run_pieces(scope, static_cast<const Step*>(plan.steps), plan.start_pieces,
                           plan.start_pieces + plan.finish_pieces, plan.epoch, plan.guard, worker, workers);
  });
  return detail::result_of(scope, whole, plan.guard);
}

}  // namespace peerway::device

#endif
