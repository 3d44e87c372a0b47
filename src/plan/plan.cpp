#include "plan/plan.h"

#include <algorithm>

#include "base/clock.h"
#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "plan/guard.h"
#include "team/wait.h"

namespace pw {
namespace {

std::string text_of(const Region& region) {
  return format("local region ({} bytes on {})", region.bytes(), to_string(region.device().id()));
}

std::string text_of(const Remote& remote) {
  return format("remote region ({} bytes, rank {}, key v1)", remote.bytes(), remote.rank());
}

void check_device(const Device& device, const Region& region) {
  if (&region.device() != &device)
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: a plan of {} with a region on {}; make one plan for each device",
                       to_string(device.id()), to_string(region.device().id())));
}

}  // namespace

Plan::Plan(Context& context, Device& device)
    : context_(context), device_(device), timeout_ns_(config_number("plan_timeout")) {}

Plan::~Plan() {
  // What is still under way on a stream ends before the memory that it uses.
  if (program_.guard != nullptr) cancel(*program_.guard, PW_CLOSED, -1);
  meeting_.reset();
  on_loss_.reset();
  on_close_.reset();
  if (served_ != nullptr) proxy_->forget(*served_);
  for (const Watch& wait : waits_)
    if (runner_ != nullptr) wait.signal->planned += runner_->epochs(PlanPart::finish) * wait.by;
  const uint64_t starts = runner_ == nullptr ? 0 : runner_->epochs(PlanPart::start);
  for (const Owned& owned : owned_) {
    Remote& signal = *owned.raise.signal;
    if (owned.by_device) signal.sender()->raised += starts * owned.raise.by;
    Raises::give_back(signal);
  }
}

void Plan::change() {
  if (runner_ != nullptr)
    throw Error(PW_INVALID_ARGUMENT,
                "peerway: this plan is prepared and cannot be changed; make another one");
}

void Plan::depend(int rank) { depends_.insert(rank); }

void Plan::put(Remote& to, const pw_block& to_block, std::shared_ptr<Region> from, const pw_block& from_block,
               const Raise* raise) {
  change();
  check_device(device_, *from);
  const Layout layout =
      join(to_block, to.bytes(), text_of(to).c_str(), from_block, from->bytes(), text_of(*from).c_str());
  Move move{{Op::put, &to, from.get(), to_block.offset, from_block.offset, layout}, std::move(from), {}};
  if (raise != nullptr) move.raise = *raise;
  depend(to.rank());
  moves_.push_back(std::move(move));
}

void Plan::get(Remote& from, const pw_block& from_block, std::shared_ptr<Region> to,
               const pw_block& to_block) {
  change();
  check_device(device_, *to);
  const Layout layout =
      join(to_block, to->bytes(), text_of(*to).c_str(), from_block, from.bytes(), text_of(from).c_str());
  depend(from.rank());
  moves_.push_back(
      {{Op::get, &from, to.get(), from_block.offset, to_block.offset, layout}, std::move(to), {}});
}

void Plan::raise(const Raise& raise) {
  change();
  depend(raise.signal->rank());
  raises_.push_back(raise);
}

void Plan::after(Signal& signal, uint64_t lead, uint64_t by) {
  change();
  depend(signal.sender());
  afters_.push_back({&signal, by, lead});
}

void Plan::wait(Signal& signal, uint64_t by) {
  change();
  depend(signal.sender());
  waits_.push_back({&signal, by, 0});
}

Plan::Lane Plan::make_lane(int rank, int tag, std::shared_ptr<Region> region, const pw_block& block,
                           const std::vector<Lane>& others, const char* what) {
  change();
  check_device(device_, *region);
  if (rank < 0 || rank >= context_.team().size())
    throw Error(PW_OUT_OF_RANGE, format("peerway: a {} with rank {}; this team has ranks 0 to {}", what, rank,
                                        context_.team().size() - 1));
  for (const Lane& other : others)
    if (other.offer.rank == rank && other.offer.tag == tag)
      throw Error(PW_INVALID_ARGUMENT,
                  format("peerway: this plan has a {} with rank {} and tag {} already", what, rank, tag));
  pw_block dense{};
  dense.block_bytes = block.block_bytes;
  for (uint32_t d = 0; d < std::min<uint32_t>(block.dims, PW_MAX_DIMS); ++d)
    dense.block_bytes *= block.count[d];
  const bool sends = what[0] == 's';
  const std::string text = text_of(*region);
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
  depend(rank);
  return lane;
}

void Plan::send(int rank, int tag, std::shared_ptr<Region> from, const pw_block& block) {
  sends_.push_back(make_lane(rank, tag, std::move(from), block, sends_, "send"));
}

void Plan::receive(int rank, int tag, std::shared_ptr<Region> to, const pw_block& block) {
  receives_.push_back(make_lane(rank, tag, std::move(to), block, receives_, "receive"));
}

void Plan::set_timeout(uint64_t timeout_ns) {
  timeout_ns_ = timeout_ns;
  if (program_.guard != nullptr)
    std::atomic_ref(program_.guard->timeout_ns).store(timeout_ns, std::memory_order_relaxed);
}

void Plan::guard_losses() {
  const std::shared_ptr<Guard> guard = program_.guard;
  const std::shared_ptr<const Waiting> waiting = program_.waiting;
  on_close_ = context_.on_close([guard, waiting] {
    cancel(*guard, PW_CLOSED, -1);
    waiting->wake();
  });
  on_loss_ = context_.team().on_loss([guard, waiting, depends = depends_](int rank) {
    if (!depends.contains(PW_ANY_RANK) && !depends.contains(rank)) return;
    cancel(*guard, PW_PEER_LOST, rank);
    waiting->wake();
  });
}

pw_status Plan::refuse_unprepared(const char* what) const {
  return fail(PW_INVALID_ARGUMENT, format("peerway: {} of a plan that is not prepared", what));
}

pw_status Plan::status() const {
  return program_.guard == nullptr ? PW_OK : status_of(*program_.guard, context_.team());
}

uint64_t Plan::sent_bytes() const {
  uint64_t sum = 0;
  for (const Move& move : moves_)
    if (move.transfer.op == Op::put) sum += move.transfer.layout.shape.bytes();
  for (const Lane& lane : sends_) sum += lane.layout.shape.bytes();
  return sum;
}

// A start comes after the finish of the one before: from that it follows that what a rank sends proves that
// it has used all that it was sent in earlier epochs.
pw_status Plan::note(PlanPart part, std::optional<void*> stream) {
  std::lock_guard lock(mutex_);
  if (part != PlanPart::finish && started_ && !(in_kernels_ && stream_))
    return fail(
        PW_INVALID_ARGUMENT,
        format("peerway: this plan was started {} and is not finished; finish it before the next start",
               stream_ ? "on a stream" : "from the host"));
  started_ = part == PlanPart::start;
  if (part != PlanPart::finish) stream_ = stream;
  return PW_OK;
}

pw_status Plan::start(uint64_t* number) {
  if (runner_ == nullptr) return refuse_unprepared("a start");
  std::optional<trace::Operation> operation;
  if (trace::recording()) operation.emplace(PW_TRACE_PLAN_START, -1, sent_bytes());
  if (const pw_status cancelled = status(); cancelled != PW_OK) return cancelled;
  if (const pw_status noted = note(PlanPart::start, std::nullopt); noted != PW_OK) return noted;
  if (number != nullptr) {
    std::lock_guard lock(mutex_);
    *number = ++number_;
  }
  return runner_->begin(PlanPart::start, std::nullopt);
}

// What the CPU runs is done by the polls of this thread, and whoever makes them worthwhile wakes it. A GPU
// wakes nobody unless it is asked to.
Wakes Plan::ask_for(const std::shared_ptr<Notice>& notice) {
  if (device_kind() == PW_HOST) return Wakes::as_known;
  void* user = Notice::hand_out(notice);
  if (runner_->notify(Notice::give, user)) return Wakes::always;
  Notice::take_back(user);
  return Wakes::perhaps;
}

// With the lock.
pw_status Plan::begin_finish() {
  if (finishing_) return PW_OK;
  const pw_status begun = runner_->begin(PlanPart::finish, stream_);
  finishing_ = begun == PW_OK;
  return begun;
}

// A finish on a stream, or by pw_plan_finish, has done it as well.
bool Plan::finished(uint64_t number, pw_status& ended) {
  std::lock_guard lock(mutex_);
  if (number != number_ || !started_) {
    ended = status();
    return true;
  }
  if (ended = begin_finish(); ended != PW_OK) return true;
  if (!runner_->done(ended)) return false;
  finishing_ = started_ = false;
  if (ended == PW_OK) ended = status();
  return true;
}

pw_status Plan::finish(uint64_t timeout_ns) {
  if (runner_ == nullptr) return refuse_unprepared("a finish");
  std::optional<trace::Operation> operation;
  if (trace::recording()) operation.emplace(PW_TRACE_PLAN_FINISH, -1, 0);
  const uint64_t deadline = deadline_after(timeout_ns);
  {
    std::lock_guard lock(mutex_);
    if (!started_) return fail(PW_INVALID_ARGUMENT, "peerway: a finish of a plan that was not started");
    if (const pw_status begun = begin_finish(); begun != PW_OK) return begun;
  }
  pw_status failed = PW_OK;
  // The runner itself ends when a rank that the plan depends on is lost.
  const auto notice = std::make_shared<Notice>(context_.waiting());
  const pw_status waited = context_.progress().wait(
      {context_.team(), context_.team().rank(), deadline, "a plan"}, proxy_.get(),
      [&] { return notice->given() || runner_->done(failed); }, [&] { return ask_for(notice); });
  if (waited == PW_TIMEOUT)
    return fail(
        PW_TIMEOUT,
        format("peerway: waited {:.3g} s for a plan of {} to finish. It goes on: finish it again, and "
               "see whether the ranks at its other ends have started theirs",
               static_cast<double>(timeout_ns) * 1e-9, to_string(device_.id())));
  if (waited != PW_OK) return waited;
  std::lock_guard lock(mutex_);
  finishing_ = started_ = false;
  return failed != PW_OK ? failed : status();
}

pw_status Plan::enqueue(void* stream, PlanPart part) {
  if (runner_ == nullptr) return refuse_unprepared("a start or finish");
  if (const pw_status cancelled = status(); cancelled != PW_OK) return cancelled;
  std::string why_not;
  if (!device_.owns_stream(stream, why_not))
    return fail(PW_INVALID_ARGUMENT,
                format("peerway: this stream cannot run a plan of {}: {}", to_string(device_.id()), why_not));
  if (const pw_status noted = note(part, stream); noted != PW_OK) return noted;
  return runner_->enqueue(stream, part);
}

pw_status Plan::handle(pw_plan_handle& handle) {
  if (runner_ == nullptr) return refuse_unprepared("a handle");
  std::lock_guard lock(mutex_);
  in_kernels_ = true;
  return runner_->handle(handle);
}

pw_status Plan::lane(bool sends, int rank, int tag, pw_lane_handle& handle) {
  pw_plan_handle whole{};
  if (const pw_status status = this->handle(whole); status != PW_OK) return status;
  const std::vector<Lane>& lanes = sends ? sends_ : receives_;
  const auto found = std::ranges::find_if(
      lanes, [&](const Lane& lane) { return lane.offer.rank == rank && lane.offer.tag == tag; });
  if (found == lanes.end())
    return fail(PW_INVALID_ARGUMENT, format("peerway: this plan has no {} with rank {} and tag {}",
                                            sends ? "send" : "receive", rank, tag));
  if (found->kind != LaneKind::slots || found->unit < 4)
    return fail(PW_UNSUPPORTED, format("peerway: {} bytes with rank {} and tag {} do not go by packets",
                                       found->offer.bytes, rank, tag));
  std::byte* slots = sends ? found->mailbox->address_on(device_) + found->theirs.slots
                           : mailbox_->address() + found->offer.slots;
  handle = {PW_HANDLE_VERSION, found->unit, reinterpret_cast<unsigned char*>(slots),
            found->slot_bytes, rank,        whole.guard};
  return PW_OK;
}

std::string Plan::describe() const {
  std::string text;
  for (const std::string& line : description_) text += line + "\n";
  return text;
}

}  // namespace pw
