// A plan as a device runs it: a table of steps, cut into pieces that blocks share. Each piece counts its own
// epochs in device memory. So launches, replays of a graph and calls in kernels count alike, and no block
// waits for another block of its GPU.
#ifndef PEERWAY_DEVICE_PLAN_CUH
#define PEERWAY_DEVICE_PLAN_CUH

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
PW_ON_DEVICE Share share_of(const Step& step, unsigned piece) {
  const unsigned first = piece * step.share;
  const unsigned last = first + step.share;
  return {first, last < step.copy.words ? last : step.copy.words};
}

/// Stores the mark after everything that the scope has stored. If the pieces share a mark, the last of them
/// to finish stores it.
template <class Scope>
PW_ON_DEVICE void store_mark(const Scope& scope, const Step& step, unsigned piece, Word epoch) {
  scope.sync();
  if (step.mark.word == nullptr || scope.index() != 0) return;
  Word* word = step.mark.word + piece;
  if (step.finished != nullptr) {
    if (fetch_increment(step.finished) + 1 != epoch * step.pieces) return;
    word = step.mark.word;
  }
  store_release(word, value_in(step.mark, epoch));
}

template <class Scope>
PW_ON_DEVICE bool run_copy(const Scope& scope, const Step& step, unsigned piece, Word epoch,
                           Patience& patience) {
  if (step.wait.word != nullptr) {
    const Word* word = step.wait.word + (step.words > 1 ? piece : 0);
    if (!scope.all(wait_at_least(word, value_in(step.wait, epoch), patience))) return false;
  }
  const bool odd = (epoch & 1) != 0;
  unsigned char* to = step.copy.to + (odd ? step.to_turn : 0);
  const unsigned char* from = step.copy.from + (odd ? step.from_turn : 0);
  const Share share = share_of(step, piece);
  if (piece == 0)
    copy_edges(step.copy, to, from, static_cast<unsigned long long>(step.copy.words) * step.unit,
               scope.index(), scope.count());
  copy_words_of(step.unit, step.copy, to, from, share.first, share.last, scope.index(), scope.count());
  store_mark(scope, step, piece, epoch);
  return true;
}

/// A piece's count of its epochs. `before` is the count when the piece was begun; only the first use of it
/// waits for the load.
struct Epoch {
  Word* word;
  Word before;

  PW_ON_DEVICE bool cancelled() const { return (before & kCancelled) != 0; }
  PW_ON_DEVICE Word now() const { return before + 1; }

  /// Increments the epoch once all threads of the scope have read it. Done early, while the scope waits for
  /// something else anyway: a store at the end of a kernel would delay the kernel's end.
  template <class Scope>
  PW_ON_DEVICE void count(const Scope& scope) const {
    scope.sync();
    if (scope.index() == 0 && !cancelled()) store_relaxed(word, now());
  }
};

/// The slots that a piece sends to. They look at the epoch only when they are asked to open, so that the data
/// does not wait for the load of the epoch.
class PieceSlots {
 public:
  PW_ON_DEVICE PieceSlots(const Step& step, unsigned piece, Epoch epoch, const pw_guard& guard)
      : step_(step), piece_(piece), epoch_(epoch), guard_(guard) {}

  PW_ON_DEVICE bool open() {
    if (address != nullptr) return true;
    if (epoch_.cancelled()) return false;
    const Word epoch = epoch_.now();
    if (step_.wait.word != nullptr) {
      Patience patience(guard_, step_.rank, epoch);
      if (!wait_at_least(step_.wait.word + piece_, value_in(step_.wait, epoch), patience)) return false;
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
  Epoch epoch_;
  const pw_guard& guard_;
};

template <typename Unit, class Scope>
PW_ON_DEVICE bool send_piece(const Scope& scope, const Step& step, unsigned piece, Epoch epoch,
                             const pw_guard& guard) {
  const Share share = share_of(step, piece);
  PieceSlots to(step, piece, epoch, guard);
  const bool sent = send_words<Unit>(scope, step.copy, share.first, share.last, to);
  epoch.count(scope);  // here, where no packet waits for it
  return sent;
}

template <class Scope>
PW_ON_DEVICE bool run_send(const Scope& scope, const Step& step, unsigned piece, Epoch epoch,
                           const pw_guard& guard) {
  switch (step.unit) {
    case 8:
      return send_piece<Word>(scope, step, piece, epoch, guard);
    case 4:
      return send_piece<unsigned>(scope, step, piece, epoch, guard);
    case 2:
      return send_piece<unsigned short>(scope, step, piece, epoch, guard);
    default:
      return send_piece<unsigned char>(scope, step, piece, epoch, guard);
  }
}

template <typename Unit, class Scope>
PW_ON_DEVICE bool receive_piece(const Scope& scope, const Step& step, unsigned piece, Epoch epoch,
                                const pw_guard& guard) {
  epoch.count(scope);  // here, where the packets are still on their way
  if (epoch.cancelled()) return false;
  Patience patience(guard, step.rank, epoch.now());
  const Share share = share_of(step, piece);
  const unsigned char* slots = step.copy.from + ((epoch.now() & 1) != 0 ? step.from_turn : 0);
  const bool there = receive_words<Unit>(scope, step.copy, slots, share.first, share.last,
                                         static_cast<unsigned>(epoch.now()), patience);
  if (step.mark.word == nullptr) return there;
  // Every packet has been read, so the slot may be filled again: no store of this rank has to come before.
  if (!scope.all(there)) return false;
  if (scope.index() == 0) store_relaxed(step.mark.word + piece, value_in(step.mark, epoch.now()));
  return true;
}

template <class Scope>
PW_ON_DEVICE bool run_receive(const Scope& scope, const Step& step, unsigned piece, Epoch epoch,
                              const pw_guard& guard) {
  switch (step.unit) {
    case 8:
      return receive_piece<Word>(scope, step, piece, epoch, guard);
    case 4:
      return receive_piece<unsigned>(scope, step, piece, epoch, guard);
    case 2:
      return receive_piece<unsigned short>(scope, step, piece, epoch, guard);
    default:
      return receive_piece<unsigned char>(scope, step, piece, epoch, guard);
  }
}

template <class Scope>
PW_ON_DEVICE bool run_wait(const Scope& scope, const Step& step, Word epoch, Patience& patience) {
  const Word value = value_in(step.wait, epoch);
  bool there = true;
  for (unsigned w = scope.index(); w < step.words && there; w += scope.count())
    there = wait_at_least(step.wait.word + w, value, patience);
  return there;
}

/// Runs one piece in its next epoch and counts it: false for threads that found it cancelled.
template <class Scope>
PW_ON_DEVICE bool run_piece(const Scope& scope, const Step& step, unsigned piece, Epoch epoch,
                            const pw_guard& guard) {
  if (step.kind == StepKind::send_packets) return run_send(scope, step, piece, epoch, guard);
  if (step.kind == StepKind::receive_packets) return run_receive(scope, step, piece, epoch, guard);
  epoch.count(scope);
  if (epoch.cancelled()) return false;
  const Word now = epoch.now();
  Patience patience(guard, step.rank, now);
  if (step.kind == StepKind::wait) return run_wait(scope, step, now, patience);
  if (step.kind == StepKind::copy) return run_copy(scope, step, piece, now, patience);
  const bool ready = step.kind == StepKind::ready;
  for (unsigned w = scope.index(); w < step.words; w += scope.count())
    ready ? store_relaxed(step.mark.word + w, value_in(step.mark, now))
          : store_release(step.mark.word + w, value_in(step.mark, now));
  return true;
}

/// Runs every `workers`-th piece from `first + worker` on, each in its next epoch. False for threads that
/// found one cancelled.
template <class Scope>
PW_ON_DEVICE bool run_pieces(const Scope& scope, const Step* steps, unsigned first, unsigned last,
                             Word* epochs, const pw_guard& guard, unsigned worker, unsigned workers) {
  bool whole = true;
  unsigned s = 0;
  for (unsigned piece = first + worker; piece < last; piece += workers) {
    const Epoch epoch{epochs + piece, load_relaxed(epochs + piece)};
    while (piece >= steps[s].first + steps[s].pieces) ++s;
    if (run_piece(scope, steps[s], piece - steps[s].first, epoch, guard)) continue;
    set_bits(epochs + piece, kCancelled);
    whole = false;
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
