#include "transport/nic/direct.h"

#include <algorithm>

namespace pw {

void NicDirect::prepare(const Transfer& transfer) {
  nic_.memory_of(*transfer.local);
  nic_.memory_of(*transfer.remote);
}

pw_status NicDirect::move(const RangeTransfer& range, const std::optional<nic::WordStore>& word) {
  Remote& remote = *range.remote;
  nic::RegionMemory& local = nic_.memory_of(*range.local);
  nic::RankMemory& far = nic_.memory_of(remote);
  const uint64_t offset = far.offset_of(remote.key.exported.address) + range.remote_offset;
  return nic_.engine()->move(range.op, remote.rank(), far, offset,
                             range.local->address() + range.local_offset, local, range.bytes, word);
}

namespace {

RangeTransfer range_of(const Transfer& transfer) {
  return {transfer.op,           transfer.remote,
          transfer.local,        transfer.remote_offset,
          transfer.local_offset, transfer.layout.shape.block_bytes};
}

}  // namespace

pw_status NicDirect::start_range(const RangeTransfer& range) { return move(range, {}); }

pw_status NicDirect::start(const Transfer& transfer) {
  return transfer.layout.shape.contiguous() ? move(range_of(transfer), {}) : move_blocks(transfer);
}

bool NicDirect::can_start_and_store_word(const Transfer& transfer, Remote& signal) {
  return transfer.op == Op::put && transfer.layout.shape.contiguous() && can_store_word(signal);
}

pw_status NicDirect::start_and_store_word(const Transfer& transfer, SignalTurn& turn) {
  const pw_status status = move(range_of(transfer), word_of(turn.signal(), turn.total()));
  if (status == PW_OK) turn.stored();
  return status;
}

pw_status NicDirect::move_blocks(const Transfer& transfer) {
  nic::RegionMemory& local = nic_.memory_of(*transfer.local);
  nic::RankMemory& far = nic_.memory_of(*transfer.remote);
  const uint64_t offset = far.offset_of(transfer.remote->key.exported.address) + transfer.remote_offset;
  return nic_.engine()->move_blocks(transfer.op, transfer.remote->rank(), far, offset,
                                    transfer.local->address() + transfer.local_offset, local,
                                    transfer.layout);
}

nic::WordStore NicDirect::word_of(Remote& signal, uint64_t value) {
  nic::RankMemory& memory = nic_.memory_of(signal);
  return {memory.memory.get(), memory.offset_of(signal.word_address()), value};
}

pw_status NicDirect::store_word(Remote& signal, uint64_t value) {
  return nic_.engine()->put_word(signal.rank(), word_of(signal, value));
}

std::shared_ptr<const uint64_t> NicDirect::fetch_word(Remote& signal) {
  nic::RankMemory& memory = nic_.memory_of(signal);
  return nic_.engine()->get_word(signal.rank(), memory, memory.offset_of(signal.word_address()));
}

}  // namespace pw
