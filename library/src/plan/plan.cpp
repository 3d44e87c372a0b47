// What a plan is to do: each operation is checked and recorded.
#include "plan/plan.h"

#include <algorithm>
#include <atomic>

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "memory/described.h"
#include "plan/guard.h"

namespace pw {
namespace {

void check_device(const Device& device, const Region& region) {
  if (&region.device() != &device)
    throw Error(PW_INVALID_ARGUMENT, format("a plan of {} with a region on {}; make one plan for each device",
                                            to_string(device.id()), to_string(region.device().id())));
}

}  // namespace

Plan::Plan(Context& context, Device& device)
    : context_(context), device_(device), timeout_ns_(config_number("plan_timeout")) {}

Plan::~Plan() {
  // Work that is still under way on a stream ends before the memory that it uses.
  if (program_.guard != nullptr) cancel(*program_.guard, PW_CLOSED, -1);
  exchange_.reset();
  on_loss_.reset();
  on_close_.reset();
  if (served_ != nullptr) proxy_->forget(*served_);
  for (const Watch& wait : waits_)
    if (runner_ != nullptr) wait.signal->planned += runner_->epochs(PlanPart::finish) * wait.by;
  const uint64_t starts = runner_ == nullptr ? 0 : runner_->epochs(PlanPart::start);
  for (const Owned& owned : owned_) {
    Remote& signal = *owned.notification.signal;
    if (owned.by_device) signal.sender()->notified += starts * owned.notification.by;
    Notifications::give_back(signal);
  }
}

void Plan::require_unprepared() {
  if (runner_ != nullptr)
    throw Error(PW_INVALID_ARGUMENT, "this plan is prepared and cannot be changed; make another one");
}

void Plan::add_dependency(int rank) { dependencies_.insert(rank); }

void Plan::put(Remote& to, const pw_block& to_block, std::shared_ptr<Region> from, const pw_block& from_block,
               const Notification* notification) {
  require_unprepared();
  check_device(device_, *from);
  const Layout layout = join(to_block, described(to), from_block, described(*from));
  Move move{{Op::put, &to, from.get(), to_block.offset, from_block.offset, layout}, std::move(from), {}};
  if (notification != nullptr) move.notification = *notification;
  add_dependency(to.rank());
  moves_.push_back(std::move(move));
}

void Plan::get(Remote& from, const pw_block& from_block, std::shared_ptr<Region> to,
               const pw_block& to_block) {
  require_unprepared();
  check_device(device_, *to);
  const Layout layout = join(to_block, described(*to), from_block, described(from));
  add_dependency(from.rank());
  moves_.push_back(
      {{Op::get, &from, to.get(), from_block.offset, to_block.offset, layout}, std::move(to), {}});
}

void Plan::notify(const Notification& notification) {
  require_unprepared();
  add_dependency(notification.signal->rank());
  notifications_.push_back(notification);
}

void Plan::after(Signal& signal, uint64_t lead, uint64_t by) {
  require_unprepared();
  add_dependency(signal.sender());
  afters_.push_back({&signal, by, lead});
}

void Plan::wait(Signal& signal, uint64_t by) {
  require_unprepared();
  add_dependency(signal.sender());
  waits_.push_back({&signal, by, 0});
}

Plan::Lane Plan::make_lane(int rank, int tag, std::shared_ptr<Region> region, const pw_block& block,
                           bool sends) {
  require_unprepared();
  const char* const name = sends ? "send" : "receive";
  check_device(device_, *region);
  if (rank < 0 || rank >= context_.team().size())
    throw Error(PW_OUT_OF_RANGE, format("a {} with rank {}; this team has ranks 0 to {}", name, rank,
                                        context_.team().size() - 1));
  for (const Lane& other : sends ? sends_ : receives_)
    if (other.offer.rank == rank && other.offer.tag == tag)
      throw Error(PW_INVALID_ARGUMENT,
                  format("this plan has a {} with rank {} and tag {} already", name, rank, tag));
  pw_block dense{};
  dense.block_bytes = block.block_bytes;
  for (uint32_t d = 0; d < std::min<uint32_t>(block.dims, PW_MAX_DIMS); ++d)
    dense.block_bytes *= block.count[d];
  const Described span = described(*region);
  if (!sends) require_writable(span);
  const std::string text = span.text();
  Lane lane;
  lane.layout = sends ? join(dense, dense.block_bytes, "", block, region->bytes(), text.c_str())
                      : join(block, region->bytes(), text.c_str(), dense, dense.block_bytes, "");
  lane.offer.rank = rank;
  lane.offer.tag = tag;
  lane.offer.bytes = dense.block_bytes;
  lane.offer.unit =
      unit_of(region->address() + block.offset, lane.layout.shape, sends ? lane.layout.from : lane.layout.to);
  lane.offer.block = block;
  lane.region = std::move(region);
  lane.block = block;
  add_dependency(rank);
  return lane;
}

void Plan::send(int rank, int tag, std::shared_ptr<Region> from, const pw_block& block) {
  sends_.push_back(make_lane(rank, tag, std::move(from), block, true));
}

void Plan::receive(int rank, int tag, std::shared_ptr<Region> to, const pw_block& block) {
  receives_.push_back(make_lane(rank, tag, std::move(to), block, false));
}

void Plan::set_timeout(uint64_t timeout_ns) {
  timeout_ns_ = timeout_ns;
  if (program_.guard != nullptr)
    std::atomic_ref(program_.guard->timeout_ns).store(timeout_ns, std::memory_order_relaxed);
}

}  // namespace pw
