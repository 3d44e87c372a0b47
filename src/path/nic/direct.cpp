#include "path/nic/direct.h"

#include <algorithm>

#include "path/blocks.h"

namespace pw {

// A card that is not there is told of where it could have served: it was asked for by its name.
Offer NicDirect::probe(const Pair& pair) const {
  const auto mine = std::ranges::find(pair.nics, nic_.name(), &NicFacts::name);
  if (mine == pair.nics.end()) return Offer::hindered("this context has not opened it");
  return mine->usable ? Offer::yes() : Offer::hindered(mine->why_not);
}

void NicDirect::prepare(const Transfer& transfer) {
  nic_.memory_of(*transfer.local);
  nic_.memory_of(*transfer.remote);
}

pw_status NicDirect::start_run(const Run& run, const Raise* raise) {
  Remote& remote = *run.remote;
  nic::RegionMemory& local = nic_.memory_of(*run.local);
  nic::RankMemory& far = nic_.memory_of(remote);
  const uint64_t offset = far.offset_of(remote.key.exported.address) + run.remote_offset;
  const auto move = [&](const nic::Word* word) {
    return nic_.engine()->move(run.op, remote.rank(), far, offset, run.local->address() + run.local_offset,
                               local, run.bytes, word);
  };
  if (raise == nullptr) return move(nullptr);
  if (run.op == Op::put && raises(*raise->signal))
    return nic_.raise(*raise, this, [&](const nic::Word& word) { return move(&word); });
  const pw_status status = move(nullptr);
  return status != PW_OK ? status : this->raise(*raise);
}

pw_status NicDirect::start(const Transfer& transfer, const Raise* raise) {
  if (transfer.layout.shape.contiguous())
    return start_run({transfer.op, transfer.remote, transfer.local, transfer.remote_offset,
                      transfer.local_offset, transfer.layout.shape.block_bytes},
                     raise);
  const pw_status status = move_blocks(transfer);
  return status != PW_OK || raise == nullptr ? status : this->raise(*raise);
}

pw_status NicDirect::move_blocks(const Transfer& transfer) {
  const Layout& layout = transfer.layout;
  const uint32_t inner = layout.shape.dims - 1;
  const bool put = transfer.op == Op::put;
  const int rank = transfer.remote->rank();
  nic::RegionMemory& local = nic_.memory_of(*transfer.local);
  nic::RankMemory& far = nic_.memory_of(*transfer.remote);
  std::byte* here = transfer.local->address() + transfer.local_offset;
  const uint64_t there = far.offset_of(transfer.remote->key.exported.address) + transfer.remote_offset;
  const uint64_t block_bytes = layout.shape.block_bytes;
  const bool rows = put && layout.to[inner] > 0 && layout.from[inner] > 0 &&
                    block_bytes <= nic_.engine()->info().largest && nic_.engine()->puts_strided(rank);
  BlockCursor cursor(layout, rows ? 1 : 0);
  pw_status status = PW_OK;
  for (uint64_t to = 0, from = 0; status == PW_OK && cursor.next(to, from);) {
    const uint64_t at = there + (put ? to : from);
    std::byte* data = here + (put ? from : to);
    status = rows ? nic_.engine()->put_strided(
                        rank, far, at, data, local,
                        {layout.shape.count[inner], block_bytes, static_cast<uint64_t>(layout.to[inner]),
                         static_cast<uint64_t>(layout.from[inner])})
                  : nic_.engine()->move(transfer.op, rank, far, at, data, local, block_bytes, nullptr);
  }
  return status;
}

pw_status NicDirect::raise(const Raise& raise) {
  if (!raises(*raise.signal)) return Path::raise(raise);
  return nic_.raise(raise, this, [&](const nic::Word& word) {
    return nic_.engine()->put_word(raise.signal->rank(), word);
  });
}

}  // namespace pw
