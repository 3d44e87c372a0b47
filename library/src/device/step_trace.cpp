#include "device/step_trace.h"

#include <atomic>

#include "base/format.h"
#include "device/device.h"
#include "trace/call.h"

namespace pw {
namespace {

constexpr unsigned kFirstPlanTid = 0x50000000;
constexpr uint64_t kMostEvents = 16384;  // per plan, because a program may have many plans

}  // namespace

pw_trace_kind kind_of(PlanPart part) {
  return part == PlanPart::start    ? PW_TRACE_STEPS_START
         : part == PlanPart::finish ? PW_TRACE_STEPS_FINISH
                                    : PW_TRACE_STEPS_BOTH;
}

std::string_view name_of(PlanPart part) {
  return part == PlanPart::start    ? "steps of a start"
         : part == PlanPart::finish ? "steps of a finish"
                                    : "steps of a start and a finish";
}

std::vector<StepEvent> events_of(const ProgramStep& step, uint64_t epoch) {
  std::vector<StepEvent> events;
  const bool notifies = step.notified >= 0;
  if (step.trace_kind != 0)
    events.push_back({step.trace_kind, step.rank, step.layout.shape.bytes(),
                      notifies && step.stored_words.by == 1 ? step.notified : -1});
  if (notifies && (step.trace_kind == 0 || step.stored_words.by != 1))
    events.push_back({PW_TRACE_NOTIFY, step.rank, step.stored_words.by, step.notified});
  if (step.awaited >= 0) events.push_back({PW_TRACE_SIGNAL, step.rank, step.wait.in(epoch), step.awaited});
  return events;
}

uint64_t sent_bytes(const Program& program) {
  uint64_t sum = 0;
  for (const ProgramStep& step : program.start)
    if (step.trace_kind == PW_TRACE_PUT) sum += step.layout.shape.bytes();
  return sum;
}

std::unique_ptr<StepTrack> StepTrack::make(const Program& program, DeviceId device, uint32_t clock) {
  static std::atomic<int32_t> plans{0};
  if (pw_trace_word == &pw_trace_nothing) return nullptr;
  const int32_t number = plans.fetch_add(1) + 1;
  const std::string name = format("{} plan {}", to_string(device), number).substr(0, 15);
  const pw_trace_track track{
      "gpu", name.c_str(), kFirstPlanTid + static_cast<unsigned>(number), PW_TRACE_CLOCK_GPU,
      clock, kMostEvents};
  pw_trace_writer* writer = pw_trace_make(&track);
  if (writer == nullptr) return nullptr;
  return std::unique_ptr<StepTrack>(new StepTrack(program, writer, number));
}

StepTrack::StepTrack(const Program& program, pw_trace_writer* writer, int32_t number)
    : start_(program.start),
      finish_(program.finish),
      sent_(sent_bytes(program)),
      writer_(writer),
      number_(number),
      made_at_(site()) {}

StepTrack::~StepTrack() { pw_trace_close(writer_); }

void StepTrack::record_clock_pair(uint64_t gpu_ns, uint64_t host_ns) {
  pw_trace_ring& ring = *writer_->ring;
  const int which = ring.ticks[0] == 0 ? 0 : 1;
  ring.ticks[which] = gpu_ns;
  ring.ns[which] = host_ns;
  if (which == 0) ring.ticks[1] = gpu_ns, ring.ns[1] = host_ns;
}

void StepTrack::count_lost(uint64_t parts) {
  whole_ = false;
  writer_->ring->uncounted += parts;
}

unsigned StepTrack::site() {
  const std::string_view place = trace::place();
  return place.empty() ? 0 : pw_trace_name(writer_, place.data(), place.size());
}

void StepTrack::record_run(const StepRun& run) {
  const bool starts = run.part != PlanPart::finish, finishes = run.part != PlanPart::start;
  starts_ += starts ? 1 : 0;
  finishes_ += finishes ? 1 : 0;
  if (!trace::recording()) return;
  const StepEvent whole{kind_of(run.part), -1, starts ? sent_ : 0, number_};
  add(run, name_of(run.part), whole, run.in_kernel ? "kernel" : "GPU stream");
  if (starts) add_steps(run, start_, starts_);
  if (finishes) add_steps(run, finish_, finishes_);
}

void StepTrack::add_steps(const StepRun& run, const std::vector<ProgramStep>& steps, uint64_t epoch) {
  static constexpr std::string_view names[] = {"", "put", "get", "notify", "wait"};
  for (const ProgramStep& step : steps)
    for (const StepEvent& event : events_of(step, epoch))
      if (event.kind != PW_TRACE_SIGNAL || whole_)
        add(run, names[event.kind], event, event.kind <= PW_TRACE_GET ? step.method : std::string_view());
}

void StepTrack::add(const StepRun& run, std::string_view name, const StepEvent& step_event,
                    std::string_view method_or_runner) {
  pw_trace_event event{};
  const unsigned called = pw_trace_name(writer_, name.data(), name.size());
  pw_trace_fill(&event, static_cast<unsigned>(step_event.kind), called, step_event.bytes, step_event.peer,
                step_event.tag);
  if (!method_or_runner.empty())
    pw_trace_where(&event, pw_trace_name(writer_, method_or_runner.data(), method_or_runner.size()));
  pw_trace_site(&event, run.in_kernel ? made_at_ : run.site);
  event.begin = run.begin;
  event.duration = (run.end - run.begin) & ((uint64_t{1} << 44) - 1);
  pw_trace_add(writer_, &event);
}

}  // namespace pw
