#include "transport/ucx/direct.h"

#include "base/status.h"
#include "transport/blocks.h"

namespace pw {

Offer UcxDirect::offer_for(const Pair& pair, const ucx::Facts& facts) {
  if (!facts.running) return ucx::without_ucx(pair, facts);
  if (!facts.memory) return Offer::hindered(facts.why_no_memory);
  if (!facts.key) return Offer::hindered(facts.why_not);
  return Offer::yes();
}

void UcxDirect::prepare(const Transfer& transfer) {
  ucx_.memory_of(*transfer.local);
  ucx_.memory_of(*transfer.remote);
}

pw_status UcxDirect::start(const Transfer& transfer) {
  Region& region = *transfer.local;
  Remote& remote = *transfer.remote;
  const bool put = transfer.op == Op::put;
  std::byte* local = region.address() + transfer.local_offset;
  const uint64_t far = remote.key.exported.address + transfer.remote_offset;
  region.device().enter();
  auto next = [put, local, far, op = transfer.op, bytes = transfer.layout.shape.block_bytes,
               blocks = BlockCursor(transfer.layout)](ucx::Piece& piece) mutable {
    uint64_t to = 0, from = 0;
    if (!blocks.next(to, from)) return false;
    piece = {op, local + (put ? from : to), far + (put ? to : from), bytes};
    return true;
  };
  return ucx_.engine()->move(remote.rank(), ucx_.memory_of(region), ucx_.memory_of(remote),
                             region.device().id().kind == PW_HOST, std::move(next));
}

pw_status UcxDirect::store_word(Remote& signal, uint64_t value) {
  return ucx_.engine()->put_word(signal.rank(), ucx_.memory_of(signal), signal.word_address(), value);
}

std::shared_ptr<const uint64_t> UcxDirect::fetch_word(Remote& signal) {
  return ucx_.engine()->get_word(signal.rank(), ucx_.memory_of(signal), signal.word_address());
}

}  // namespace pw
