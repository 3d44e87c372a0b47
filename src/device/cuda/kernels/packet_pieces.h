// Plans that consist of packets only, with words at one stride: most exchanges of small faces. Each block
// finds everything it needs in one cache line of the kernel's parameters. Reading a step from the table in
// device memory would take half as long as the whole trip to the peer.
#pragma once

#include "peerway/device/plan.cuh"

namespace pw::cuda {

// What one block sends or receives: words of 8 bytes.
struct alignas(16) PacketPiece {
  unsigned char* memory;  // the first word
  unsigned char* slots;   // the first packet, in even epochs
  long long turn;         // by which it lies further in odd ones
  long long step;         // bytes from word to word
  unsigned words;
  unsigned sends;  // 1: from memory to slots; 0: the other way
  int rank;        // at the other end
};

// The piece with this number, in its next epoch.
template <class Scope>
PW_ON_DEVICE bool run_piece(const Scope& scope, const PacketPiece& given, peerway::device::Word* count,
                            const pw_guard& guard) {
  namespace gpu = peerway::device;
  const PacketPiece piece = given;
  const gpu::detail::Epoch epoch{count, gpu::detail::load_relaxed(count), 1, 1};
  const auto packet_of = [&piece, &epoch](unsigned n) {
    return reinterpret_cast<gpu::Packet*>(piece.slots + ((epoch.now() & 1) != 0 ? piece.turn : 0)) + n;
  };
  if (piece.sends != 0) {
    for (unsigned n = scope.index(); n < piece.words; n += scope.count()) {
      const gpu::Word word = *reinterpret_cast<const gpu::Word*>(piece.memory + n * piece.step);
      if (!epoch.cancelled())
        gpu::detail::store_packet(packet_of(n),
                                  gpu::detail::make_packet(word, static_cast<unsigned>(epoch.now())));
    }
    epoch.increment_in_step(scope);
    return !epoch.cancelled();
  }
  epoch.increment_in_step(scope);
  if (epoch.cancelled()) return false;
  gpu::detail::Patience patience(guard, piece.rank, epoch.now());
  for (unsigned n = scope.index(); n < piece.words; n += scope.count()) {
    const gpu::Packet* from = packet_of(n);
    gpu::Packet packet;
    while (packet = gpu::detail::load_packet(from),
           !gpu::detail::arrived(packet, static_cast<unsigned>(epoch.now())))
      if (!patience.left()) return false;
    *reinterpret_cast<gpu::Word*>(piece.memory + n * piece.step) = gpu::detail::data_of(packet);
  }
  return true;
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
