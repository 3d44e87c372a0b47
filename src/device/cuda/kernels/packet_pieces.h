// Plans that consist of packets only, with words at one stride: most exchanges of small faces. Each block
// finds everything it needs in one cache line of the kernel's parameters. Reading a step from the table in
// device memory would take half as long as the whole trip to the peer.
#pragma once

#include "peerway/device/plan.cuh"

namespace pw::cuda {

// What one block sends or receives.
struct alignas(16) PacketPiece {
  unsigned char* memory;  // the first word
  unsigned char* slots;   // the first packet, in even epochs
  long long turn;         // by which it lies further in odd ones
  long long stride;       // bytes from word to word
  unsigned words;
  unsigned unit;   // bytes of a word: 16 or 8
  unsigned sends;  // 1: from memory to slots; 0: the other way
  int rank;        // at the other end
};

// The slots of a piece in its epoch. The epoch is looked at when the data has been loaded.
struct PieceSlots {
  const PacketPiece& piece;
  const peerway::device::detail::Epoch& epoch;
  unsigned char* address = nullptr;
  unsigned flag = 0;

  PW_ON_DEVICE bool open() {
    if (epoch.cancelled()) return false;
    address = piece.slots + ((epoch.now() & 1) != 0 ? piece.turn : 0);
    flag = static_cast<unsigned>(epoch.now());
    return true;
  }
};

template <typename Unit, class Scope>
PW_ON_DEVICE bool move_piece(const Scope& scope, const PacketPiece& piece,
                             const peerway::device::detail::Epoch& epoch, const pw_guard& guard) {
  namespace gpu = peerway::device::detail;
  const gpu::Spaced memory{piece.memory, piece.stride};
  PieceSlots slots{piece, epoch};
  if (piece.sends != 0) {
    gpu::send_dense<Unit>(scope, memory, piece.words, slots);
    epoch.increment_in_step(scope);
    return !epoch.cancelled();
  }
  epoch.increment_in_step(scope);
  if (!slots.open()) return false;
  gpu::Patience patience(guard, piece.rank, epoch.now());
  return gpu::receive_dense<Unit>(scope, memory, piece.words, slots.address, slots.flag, patience);
}

// The piece with this number, in its next epoch.
template <class Scope>
PW_ON_DEVICE bool run_piece(const Scope& scope, const PacketPiece& given, peerway::device::Word* count,
                            const pw_guard& guard) {
  namespace gpu = peerway::device::detail;
  const PacketPiece piece = given;
  const gpu::Epoch epoch{count, gpu::load_relaxed(count), 1, 1};
  return piece.unit == sizeof(gpu::Word16) ? move_piece<gpu::Word16>(scope, piece, epoch, guard)
                                           : move_piece<peerway::device::Word>(scope, piece, epoch, guard);
}

// Every `workers`-th of `pieces` pieces from number `worker` on.
template <class Scope>
PW_ON_DEVICE void run_packet_pieces(const Scope& scope, const PacketPiece* all, unsigned pieces,
                                    peerway::device::Word* counts, const pw_guard& guard, unsigned worker,
                                    unsigned workers) {
  for (unsigned p = worker; p < pieces; p += workers)
    if (!run_piece(scope, all[p], counts + p, guard))
      peerway::device::detail::set_bits(counts + p, peerway::device::kCancelled);
}

}  // namespace pw::cuda
