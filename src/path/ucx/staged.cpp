#include "path/ucx/staged.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "path/ucx/wait.h"

namespace pw {

using namespace ucx;

struct UcxStaged::Line {
  Line(const std::shared_ptr<Engine>& engine, int to) : rank(to), ring(engine) {}

  const int rank;
  Ring ring;
  std::mutex mutex;  ///< one transfer at a time
  std::unique_ptr<Half> half;
  RingNote answer;  ///< before answered is set
  std::atomic<bool> answered{false};
  std::atomic<uint64_t> requested{0};
  std::atomic<uint64_t> told{0};  ///< failures of the target
  pw_status broken = PW_OK;       ///< why a transfer ended half way
};

UcxStaged::UcxStaged(Surroundings surroundings, Ucx& ucx)
    : Path(Completes::later),
      surroundings_(surroundings),
      secret_(surroundings.team.secret_for(kNotePurpose)),
      ucx_(ucx),
      service_(surroundings, ucx, [this](RingNote note) { answered(std::move(note)); }) {
  surroundings_.progress.add(service_);
}

UcxStaged::~UcxStaged() = default;

Offer UcxStaged::probe(const Pair& pair) const {
  if (!pair.ucx_running) return without_ucx(pair);
  return Offer::yes();
}

UcxStaged::Line& UcxStaged::line_to(int rank) {
  std::lock_guard lock(mutex_);
  auto& line = lines_[rank];
  if (line == nullptr) line = std::make_unique<Line>(ucx_.shared_engine(), rank);
  return *line;
}

void UcxStaged::answered(RingNote note) {
  Line& line = line_to(note.rank);
  if (line.answered.load(std::memory_order_relaxed)) return;
  line.answer = std::move(note);
  line.answered.store(true, std::memory_order_release);
  surroundings_.control.waiting()->wake();
}

// With the line's lock. Throws Error; the next transfer tries again.
void UcxStaged::open(Line& line) {
  if (line.half != nullptr) return;
  Engine& engine = *ucx_.engine();
  line.answered.store(false);
  RingNote question;
  question.rank = surroundings_.team.rank();
  question.address = line.ring.address();
  question.key = line.ring.memory().key();
  pw_status status = engine.send(line.rank, write(question, secret_));
  if (status == PW_OK)
    status = engine.wait_for(line.rank, deadline_after(config_number("timeout")), "a ring for staging",
                             [&] { return line.answered.load(std::memory_order_acquire); });
  if (status != PW_OK) throw Error(status, last_error_message());
  if (line.answer.status != PW_OK)
    throw Error(
        line.answer.status,
        format("peerway: rank {} cannot serve staged transfers; its log (PEERWAY_LOG) says why", line.rank));
  FarRing far{std::make_unique<RemoteMemory>(ucx_.shared_engine(), line.rank, line.answer.key),
              line.answer.address};
  line.half = std::make_unique<Half>(engine, line.ring, line.rank, std::move(far));
}

pw_status UcxStaged::move(Line& line, const Transfer& transfer) {
  Engine& engine = *ucx_.engine();
  Queue& queue = line.ring.use(transfer.local->device());
  const uint64_t number = line.requested.load(std::memory_order_relaxed);
  const RequestNote note{surroundings_.team.rank(), number, request_for(transfer)};
  if (const pw_status status = engine.send(line.rank, write(note, secret_)); status != PW_OK) return status;
  line.requested.store(number + 1, std::memory_order_release);
  line.half->begin(transfer.op == Op::put, transfer.layout, transfer.local->address() + transfer.local_offset,
                   &queue);
  pw_status status = PW_OK;
  const pw_status waited = engine.wait_for(line.rank, PW_FOREVER, "a staging chunk", [&] {
    status = line.half->step();
    return status != PW_OK || line.half->done();
  });
  return waited != PW_OK ? waited : status;
}

void UcxStaged::prepare(const Transfer& transfer) {
  Line& line = line_to(transfer.remote->rank());
  std::lock_guard lock(line.mutex);
  if (line.broken != PW_OK) return;  // start() tells
  open(line);
  line.ring.use(transfer.local->device());
}

pw_status UcxStaged::start(const Transfer& transfer) {
  Line& line = line_to(transfer.remote->rank());
  std::lock_guard lock(line.mutex);
  if (line.broken != PW_OK) return refuse_after(line.broken, line.rank);
  open(line);
  return line.broken = move(line, transfer);
}

UcxStaged::Line* UcxStaged::known_line(int rank) {
  std::lock_guard lock(mutex_);
  const auto found = lines_.find(rank);
  return found == lines_.end() ? nullptr : found->second.get();
}

Mark UcxStaged::mark(int rank) {
  const Line* line = known_line(rank);
  return line == nullptr ? 0 : line->requested.load(std::memory_order_acquire);
}

bool UcxStaged::reached(int rank, Mark mark) {
  return known_line(rank)->ring.header().completed.load(std::memory_order_acquire) >= mark ||
         ucx_.engine()->over(rank);
}

pw_status UcxStaged::outcome(int rank, Mark mark) {
  Line& line = *known_line(rank);
  if (line.ring.header().completed.load(std::memory_order_acquire) < mark)
    return ucx_.engine()->why_over(rank);
  return tell_failure(line.ring.header().failed.load(std::memory_order_acquire), line.told, rank);
}

}  // namespace pw
