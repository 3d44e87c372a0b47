#include "device/step_trace.h"

#include <atomic>

#include "base/format.h"
#include "device/device.h"

namespace pw {
namespace {

constexpr unsigned kFirstPlanTid = 0x50000000;
constexpr uint64_t kMostEvents = 16384;  // of a plan: a program may have many

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
  const bool raises = step.raised >= 0;
  if (step.moves != 0)
    events.push_back(
        {step.moves, step.rank, step.layout.shape.bytes(), raises && step.mark.by == 1 ? step.raised : -1});
  if (raises && (step.moves == 0 || step.mark.by != 1))
    events.push_back({PW_TRACE_RAISE, step.rank, step.mark.by, step.raised});
  if (step.awaited >= 0) events.push_back({PW_TRACE_SIGNAL, step.rank, step.wait.in(epoch), step.awaited});
  return events;
}

uint64_t sent_bytes(const Program& program) {
  uint64_t sum = 0;
  for (const ProgramStep& step : program.start)
    if (step.moves == PW_TRACE_PUT) sum += step.layout.shape.bytes();
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
      number_(number) {}

StepTrack::~StepTrack() { pw_trace_close(writer_); }

void StepTrack::read_clock(uint64_t gpu_ns, uint64_t host_ns) {
  pw_trace_ring& ring = *writer_->ring;
  const int which = ring.ticks[0] == 0 ? 0 : 1;
  ring.ticks[which] = gpu_ns;
  ring.ns[which] = host_ns;
  if (which == 0) ring.ticks[1] = gpu_ns, ring.ns[1] = host_ns;
}

void StepTrack::lost(uint64_t parts) {
  whole_ = false;
  writer_->ring->uncounted += parts;
}

void StepTrack::ran(PlanPart part, bool in_kernel, uint64_t begin, uint64_t end) {
  starts_ += part != PlanPart::finish ? 1 : 0;
  finishes_ += part != PlanPart::start ? 1 : 0;
  if (!trace::recording()) return;
  const StepEvent whole{kind_of(part), -1, part == PlanPart::finish ? 0 : sent_, number_};
  add(kind_of(part), name_of(part), whole, in_kernel ? "kernel" : "GPU stream", begin, end);
  if (part != PlanPart::finish) add_steps(start_, starts_, begin, end);
  if (part != PlanPart::start) add_steps(finish_, finishes_, begin, end);
}

void StepTrack::add_steps(const std::vector<ProgramStep>& steps, uint64_t epoch, uint64_t begin,
                          uint64_t end) {
  static constexpr std::string_view names[] = {"", "put", "get", "raise", "wait"};
  for (const ProgramStep& step : steps)
    for (const StepEvent& event : events_of(step, epoch))
      if (event.kind != PW_TRACE_SIGNAL || whole_)
        add(static_cast<pw_trace_kind>(event.kind), names[event.kind], event,
            event.kind <= PW_TRACE_GET ? step.way : std::string_view(), begin, end);
}

void StepTrack::add(pw_trace_kind kind, std::string_view name, const StepEvent& what, std::string_view where,
                    uint64_t begin, uint64_t end) {
  pw_trace_event event{};
  event.begin = begin;
  event.duration = (end - begin) & ((uint64_t{1} << 44) - 1);
  event.bytes = what.bytes & ((uint64_t{1} << 44) - 1);
  event.kind = kind & 0x3ff;
  event.name = pw_trace_name(writer_, name.data(), name.size()) & 0x3ff;
  if (!where.empty()) event.where = pw_trace_name(writer_, where.data(), where.size()) & 0x3ff;
  event.peer = what.peer;
  event.tag = what.tag;
  pw_trace_add(writer_, &event);
}

}  // namespace pw
