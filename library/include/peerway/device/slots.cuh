// Runs the steps of a plan that send and receive through slots, by packets or by lines.
#ifndef PEERWAY_DEVICE_SLOTS_CUH
#define PEERWAY_DEVICE_SLOTS_CUH

#include "peerway/device/line.cuh"
#include "peerway/device/packet.cuh"
#include "peerway/device/step.cuh"

namespace peerway::device::detail {

/// Returns whether the words have 8 bytes and lie at one or two strides, which is the common case.
PW_ON_DEVICE bool in_blocks(const Step& step) {
  return step.unit == sizeof(Word) && step.copy.inner_levels <= 1;
}

/// Copies the layout of such a step with a number of levels that the compiler knows, which halves the time.
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

/// A share of lines begins at the first word of a line.
PW_ON_DEVICE Lines lines_in(const Step& step, const Share& share) {
  return {share.first / kWordsOfLine, lines_of(share.last), step.copy.words};
}

/// `here` is a copy of `step` in registers: `step` itself is read only where levels of a copy are indexed at
/// run time.
template <class Scope>
PW_ON_DEVICE bool send_share(const Scope& scope, const Step& step, const Step& here, const Share& share,
                             PieceTarget& to) {
  const StridedCopy& copy = step.copy;
  if (here.kind == StepKind::send_lines)
    return in_blocks(here)
               ? send_lines<1>(scope, WordsOf<Word>{}, of_blocks(here.copy), lines_in(here, share), to)
               : send_lines<1>(scope, WordsUpTo8{here.unit}, copy, lines_in(here, share), to);
  switch (here.unit) {
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
PW_ON_DEVICE bool run_send(const Scope& scope, const Step& step, const Step& here, unsigned piece,
                           const Epoch& epoch, const pw_guard& guard) {
  PieceTarget to = target_of_piece(here, piece, epoch, guard);
  const bool sent = send_share(scope, step, here, share_of(here, piece), to);
  epoch.increment_in_step(scope);  // here, because no packet waits for it
  return sent;
}

template <class Scope>
PW_ON_DEVICE bool receive_share(const Scope& scope, const Step& step, const Step& here, const Share& share,
                                const unsigned char* slots, unsigned flag, Deadline& deadline) {
  const StridedCopy& copy = step.copy;
  if (here.kind == StepKind::receive_lines) {
    const Lines lines = lines_in(here, share);
    return in_blocks(here)
               ? receive_lines<1>(scope, WordsOf<Word>{}, of_blocks(here.copy), slots, lines, flag, deadline)
               : receive_lines<1>(scope, WordsUpTo8{here.unit}, copy, slots, lines, flag, deadline);
  }
  switch (here.unit) {
    case 8:
      return receive_words<Word>(scope, copy, slots, share.first, share.last, flag, deadline);
    case 4:
      return receive_words<unsigned>(scope, copy, slots, share.first, share.last, flag, deadline);
    case 2:
      return receive_words<unsigned short>(scope, copy, slots, share.first, share.last, flag, deadline);
    default:
      return receive_words<unsigned char>(scope, copy, slots, share.first, share.last, flag, deadline);
  }
}

template <class Scope>
PW_ON_DEVICE bool run_receive(const Scope& scope, const Step& step, const Step& here, unsigned piece,
                              const Epoch& epoch, const pw_guard& guard) {
  epoch.increment_in_step(scope);  // here, while the packets are still on their way
  if (epoch.cancelled()) return false;
  Deadline deadline(guard, here.rank, epoch.now());
  const unsigned char* slots = slot_of_epoch(here.copy.from, here.from_odd_offset, epoch.now());
  const bool there = receive_share(scope, step, here, share_of(here, piece), slots,
                                   static_cast<unsigned>(epoch.now()), deadline);
  if (here.mark.word == nullptr) return there;
  // Every packet has been read, so the slot may be filled again; no earlier store of this rank must precede
  // that.
  if (!scope.all(there)) return false;
  if (scope.index() == 0) store_relaxed(here.mark.word + piece, value_in(here.mark, epoch.now()));
  return true;
}

}  // namespace peerway::device::detail

#endif
