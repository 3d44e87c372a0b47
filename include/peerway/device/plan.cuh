// A plan as a device runs it: a table of steps, cut into pieces that blocks share. Each piece counts its own
// epochs in device memory. So launches, replays of a graph and calls in kernels count alike, and no block
// waits for another block of its GPU.
#ifndef PEERWAY_DEVICE_PLAN_CUH
#define PEERWAY_DEVICE_PLAN_CUH

#include "peerway/device/line.cuh"
#include "peerway/device/packet.cuh"
#include "peerway/device/times.cuh"

namespace peerway::device {

enum class StepKind : unsigned {
  raise,  ///< store the mark's words after all earlier stores
  ready,  ///< ready to receive: store the mark's words; earlier steps only read what may now be written
  wait,   ///< wait for the words of `wait`
  copy,   ///< wait, copy, store the mark
  send_packets,     ///< wait, send by packets
  receive_packets,  ///< wait for packets, store the mark
  send_lines,       ///< the same by lines, which pieces do not share
  receive_lines,
};

/// Words whose value in epoch e is base + (e - lag) * by. Null if there are none.
struct StepWords {
  Word* word;
  Word base;
  Word by;
  Word lag;
};

/// One step of a plan. The pieces share the words of `copy` evenly. For packets the other side of the copy is
/// the slots.
struct Step {
  StepKind kind;
  unsigned first;   ///< number of its first piece in the plan
  unsigned pieces;  ///< number of pieces that share it
  unsigned unit;    ///< bytes of a word of the copy
  unsigned share;   ///< words of each piece; the last piece has the rest
  unsigned words;   ///< of the wait or mark: all (raise, ready, wait), or one a piece, or one for all pieces
  int rank;         ///< the rank that it depends on
  unsigned early;   ///< copy: 1 if the source may be read before the wait is over and the epoch is known
  StridedCopy copy;
  long long to_turn;    ///< added to the target's address in odd epochs: two slots in turn
  long long from_turn;  ///< the same for the source
  StepWords wait;
  StepWords mark;
  Word* finished;  ///< counts finished pieces if they share one mark; null if each has its own
};

constexpr Word kCancelled = 1ull << 63;  ///< set in the epoch of a piece that must not run again

namespace detail {

PW_ON_DEVICE Word value_in(const StepWords& words, Word epoch) {
  return epoch <= words.lag ? words.base : words.base + (epoch - words.lag) * words.by;
}

/// The words of a copy that belong to a piece.
struct Share {
  unsigned first, last;
};
PW_ON_DEVICE Share share_of(const Step& step, unsigned piece, unsigned share) {
  const unsigned first = piece * share;
  const unsigned last = first + share;
  return {first, last < step.copy.words ? last : step.copy.words};
}
PW_ON_DEVICE Share share_of(const Step& step, unsigned piece) { return share_of(step, piece, step.share); }

/// The pieces of one step that a worker does: `count` of them from number `first` on, `stride` apart.
struct Pieces {
  unsigned first, stride, count;
};

/// The count of epochs of a worker's pieces of one step. `before` is the count when the first of them was
/// begun, and theirs, too; only the first use of it waits for the load.
struct Epoch {
  Word* word;
  Word before;
  unsigned stride, count;

  PW_ON_DEVICE bool cancelled() const { return (before & kCancelled) != 0; }
  PW_ON_DEVICE Word now() const { return before + 1; }

  /// Increments the epoch, once all threads of the scope have read it.
  template <class Scope>
  PW_ON_DEVICE void increment(const Scope& scope) const {
    if (cancelled()) return;
    for (unsigned n = scope.index(); n < count; n += scope.count()) store_relaxed(word + n * stride, now());
  }

  /// Waits until they have, and increments it. Done early, while the scope waits for something else anyway: a
  /// store at the end of a kernel would delay the kernel's end.
  template <class Scope>
  PW_ON_DEVICE void increment_in_step(const Scope& scope) const {
    scope.sync();
    increment(scope);
  }
};

/// What a piece stores to: the slots or the target of its epoch. It looks at the epoch only when it is asked
/// to open, so that loads of data do not wait for that of the epoch.
class PieceTarget {
 public:
  PW_ON_DEVICE PieceTarget(const Step& step, unsigned piece, const Epoch& epoch, const pw_guard& guard)
      : step_(step), piece_(piece), epoch_(epoch), guard_(guard) {}

  PW_ON_DEVICE bool open() {
    if (address != nullptr) return true;
    if (epoch_.cancelled()) return false;
    const Word epoch = epoch_.now();
    if (step_.wait.word != nullptr) {
      Patience patience(guard_, step_.rank, epoch);
      const Word* word = step_.wait.word + (step_.words > 1 ? piece_ : 0);
      if (!wait_at_least(word, value_in(step_.wait, epoch), patience)) return false;
    }
    flag = static_cast<unsigned>(epoch);
    address = step_.copy.to + ((epoch & 1) != 0 ? step_.to_turn : 0);
    return true;
  }

  unsigned char* address = nullptr;
  unsigned flag = 0;

 private:
  const Step& step_;
  unsigned piece_;
  const Epoch& epoch_;
  const pw_guard& guard_;
};

/// Stores the marks of the pieces after everything that the scope's threads have stored; they have met since.
/// If all pieces share a mark, the last of them to finish stores it.
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

/// The words of a copy that a worker with these pieces has: those of its piece, or, where there are fewer
/// workers than pieces, an equal part of all.
PW_ON_DEVICE Share share_of(const Step& step, const Pieces& pieces) {
  return pieces.stride >= step.pieces
             ? share_of(step, pieces.first, step.share)
             : share_of(step, pieces.first, (step.copy.words + pieces.stride - 1) / pieces.stride);
}

/// Copies a worker's words, of any layout.
template <class Scope>
PW_ON_DEVICE bool copy_any(const Scope& scope, const Step& step, const Pieces& pieces, const Epoch& epoch,
                           PieceTarget& to) {
  if (step.early == 0 && !to.open()) return false;
  const unsigned char* from = step.copy.from;
  if (step.early == 0 && (epoch.now() & 1) != 0) from += step.from_turn;
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

/// Whether copy_flat() can do it, of which nothing waits for a load of the table.
PW_ON_DEVICE bool is_flat(const Step& step) {
  const StridedCopy& copy = step.copy;
  return step.early != 0 && step.unit >= sizeof(Word) && copy.inner_levels == 0 &&
         copy.head + copy.tail == 0 && copy.outer_to == step.unit && copy.outer_from == step.unit;
}

/// A worker does all its pieces of a copy together: one wait (the words of all pieces are stored together,
/// once the target may be written), one range of words, one fence. `here` has the fields of `step`.
template <class Scope>
PW_ON_DEVICE bool run_copy(const Scope& scope, const Step& step, const Step& here, const Pieces& pieces,
                           const Epoch& epoch, const pw_guard& guard) {
  PieceTarget to(here, pieces.first, epoch, guard);
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

/// Whether the words, of 8 bytes, lie at one or two strides, as most do.
PW_ON_DEVICE bool in_blocks(const Step& step) {
  return step.unit == sizeof(Word) && step.copy.inner_levels <= 1;
}

/// Such words, in a form of which the number of levels is known when the code is compiled: it takes half the
/// time.
PW_ON_DEVICE StridedCopy of_blocks(const StridedCopy& given) {
  StridedCopy copy{};
  copy.to = given.to;
  copy.from = given.from;
  copy.inner_levels = 1;
  copy.inner[0] = given.inner_levels == 0 ? Level{{1, 1, 0}, 0, 0} : given.inner[0];
  copy.outer_to = given.outer_to;
  copy.outer_from = given.outer_from;
  return copy;
}

/// A share of lines begins with one.
PW_ON_DEVICE Lines lines_in(const Step& step, const Share& share) {
  return {share.first / kWordsOfLine, lines_of(share.last), step.copy.words};
}

template <class Scope>
PW_ON_DEVICE bool send_share(const Scope& scope, const Step& step, const Share& share, PieceTarget& to) {
  const StridedCopy& copy = step.copy;
  if (step.kind == StepKind::send_lines)
    return in_blocks(step) ? send_lines<1>(scope, WordsOf8{}, of_blocks(copy), lines_in(step, share), to)
                           : send_lines<1>(scope, SizedWords{step.unit}, copy, lines_in(step, share), to);
  switch (step.unit) {
    case 8:
      return send_words<Word>(scope, copy, share.first, share.last, to);
    case 4:
      return send_words<unsigned>(scope, copy, share.first, share.last, to);
    case 2:
      return send_words<unsigned short>(scope, copy, share.first, share.last, to);
    default:
      return send_words<unsigned char>(scope, copy, share.first, share.last, to);
  }
}

template <class Scope>
PW_ON_DEVICE bool run_send(const Scope& scope, const Step& step, unsigned piece, const Epoch& epoch,
                           const pw_guard& guard) {
  PieceTarget to(step, piece, epoch, guard);
  const bool sent = send_share(scope, step, share_of(step, piece), to);
  epoch.increment_in_step(scope);  // here, where no packet waits for it
  return sent;
}

template <class Scope>
PW_ON_DEVICE bool receive_share(const Scope& scope, const Step& step, const Share& share,
                                const unsigned char* slots, unsigned flag, Patience& patience) {
  const StridedCopy& copy = step.copy;
  if (step.kind == StepKind::receive_lines) {
    const Lines lines = lines_in(step, share);
    return in_blocks(step)
               ? receive_lines<1>(scope, WordsOf8{}, of_blocks(copy), slots, lines, flag, patience)
               : receive_lines<1>(scope, SizedWords{step.unit}, copy, slots, lines, flag, patience);
  }
  switch (step.unit) {
    case 8:
      return receive_words<Word>(scope, copy, slots, share.first, share.last, flag, patience);
    case 4:
      return receive_words<unsigned>(scope, copy, slots, share.first, share.last, flag, patience);
    case 2:
      return receive_words<unsigned short>(scope, copy, slots, share.first, share.last, flag, patience);
    default:
      return receive_words<unsigned char>(scope, copy, slots, share.first, share.last, flag, patience);
  }
}

template <class Scope>
PW_ON_DEVICE bool run_receive(const Scope& scope, const Step& step, unsigned piece, const Epoch& epoch,
                              const pw_guard& guard) {
  epoch.increment_in_step(scope);  // here, where the packets are still on their way
  if (epoch.cancelled()) return false;
  Patience patience(guard, step.rank, epoch.now());
  const unsigned char* slots = step.copy.from + ((epoch.now() & 1) != 0 ? step.from_turn : 0);
  const bool there =
      receive_share(scope, step, share_of(step, piece), slots, static_cast<unsigned>(epoch.now()), patience);
  if (step.mark.word == nullptr) return there;
  // Every packet has been read, so the slot may be filled again: no store of this rank has to come before.
  if (!scope.all(there)) return false;
  if (scope.index() == 0) store_relaxed(step.mark.word + piece, value_in(step.mark, epoch.now()));
  return true;
}

template <class Scope>
PW_ON_DEVICE bool run_wait(const Scope& scope, const Step& step, Word epoch, Patience& patience) {
  const Word value = value_in(step.wait, epoch);
  bool there = true;
  for (unsigned w = scope.index(); w < step.words && there; w += scope.count())
    there = wait_at_least(step.wait.word + w, value, patience);
  return there;
}

/// Runs pieces of one step in their next epoch and counts it: false for threads that found them cancelled. Of
/// a step that is no copy it is one piece.
template <class Scope>
PW_ON_DEVICE bool run_step(const Scope& scope, const Step& step, const Step& here, const Pieces& pieces,
                           const Epoch& epoch, const pw_guard& guard) {
  if (step.kind == StepKind::send_packets || step.kind == StepKind::send_lines)
    return run_send(scope, step, pieces.first, epoch, guard);
  if (step.kind == StepKind::receive_packets || step.kind == StepKind::receive_lines)
    return run_receive(scope, step, pieces.first, epoch, guard);
  if (step.kind == StepKind::copy) return run_copy(scope, step, here, pieces, epoch, guard);
  epoch.increment_in_step(scope);
  if (epoch.cancelled()) return false;
  const Word now = epoch.now();
  Patience patience(guard, step.rank, now);
  if (step.kind == StepKind::wait) return run_wait(scope, step, now, patience);
  const bool ready = step.kind == StepKind::ready;
  for (unsigned w = scope.index(); w < step.words; w += scope.count())
    ready ? store_relaxed(step.mark.word + w, value_in(step.mark, now))
          : store_release(step.mark.word + w, value_in(step.mark, now));
  return true;
}

/// Whether one of the pieces after the first was cancelled, whose count is `*word`.
PW_ON_DEVICE bool any_cancelled(const Word* word, const Pieces& pieces) {
  for (unsigned n = 1; n < pieces.count; ++n)
    if ((load_relaxed(word + n * pieces.stride) & kCancelled) != 0) return true;
  return false;
}

/// Runs every `workers`-th piece from `first + worker` on, each in its next epoch. False for threads that
/// found one cancelled.
template <class Scope>
PW_ON_DEVICE bool run_pieces(const Scope& scope, const Step* steps, unsigned first, unsigned last,
                             Word* epochs, const pw_guard& guard, unsigned worker, unsigned workers) {
  bool whole = true;
  const Step* step = steps;
  for (unsigned piece = first + worker; piece < last;) {
    Word* const word = epochs + piece;
    while (piece >= step->first + step->pieces) ++step;
    // All that is used of it, in loads that wait neither for one another nor for that of the epoch.
    const Step here = *step;
    const Word before = load_relaxed(word);
    const unsigned left = here.first + here.pieces - piece;
    const unsigned count = here.kind == StepKind::copy && left > workers ? (left - 1) / workers + 1 : 1;
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

/// The times of a plan that is traced; null for any other.
PW_ON_DEVICE StepTimes* times_of(const pw_plan_handle& plan) {
  return plan.times == 0 ? nullptr : reinterpret_cast<StepTimes*>(plan.epoch + plan.times);
}

/// Runs the pieces, and has their times taken where there is a place for them.
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
