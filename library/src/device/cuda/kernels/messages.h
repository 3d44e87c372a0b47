// Plans that consist of messages by packets or lines only, of words of 8 bytes in blocks at one stride: most
// halos. Each block of the grid finds all that it needs in one cache line of the kernel's parameters. Reading
// a step from the table in device memory would take half as long as the whole trip to the peer, and the code
// for any step is so much longer that it takes a third of that time again.
#pragma once

#include "peerway/device/plan.cuh"

namespace pw::cuda {

// How the words travel: the same way for all messages of a kernel, because code for both would be slower.
enum class Form { packets, lines };

// A send or receive of packets or lines, in pieces of `share`.
struct alignas(64) PlanMessage {
  unsigned char* memory;          // word 0
  unsigned char* slots;           // its packet or line, in even epochs
  peerway::device::Word* credit;  // a word for each piece, how far the receiver is; null: in step anyway
  int stride;                     // bytes from block to block of words
  unsigned turn;                  // lines of 128 bytes by which the slots lie further in odd epochs
  unsigned block, magic;          // words in a block, and how to divide by that (Divisor)
  unsigned count, share;          // packets or lines
  unsigned words;
  int rank;             // at the other end
  unsigned char shift;  // of the Divisor
  unsigned char sends;  // 1: from memory to slots; 0: the other way
};
static_assert(sizeof(PlanMessage) == 64, "one cache line of constants");

// The offset in bytes of the slots of odd epochs.
PW_ON_DEVICE long long odd_offset_of(const PlanMessage& message) {
  return static_cast<long long>(message.turn) * static_cast<long long>(sizeof(peerway::device::Line));
}

// The slots in which a piece sends: those of the epoch before the last must have been read.
PW_ON_DEVICE peerway::device::detail::PieceTarget slots_of(const PlanMessage& message, unsigned piece,
                                                           const peerway::device::detail::Epoch& epoch,
                                                           const pw_guard& guard) {
  peerway::device::StepWords credit{message.credit, 0, 1, 2};
  if (credit.word != nullptr) credit.word += piece;
  return {credit, message.rank, message.slots, odd_offset_of(message), epoch, guard};
}

// The words of a message in memory.
PW_ON_DEVICE peerway::device::StridedCopy copy_of(const PlanMessage& message) {
  peerway::device::StridedCopy copy{};
  copy.to = message.memory;
  copy.from = message.memory;
  copy.inner_levels = 1;
  copy.inner[0] = {{message.block, message.magic, message.shift},
                   sizeof(peerway::device::Word),
                   sizeof(peerway::device::Word)};
  copy.outer_to = message.stride;
  copy.outer_from = message.stride;
  return copy;
}

template <Form form, unsigned K, class Scope>
PW_ON_DEVICE bool send_piece(const Scope& scope, const PlanMessage& message, unsigned first, unsigned last,
                             peerway::device::detail::PieceTarget& slots) {
  namespace detail = peerway::device::detail;
  if constexpr (form == Form::lines)
    return detail::send_lines<K>(scope, detail::WordsOf<peerway::device::Word>{}, copy_of(message),
                                 {first, last, message.words}, slots);
  else
    return detail::send_words<peerway::device::Word>(scope, copy_of(message), first, last, slots);
}

template <Form form, unsigned K, class Scope>
PW_ON_DEVICE bool receive_piece(const Scope& scope, const PlanMessage& message, unsigned first, unsigned last,
                                peerway::device::Word epoch, const pw_guard& guard) {
  namespace detail = peerway::device::detail;
  detail::Deadline deadline(guard, message.rank, epoch);
  const unsigned char* slots = detail::slot_of_epoch(message.slots, odd_offset_of(message), epoch);
  const auto flag = static_cast<unsigned>(epoch);
  if constexpr (form == Form::lines)
    return detail::receive_lines<K>(scope, detail::WordsOf<peerway::device::Word>{}, copy_of(message), slots,
                                    {first, last, message.words}, flag, deadline);
  else
    return detail::receive_words<peerway::device::Word>(scope, copy_of(message), slots, first, last, flag,
                                                        deadline);
}

// A piece of the message in its next epoch, after what `in_order` waits for. The message is looked at before:
// what comes as parameters of a kernel is there, but the first look at each line of it takes long.
template <Form form, unsigned K, class Scope, class Order>
PW_ON_DEVICE bool run_piece(const Scope& scope, const PlanMessage& given, unsigned piece,
                            peerway::device::Word* count, const pw_guard& guard, const Order& in_order) {
  namespace detail = peerway::device::detail;
  const PlanMessage message = given;
  const unsigned first = piece * message.share;
  const unsigned last = first + message.share < message.count ? first + message.share : message.count;
  if (message.sends != 0) {
    in_order();
    const detail::Epoch epoch{count, detail::load_relaxed(count), 1, 1};
    detail::PieceTarget slots = slots_of(message, piece, epoch, guard);
    const bool sent = send_piece<form, K>(scope, message, first, last, slots);
    epoch.increment_in_step(scope);  // here, where nothing waits for it
    return sent && !epoch.cancelled();
  }
  in_order();
  const detail::Epoch epoch{count, detail::load_relaxed(count), 1, 1};
  epoch.increment_in_step(scope);  // here, where the message is still on its way
  if (epoch.cancelled()) return false;
  const bool there = receive_piece<form, K>(scope, message, first, last, epoch.now(), guard);
  if (message.credit == nullptr) return there;
  // All has been read, so the slot may be filled again: no store of this rank has to come before.
  if (!scope.all(there)) return false;
  if (scope.index() == 0) detail::store_relaxed(message.credit + piece, epoch.now());
  return true;
}

// Every `workers`-th piece from `first + worker` on. PlanMessage m has the pieces before number `ends[m]`,
// and after those of the message before. Pieces of no more lines than the threads have pairs are done by
// shorter code.
template <Form form, class Scope, class Order>
PW_ON_DEVICE void run_messages(const Scope& scope, const PlanMessage* messages, const unsigned* ends,
                               unsigned first, unsigned last, peerway::device::Word* counts,
                               const pw_guard& guard, unsigned worker, unsigned workers,
                               const Order& in_order) {
  constexpr unsigned kMany = peerway::device::detail::kInFlight;
  unsigned m = 0, before = first;
  for (unsigned p = first + worker; p < last; p += workers) {
    for (; p >= ends[m]; ++m) before = ends[m];
    const PlanMessage& message = messages[m];
    const bool few =
        form == Form::packets || message.share * peerway::device::kThreadsOfLine <= scope.count();
    const bool whole = few ? run_piece<form, 1>(scope, message, p - before, counts + p, guard, in_order)
                           : run_piece<form, kMany>(scope, message, p - before, counts + p, guard, in_order);
    if (!whole) peerway::device::detail::set_bits(counts + p, peerway::device::kCancelled);
  }
}

}  // namespace pw::cuda
