#include "plan/builder/operations.h"

#include <algorithm>

#include "base/format.h"
#include "base/status.h"
#include "memory/described.h"

namespace pw {
namespace {

void check_device(const Device& device, const Region& region) {
  if (&region.device() != &device)
    throw Error(PW_INVALID_ARGUMENT, format("a plan of {} with a region on {}; make one plan for each device",
                                            to_string(device.id()), to_string(region.device().id())));
}

}  // namespace

void PlanOperations::put(Remote& to, const pw_block& to_block, std::shared_ptr<Region> from,
                         const pw_block& from_block, const Notification* notification) {
  check_device(device_, *from);
  const Layout layout = join(to_block, described(to), from_block, described(*from));
  PlannedMove move{
      {Op::put, &to, from.get(), to_block.offset, from_block.offset, layout}, std::move(from), {}};
  if (notification != nullptr) move.notification = *notification;
  depend_on(to.rank());
  moves_.push_back(std::move(move));
}

void PlanOperations::get(Remote& from, const pw_block& from_block, std::shared_ptr<Region> to,
                         const pw_block& to_block) {
  check_device(device_, *to);
  const Layout layout = join(to_block, described(*to), from_block, described(from));
  depend_on(from.rank());
  moves_.push_back(
      {{Op::get, &from, to.get(), from_block.offset, to_block.offset, layout}, std::move(to), {}});
}

void PlanOperations::notify(const Notification& notification) {
  depend_on(notification.signal->rank());
  notifications_.push_back(notification);
}

void PlanOperations::after(Signal& signal, uint64_t lead, uint64_t by) {
  depend_on(signal.sender());
  afters_.push_back({&signal, by, lead});
}

void PlanOperations::wait(Signal& signal, uint64_t by) {
  depend_on(signal.sender());
  waits_.push_back({&signal, by, 0});
}

LaneEnd PlanOperations::make_end(int rank, int tag, std::shared_ptr<Region> region, const pw_block& block,
                                 bool sends) {
  const char* const name = sends ? "send" : "receive";
  check_device(device_, *region);
  if (rank < 0 || rank >= team_.size())
    throw Error(PW_OUT_OF_RANGE,
                format("a {} with rank {}; this team has ranks 0 to {}", name, rank, team_.size() - 1));
  for (const LaneEnd& other : sends ? sends_ : receives_)
    if (other.rank == rank && other.tag == tag)
      throw Error(PW_INVALID_ARGUMENT,
                  format("this plan has a {} with rank {} and tag {} already", name, rank, tag));
  pw_block dense{};
  dense.block_bytes = block.block_bytes;
  for (uint32_t d = 0; d < std::min<uint32_t>(block.dims, PW_MAX_DIMS); ++d)
    dense.block_bytes *= block.count[d];
  const Described span = described(*region);
  if (!sends) require_writable(span);
  const std::string text = span.text();
  LaneEnd end;
  end.rank = rank;
  end.tag = tag;
  end.layout = sends ? join(dense, dense.block_bytes, "", block, region->bytes(), text.c_str())
                     : join(block, region->bytes(), text.c_str(), dense, dense.block_bytes, "");
  end.bytes = dense.block_bytes;
  end.region = std::move(region);
  end.block = block;
  depend_on(rank);
  return end;
}

void PlanOperations::send(int rank, int tag, std::shared_ptr<Region> from, const pw_block& block,
                          uint32_t round) {
  sends_.push_back(make_end(rank, tag, std::move(from), block, true));
  sends_.back().round = round;
}

void PlanOperations::receive(int rank, int tag, std::shared_ptr<Region> to, const pw_block& block,
                             uint32_t round) {
  receives_.push_back(make_end(rank, tag, std::move(to), block, false));
  receives_.back().round = round;
}

uint32_t PlanOperations::rounds() const {
  uint32_t last = 0;
  for (const auto* ends : {&sends_, &receives_})
    for (const LaneEnd& end : *ends) last = std::max(last, end.round);
  for (const PlannedReduction& planned : reductions_) last = std::max(last, planned.round);
  return last;
}

std::set<int> PlanOperations::partners() const {
  std::set<int> ranks;
  for (const auto* ends : {&sends_, &receives_})
    for (const LaneEnd& end : *ends) ranks.insert(end.rank);
  return ranks;
}

uint64_t PlanOperations::sent_bytes() const {
  uint64_t sum = 0;
  for (const PlannedMove& move : moves_)
    if (move.transfer.op == Op::put) sum += move.transfer.layout.shape.bytes();
  for (const LaneEnd& end : sends_) sum += end.layout.shape.bytes();
  return sum;
}

}  // namespace pw
