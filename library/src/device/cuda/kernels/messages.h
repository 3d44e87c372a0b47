// Runs plans that consist only of messages by packets or lines, of 8-byte words in blocks at one stride, as
// most halos do. Each block of the grid finds all that it needs in one cache line of the kernel's parameters.
// Reading a step from the table in device memory would take half as long as the whole trip to the peer. The
// code for general steps is also so much longer that it would add a third of that time.
#pragma once

#include "peerway/device/plan.cuh"

namespace pw::cuda {

// How the words travel. All messages of a kernel use one form, because code for both would take longer to
// run.
enum class Form { packets, lines };

// A send or receive of `count` packets or lines, in pieces of `share`.
struct alignas(64) PlanMessage {
  unsigned char* memory;          // address of word 0
  unsigned char* slots;           // address of its packet or line in even epochs
  peerway::device::Word* credit;  // one word for each piece: the epoch that the receiver has read; null: not
                                  // needed
  int stride;                     // bytes from one block of words to the next
  unsigned turn;                  // distance of the slots of odd epochs, in lines of 128 bytes
  unsigned block, magic;          // words per block, and the magic number to divide by it (Divisor)
  unsigned count, share;          // packets or lines
  unsigned words;
  int rank;             // rank at the other end
  unsigned char shift;  // of the Divisor
  unsigned char sends;  // 1: sends from memory to slots; 0: receives from slots to memory
};
static_assert(sizeof(PlanMessage) == 64, "one cache line of constants");

// Returns the distance in bytes of the slots of odd epochs.
PW_ON_DEVICE long long odd_offset_of(const PlanMessage& message) {
  return static_cast<long long>(message.turn) * static_cast<long long>(sizeof(peerway::device::Line));
}

// Returns the slots to which a piece sends; they open once the receiver has read those of the epoch before
// the last.
PW_ON_DEVICE peerway::device::detail::PieceTarget slots_of(const PlanMessage& message, unsigned piece,
                                                           const peerway::device::detail::Epoch& epoch,
                                                           const pw_guard& guard) {
  peerway::device::StepWords credit{message.credit, 0, 1, 2};
  if (credit.word != nullptr) credit.word += piece;
  return {credit, message.rank, message.slots, odd_offset_of(message), epoch, guard};
}

// Describes the words of a message in memory.
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

// Runs a piece of the message in its next epoch, after what `in_order` waits for. It reads the message before
// that: kernel parameters are available early, but the first access to each line of them takes long.
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
    epoch.increment_in_step(scope);  // here, because nothing waits for it
    return sent && !epoch.cancelled();
  }
  in_order();
  const detail::Epoch epoch{count, detail::load_relaxed(count), 1, 1};
  epoch.increment_in_step(scope);  // here, while the message is still on its way
  if (epoch.cancelled()) return false;
  const bool there = receive_piece<form, K>(scope, message, first, last, epoch.now(), guard);
  if (message.credit == nullptr) return there;
  // Everything has been read, so the slot may be filled again; no earlier store of this rank must precede
  // that.
  if (!scope.all(there)) return false;
  if (scope.index() == 0) detail::store_relaxed(message.credit + piece, epoch.now());
  return true;
}

// Runs every `workers`-th piece from `first + worker` on. Message m has the pieces before number `ends[m]`
// that the message before it does not have. Pieces with no more lines than the threads have pairs run shorter
// code.
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
