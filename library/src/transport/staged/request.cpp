#include "transport/staged/request.h"

#include "base/format.h"
#include "base/status.h"

namespace pw {

StagedRequest request_for(const Transfer& transfer) {
  const Key& key = transfer.remote->key;
  return {transfer.op, key.slot, key.generation, transfer.remote_offset, transfer.layout};
}

bool lies_inside(const Shape& shape, const Strides& strides, uint64_t offset, uint64_t span) {
  using Wide = unsigned __int128;  // 128 bits, so that no product of two 64-bit numbers overflows
  Wide end = Wide{offset} + shape.block_bytes, bytes = shape.block_bytes;
  for (uint32_t d = 0; d < shape.dims; ++d) {
    if (shape.count[d] == 0 || strides[d] < 0) return false;
    const Wide reach = Wide{shape.count[d] - 1} * static_cast<uint64_t>(strides[d]);
    bytes *= shape.count[d];
    if (reach > span || bytes > span) return false;
    end += reach;
  }
  return end <= span;
}

Target::Target(const StagedRequest& request, Registry& registry)
    : region_(registry.find(request.slot, request.generation)) {
  if (region_ == nullptr) {
    status_ = PW_STALE_KEY;
    return;
  }
  const Strides& strides = request.op == Op::put ? request.layout.to : request.layout.from;
  if (!lies_inside(request.layout.shape, strides, request.offset, region_->bytes()))
    status_ = PW_OUT_OF_RANGE;
  else
    address_ = region_->address() + request.offset;
}

void Target::let_go() {
  region_.reset();
  status_ = PW_STALE_KEY;
}

pw_status tell_failure(uint64_t word, std::atomic<uint64_t>& reported, int rank) {
  if (reported.exchange(word, std::memory_order_relaxed) == word) return PW_OK;
  const auto status = static_cast<pw_status>(word & 255);
  return fail(status,
              format("rank {} could not serve a staged transfer: {}", rank,
                     status == PW_STALE_KEY ? "the region or signal was closed" : pw_status_name(status)));
}

pw_status refuse_after(pw_status broken, int rank) {
  return fail(broken, format("an earlier staged transfer with rank {} ended half way ({}); no more "
                             "can follow in this context",
                             rank, pw_status_name(broken)));
}

}  // namespace pw
