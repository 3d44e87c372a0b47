// A step of a plan: what it moves and waits for, which share of it each piece has, and how a piece counts its
// epochs.
#ifndef PEERWAY_DEVICE_STEP_CUH
#define PEERWAY_DEVICE_STEP_CUH

#include "peerway/device/copy.cuh"
#include "peerway/device/guard.cuh"

namespace peerway::device {

/// What a launch of a plan in a stream depends on: it is met if the word has the value, or if there is no
/// word.
struct Condition {
  const int* word;
  int value;
  PW_ON_DEVICE bool is_met() const { return word == nullptr || *(const volatile int*)word == value; }
};

enum class StepKind : unsigned {
  notify,  ///< store the mark's words after all earlier stores
  ready,   ///< ready to receive: store the mark's words; earlier steps only read the memory that may now be
           ///< overwritten
  wait,    ///< wait for the words of `wait`
  copy,    ///< wait, copy, store the mark
  send_packets,     ///< wait, send as packets
  receive_packets,  ///< wait for packets, store the mark
  send_lines,       ///< like send_packets, as lines; pieces do not share a line
  receive_lines,
};

/// Words whose value in epoch e is base + (e - lag) * by. `word` is null if there are none.
struct StepWords {
  Word* word;
  Word base;
  Word by;
  Word lag;
};

/// One step of a plan. Its pieces share the words of `copy` evenly. In steps that send or receive packets,
/// the other side of the copy is the slots.
struct Step {
  StepKind kind;
  unsigned first;   ///< number of its first piece in the plan
  unsigned pieces;  ///< number of pieces that share it
  unsigned unit;    ///< bytes of a word of the copy
  unsigned share;   ///< words of each piece; the last piece has the rest
  unsigned words;   ///< number of words of the wait or mark: all (notify, ready, wait), one per piece, or one
                    ///< for all pieces
  int rank;         ///< the rank that the step depends on
  unsigned early;   ///< copy: 1 if the source may be read before the wait is over and the epoch is known
  StridedCopy copy;
  long long to_odd_offset;    ///< added to the target's address in odd epochs: two slots in turn
  long long from_odd_offset;  ///< the same for the source
  StepWords wait;
  StepWords mark;
  Word* finished;  ///< counts finished pieces if they share one mark; null if each piece has its own mark
};

constexpr Word kCancelled = 1ull << 63;  ///< set in the epoch of a piece that must not run again

namespace detail {

PW_ON_DEVICE Word value_in(const StepWords& words, Word epoch) {
  return epoch <= words.lag ? words.base : words.base + (epoch - words.lag) * words.by;
}

/// Returns the slot of an epoch: even epochs use the first, odd epochs the one `odd_offset` bytes after it.
template <class Byte>
PW_ON_DEVICE Byte* slot_of_epoch(Byte* first, long long odd_offset, Word epoch) {
  return first + ((epoch & 1) != 0 ? odd_offset : 0);
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

/// The pieces of one step that a worker does: `count` pieces from number `first` on, `stride` apart.
struct Pieces {
  unsigned first, stride, count;
};

/// The epoch counts of a worker's pieces of one step. `before` is the count when the first piece was begun;
/// the others have the same count. Only the first use of `before` waits for the load.
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

  /// Synchronises the scope, then increments the epoch. Called early, while the scope waits for something
  /// else anyway: a store at the end of a kernel would delay the kernel's end.
  template <class Scope>
  PW_ON_DEVICE void increment_in_step(const Scope& scope) const {
    scope.sync();
    increment(scope);
  }
};

/// The memory that a piece stores to: the slots or the target of its epoch. It reads the epoch only in
/// open(), so that loads of data do not wait for the load of the epoch.
class PieceTarget {
 public:
  /// `wait` has the word that this piece waits for, or null if it need not wait; `rank` will store the word.
  /// The target of odd epochs lies `to_odd_offset` bytes after `to`.
  PW_ON_DEVICE PieceTarget(const StepWords& wait, int rank, unsigned char* to, long long to_odd_offset,
                           const Epoch& epoch, const pw_guard& guard)
      : wait_(wait), rank_(rank), to_(to), to_odd_offset_(to_odd_offset), epoch_(epoch), guard_(guard) {}

  PW_ON_DEVICE bool open() {
    if (address != nullptr) return true;
    if (epoch_.cancelled()) return false;
    const Word epoch = epoch_.now();
    if (wait_.word != nullptr) {
      Deadline deadline(guard_, rank_, epoch);
      if (!wait_at_least(wait_.word, value_in(wait_, epoch), deadline)) return false;
    }
    flag = static_cast<unsigned>(epoch);
    address = slot_of_epoch(to_, to_odd_offset_, epoch);
    return true;
  }

  unsigned char* address = nullptr;
  unsigned flag = 0;

 private:
  StepWords wait_;
  int rank_;
  unsigned char* to_;
  long long to_odd_offset_;
  const Epoch& epoch_;
  const pw_guard& guard_;
};

PW_ON_DEVICE PieceTarget target_of_piece(const Step& step, unsigned piece, const Epoch& epoch,
                                         const pw_guard& guard) {
  StepWords wait = step.wait;
  if (wait.word != nullptr && step.words > 1) wait.word += piece;
  return {wait, step.rank, step.copy.to, step.to_odd_offset, epoch, guard};
}

}  // namespace detail
}  // namespace peerway::device

#endif
