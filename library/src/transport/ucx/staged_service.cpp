#include "transport/ucx/staged_service.h"

#include "base/format.h"
#include "base/log.h"
#include "base/status.h"

namespace pw::ucx {

struct StagedService::Served {
  Served(const std::shared_ptr<UcxEngine>& engine, const RingNote& note)
      : rank(note.rank),
        ring(engine),
        end(*engine, ring, note.rank,
            {std::make_unique<UcxRemoteMemory>(engine, note.rank, note.key), note.address}) {}

  int rank;
  Ring ring;
  RingEnd end;
  std::map<uint64_t, RequestNote> requests;  ///< by number, because they are served in order
  uint64_t taken = 0;
  uint64_t failures = 0;
  bool busy = false;  ///< whether a request is under way:
  Target target;
};

StagedService::StagedService(Surroundings surroundings, Ucx& ucx, std::function<void(RingNote)> answered)
    : surroundings_(surroundings),
      secret_(surroundings.team.secret_for(kNotePurpose)),
      ucx_(ucx),
      answered_(std::move(answered)) {
  ucx_.receive([this](ByteView note) { receive(note); });
}

StagedService::~StagedService() { ucx_.receive(nullptr); }

void StagedService::receive(ByteView note) {
  std::lock_guard lock(mutex_);
  notes_.emplace_back(note.begin(), note.end());
  work_.store(true, std::memory_order_release);
}

bool StagedService::poll() {
  if (!has_work()) return false;
  const std::unique_lock serving(serving_, std::try_to_lock);
  if (!serving.owns_lock()) return false;
  std::deque<Bytes> notes;
  {
    std::lock_guard lock(mutex_);
    notes.swap(notes_);
    work_.store(false, std::memory_order_relaxed);
  }
  for (const Bytes& note : notes) handle(note);
  bool busy = false;
  for (auto entry = served_.begin(); entry != served_.end();) {
    Served& served = *entry->second;
    if (surroundings_.team.lost(served.rank)) {
      const bool idle = served.ring.idle();  // otherwise its destructor would wait
      busy |= !idle;
      entry = idle ? served_.erase(entry) : std::next(entry);
      continue;
    }
    busy |= step(served);
    ++entry;
  }
  if (busy) work_.store(true, std::memory_order_release);
  return true;
}

void StagedService::handle(const Bytes& bytes) try {
  Note note = read_note(bytes, surroundings_.team.size(), secret_);
  if (auto* request = std::get_if<RequestNote>(&note)) {
    const auto served = served_.find(request->rank);
    if (served == served_.end()) throw Error(PW_INTERNAL, "a request before its rings");
    served->second->requests.emplace(request->number, *request);
    return;
  }
  auto& ring = std::get<RingNote>(note);
  if (ring.answer)
    answered_(std::move(ring));
  else
    open(ring);
} catch (const Error& error) {
  log(LogLevel::warning, format("a note of the ucx/staged path is not answered: {}", error.what()));
}

void StagedService::open(const RingNote& note) {
  RingNote answer;
  answer.answer = true;
  answer.rank = surroundings_.team.rank();
  try {
    auto& served = served_[note.rank];
    served = std::make_unique<Served>(ucx_.shared_engine(), note);
    answer.address = served->ring.address();
    answer.key = served->ring.memory().key();
  } catch (const Error& error) {
    log(LogLevel::warning, format("cannot serve staged transfers of rank {}: {}", note.rank, error.what()));
    served_.erase(note.rank);
    answer.status = error.status();
  }
  if (ucx_.engine()->send(note.rank, write(answer, secret_)) != PW_OK) served_.erase(note.rank);
}

bool StagedService::take_request(Served& served) {
  const auto next = served.requests.find(served.taken);
  if (next == served.requests.end()) return false;
  const StagedRequest request = next->second.request;
  Target target(request, surroundings_.registry);
  Queue* queue = nullptr;
  if (target.status() == PW_OK) try {
      queue = served.ring.use(target.device());
      if (queue == nullptr) return false;
    } catch (const Error& error) {
      log(LogLevel::warning, error.what());
      target.set_status(error.status());
    }
  served.requests.erase(next);
  served.busy = true;
  served.end.begin(request.op == Op::get, request.layout, queue != nullptr ? target.address() : nullptr,
                   queue);
  served.target = std::move(target);
  return true;
}

// A status other than PW_OK means that the connection or the device is broken; the initiator notices either.
bool StagedService::step(Served& served) {
  if (!served.busy && !take_request(served)) return served.requests.contains(served.taken);
  if (served.target.wanted_back()) {
    if (!served.end.leave_memory()) return true;
    served.target.let_go();
  }
  if (const pw_status status = served.end.step(); status != PW_OK) served.target.set_status(status);
  if (served.end.done()) finish_request(served);
  return true;
}

void StagedService::finish_request(Served& served) {
  if (const pw_status status = served.target.status(); status != PW_OK)
    served.end.tell(&RingHeader::failed, failure_word(++served.failures, status));
  served.end.tell(&RingHeader::completed, ++served.taken);
  served.busy = false;
  served.target = {};
}

}  // namespace pw::ucx
