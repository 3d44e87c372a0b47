#include "device/cuda/runner.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/launch.h"
#include "device/device.h"
#include "device/steps.h"

namespace pw::cuda {
namespace {

size_t index_of(PlanPart part) { return static_cast<size_t>(part); }

// Returns as many threads as the largest piece has words, plus one for each line's flag: fewer threads
// synchronise faster.
unsigned threads_for(PlanKernel kernel, std::span<const peerway::device::Step> steps) {
  unsigned most = 1;
  for (const peerway::device::Step& step : steps) {
    const unsigned flags = by_lines(step.kind) ? step.share / peerway::device::kWordsOfLine : 0;
    most = std::max({most, step.share + flags, step.words});
  }
  const bool lines = kernel == PlanKernel::few_lines || kernel == PlanKernel::some_lines;
  return std::min((most + 31) / 32 * 32, lines ? kLineThreads : kPlanThreads);
}

// Whether the step has no such words, or one for each piece, which counts epochs from `lag` on.
bool counts_epochs(const peerway::device::Step& step, const peerway::device::StepWords& words, uint64_t lag) {
  return words.word == nullptr ||
         (step.words == step.pieces && words.base == 0 && words.by == 1 && words.lag == lag);
}

// Whether the words lie in blocks at one stride of less than 2 GiB. `step` is the distance between words of
// the innermost level.
bool in_blocks(const peerway::device::StridedCopy& copy, int64_t step, int64_t stride) {
  return std::in_range<int>(stride) &&
         (copy.inner_levels == 0 || (copy.inner_levels == 1 && step == sizeof(peerway::device::Word)));
}

uint64_t bytes_of_sends(std::span<const peerway::device::Step> steps) {
  uint64_t bytes = 0;
  for (const peerway::device::Step& step : steps)
    if (step.kind == StepKind::copy || step.kind == StepKind::send_packets ||
        step.kind == StepKind::send_lines)
      bytes += uint64_t{step.copy.words} * step.unit;
  return bytes;
}

template <class Arguments>
void put_messages(Arguments& arguments, std::span<const peerway::device::Step> steps,
                  std::span<const PlanMessage> messages) {
  std::ranges::copy(messages, arguments.entry);
  for (size_t s = 0; s < steps.size(); ++s) arguments.ends[s] = steps[s].first + steps[s].pieces;
}

}  // namespace

// All blocks of a launch must be resident at once, because they wait for peers. With many bytes, a few
// multiprocessors fill the links. With less the latency of a piece counts, and the more pieces are under way
// at once the better (results/plan-room).
unsigned blocks_of_plan(unsigned pieces, uint64_t bytes, unsigned sms, bool room) {
  constexpr uint64_t kManyBytes = uint64_t{2} << 20;
  return std::min(pieces, room && bytes >= kManyBytes ? std::max(sms * 3 / 8, 1U) : sms);
}

std::vector<PlanMessage> make_messages(std::span<const peerway::device::Step> steps) {
  std::vector<PlanMessage> messages;
  for (const peerway::device::Step& step : steps) {
    const bool sends = step.kind == StepKind::send_packets || step.kind == StepKind::send_lines;
    const bool receives = step.kind == StepKind::receive_packets || step.kind == StepKind::receive_lines;
    const peerway::device::StridedCopy& copy = step.copy;
    const int64_t stride = sends ? copy.outer_from : copy.outer_to;
    if (!(sends || receives) || step.unit != 8 || by_lines(step.kind) != by_lines(steps.front().kind) ||
        !in_blocks(copy, sends ? copy.inner[0].from : copy.inner[0].to, stride) ||
        !counts_epochs(step, step.wait, 2) || !counts_epochs(step, step.mark, 0))
      return {};
    const peerway::device::Divisor block = copy.inner_levels > 0 ? copy.inner[0].divisor : divisor(1);
    PlanMessage message{};
    message.memory = sends ? const_cast<unsigned char*>(copy.from) : copy.to;
    message.slots = sends ? copy.to : const_cast<unsigned char*>(copy.from);
    message.stride = static_cast<int>(stride);
    message.credit = sends ? step.wait.word : step.mark.word;
    message.turn = static_cast<unsigned>((sends ? step.to_odd_offset : step.from_odd_offset) /
                                         sizeof(peerway::device::Line));
    message.block = block.count;
    message.magic = block.magic;
    message.shift = static_cast<unsigned char>(block.shift);
    const unsigned unit = by_lines(step.kind) ? peerway::device::kWordsOfLine : 1;
    message.count = (copy.words + unit - 1) / unit;
    message.share = step.share / unit;
    message.words = copy.words;
    message.rank = step.rank;
    message.sends = sends ? 1 : 0;
    messages.push_back(message);
  }
  return messages;
}

CudaRunner::CudaRunner(const Gpu& gpu, CUcontext context, Pins& pins, const Kernels& kernels,
                       const Program& program)
    : gpu_(gpu),
      context_(context),
      pins_(pins),
      kernels_(kernels),
      guard_(program.guard),
      start_steps_(program.start.size()),
      finish_steps_(program.finish.size()) {
  steps_ = make_steps(program, [this](const void* address) { return address_on(gpu_, pins_, address); });
  sent_bytes_ = bytes_of_sends(std::span(steps_).first(start_steps_));
  for (size_t s = 0; s < steps_.size(); ++s)
    (s < start_steps_                   ? start_pieces_
     : s < start_steps_ + finish_steps_ ? finish_pieces_
                                        : round_pieces_) += steps_[s].pieces;
  const Current current(gpu_.driver, context_);
  try {
    times_ = TracedTimes::make(gpu_, pins_, kernels_, program);
    upload();
    int least = 0, greatest = 0;
    gpu_.driver.check(gpu_.driver.cuCtxGetStreamPriorityRange(&least, &greatest),
                      "asking for the priorities of streams");
    gpu_.driver.check(gpu_.driver.cuStreamCreateWithPriority(&own_, CU_STREAM_NON_BLOCKING, greatest),
                      "making a stream");
    if (times_ != nullptr) times_->read_clock(own_);
    for (const PlanPart part : {PlanPart::start, PlanPart::finish, PlanPart::both}) prepare(part);
    prepare_rounds(program);
  } catch (...) {
    release();
    throw;
  }
}

CudaRunner::~CudaRunner() {
  const Current current(gpu_.driver, context_);
  gpu_.driver.cuStreamSynchronize(own_);
  if (times_ != nullptr) times_->read_clock(own_);
  release();  // also waits for kernels on other streams, so that the times are complete
  times_.reset();
}

void CudaRunner::release() noexcept {
  if (memory_ != 0) gpu_.driver.cuMemFree(memory_);
  if (own_ != nullptr) gpu_.driver.cuStreamDestroy(own_);
}

pw_guard CudaRunner::guard() const {
  return {reinterpret_cast<const unsigned long long*>(address_on(gpu_, pins_, &guard_->stop)),
          reinterpret_cast<unsigned long long*>(address_on(gpu_, pins_, &guard_->report)),
          reinterpret_cast<unsigned long long*>(guard_->polled), guard_->timeout_ns};
}

void CudaRunner::upload() {
  const Driver& driver = gpu_.driver;
  const size_t table = steps_.size() * sizeof(peerway::device::Step);
  const size_t counters = steps_.size() * sizeof(peerway::device::Word);
  const size_t epochs = (start_pieces_ + finish_pieces_ + round_pieces_) * sizeof(peerway::device::Word);
  messages_ = make_messages(steps_);
  const size_t times_at = (table + counters + epochs + 127) / 128 * 128;
  const size_t bytes =
      times_ != nullptr ? times_at + sizeof(peerway::device::StepTimes) : table + counters + epochs;
  if (bytes == 0) return;  // a plan in which this rank has nothing to move
  driver.check(driver.cuMemAlloc(&memory_, bytes), "allocating the table of a plan");
  driver.check(driver.cuMemsetD8Async(memory_, 0, bytes, nullptr), "clearing it");
  driver.check(driver.cuStreamSynchronize(nullptr), "clearing the table of a plan");
  epochs_ = memory_ + table + counters;
  if (times_ != nullptr) {
    times_in_memory_ = memory_ + times_at;
    const peerway::device::StepTimes times = times_->initial();
    driver.check(driver.cuMemcpy(times_in_memory_, reinterpret_cast<CUdeviceptr>(&times), sizeof times),
                 "writing where a plan's times go");
  }
  for (size_t s = 0; s < steps_.size(); ++s)
    if (steps_[s].pieces > 1 && steps_[s].words == 1 && steps_[s].mark.word != nullptr)
      steps_[s].finished =
          reinterpret_cast<peerway::device::Word*>(memory_ + table + s * sizeof(peerway::device::Word));
  if (!steps_.empty())
    driver.check(driver.cuMemcpy(memory_, reinterpret_cast<CUdeviceptr>(steps_.data()), table),
                 "writing the table of a plan");
}

// Whether the kernels for messages can run these steps.
bool CudaRunner::as_messages(PlanLaunch& launch, std::span<const peerway::device::Step> steps) const {
  if (messages_.empty() || steps.empty() || steps.size() > std::size(SomeMessages().entry)) return false;
  const bool few = steps.size() <= std::size(FewMessages().entry);
  launch.kernel = by_lines(steps.front().kind) ? (few ? PlanKernel::few_lines : PlanKernel::some_lines)
                                               : (few ? PlanKernel::few_packets : PlanKernel::some_packets);
  const size_t skipped = static_cast<size_t>(steps.data() - steps_.data());
  const auto messages = std::span<const PlanMessage>(messages_).subspan(skipped, steps.size());
  few ? put_messages(launch.few, steps, messages) : put_messages(launch.messages, steps, messages);
  return true;
}

void CudaRunner::prepare(PlanPart part) {
  const auto all = std::span<const peerway::device::Step>(steps_).first(start_steps_ + finish_steps_);
  const auto steps = part == PlanPart::start    ? all.first(start_steps_)
                     : part == PlanPart::finish ? all.subspan(start_steps_)
                                                : all;
  prepare(launch_[index_of(part)], steps, static_cast<unsigned>(part));
  launch_[index_of(part)].head.times = reinterpret_cast<peerway::device::StepTimes*>(times_in_memory_);
}

void CudaRunner::prepare(PlanLaunch& launch, std::span<const peerway::device::Step> steps, unsigned part) {
  const unsigned first = steps.empty() ? 0 : steps.front().first;
  const unsigned last = steps.empty() ? 0 : steps.back().first + steps.back().pieces;
  if (!as_messages(launch, steps)) {
    launch.kernel = steps.size() <= std::size(FewSteps().entry)    ? PlanKernel::few_steps
                    : steps.size() <= std::size(SomeSteps().entry) ? PlanKernel::some_steps
                                                                   : PlanKernel::many_steps;
    if (launch.kernel != PlanKernel::many_steps) std::ranges::copy(steps, launch.steps.entry);
  }
  launch.head = {reinterpret_cast<const void*>(memory_),
                 first,
                 last,
                 reinterpret_cast<peerway::device::Word*>(epochs_),
                 guard(),
                 nullptr,
                 part,
                 {}};
  launch.threads = threads_for(launch.kernel, steps);
  launch.blocks = blocks_of_plan(last - first, sent_bytes_, gpu_.sms, leaves_room_);
}

void CudaRunner::leave_room(bool yes) {
  if (yes == leaves_room_) return;
  leaves_room_ = yes;
  for (PlanLaunch& launch : launch_)
    launch.blocks = blocks_of_plan(launch.head.last - launch.head.first, sent_bytes_, gpu_.sms, leaves_room_);
}

// A trace has the times of the start and of the finish; it does not have those of the rounds.
void CudaRunner::prepare_rounds(const Program& program) {
  auto steps = std::span<const peerway::device::Step>(steps_).subspan(start_steps_ + finish_steps_);
  unsigned before = start_pieces_ + finish_pieces_;
  for (const ProgramRound& from : program.rounds) {
    Round round{};
    const auto of_round = steps.first(from.steps.size());
    unsigned pieces = 0;
    for (const peerway::device::Step& step : of_round) pieces += step.pieces;
    round.reduction = reduce_launch(from.reduction.value_or(peerway::device::Reduction{}), before, pieces);
    prepare(round.launch, of_round, static_cast<unsigned>(PlanPart::finish));
    before += pieces;
    steps = steps.subspan(of_round.size());
    rounds_.push_back(round);
  }
}

ReduceLaunch CudaRunner::reduce_launch(const peerway::device::Reduction& reduction, unsigned before,
                                       unsigned after) const {
  ReduceLaunch launch{};
  ReduceArguments& arguments = launch.arguments;
  arguments.reduction = reduction;
  const auto seen = [&](const unsigned char* address) {
    return address == nullptr ? 0 : address_on(gpu_, pins_, address);
  };
  arguments.reduction.to = reinterpret_cast<unsigned char*>(seen(reduction.to));
  arguments.reduction.local = reinterpret_cast<const unsigned char*>(seen(reduction.local));
  arguments.reduction.others = reinterpret_cast<const unsigned char*>(seen(reduction.others));
  const uint64_t together =
      seen(reduction.to) | seen(reduction.local) | seen(reduction.others) | reduction.stride;
  arguments.wide = together % 16 == 0 ? 1 : 0;
  arguments.epochs = reinterpret_cast<peerway::device::Word*>(epochs_);
  arguments.before = before;
  arguments.after = after;
  launch.function = kernels_.reduction({reduction.element, reduction.combine});
  // Each thread has at least one element, and more only if the GPU is full.
  constexpr uint64_t kReduceBlocksPerSm = 8;
  const uint64_t wanted = std::max<uint64_t>(1, (reduction.count + kReduceThreads - 1) / kReduceThreads);
  launch.blocks = static_cast<unsigned>(std::min<uint64_t>(wanted, kReduceBlocksPerSm * gpu_.sms));
  launch.early = launch.blocks <= gpu_.sms;
  return launch;
}

pw_status CudaRunner::launched(CUresult outcome, const char* launch) const {
  if (outcome == CUDA_SUCCESS) return PW_OK;
  return fail(Driver::status(outcome),
              format("{}: launching {}: {}", gpu_.name(), launch, gpu_.driver.text(outcome)));
}

pw_status CudaRunner::launch_rounds(CUstream stream, const Condition& condition) {
  for (Round& round : rounds_) {
    round.reduction.arguments.condition = round.launch.head.condition = condition;
    if (const pw_status status = launched(kernels_.launch(round.reduction, stream), "a reduction");
        status != PW_OK)
      return status;
    if (round.launch.blocks == 0) continue;
    round.launch.head.guard.timeout_ns = guard_->timeout_ns;
    if (const pw_status status = launched(kernels_.launch(round.launch, stream), "a plan"); status != PW_OK)
      return status;
  }
  return PW_OK;
}

pw_status CudaRunner::enqueue(void* stream, PlanPart part, const Condition& condition) {
  PlanLaunch& launch = launch_[index_of(part)];
  const auto queue = static_cast<CUstream>(stream);
  const Current current(gpu_.driver, context_);
  if (launch.blocks > 0) {
    launch.head.guard.timeout_ns = guard_->timeout_ns;
    launch.head.condition = condition;
    if (times_ != nullptr) {
      times_->take();
      launch.head.part = times_->launched(part);
    }
    if (const pw_status status = launched(kernels_.launch(launch, queue), "a plan"); status != PW_OK)
      return status;
  }
  return part == PlanPart::start ? PW_OK : launch_rounds(queue, condition);
}

pw_status CudaRunner::begin(PlanPart part, const std::optional<void*>& after) {
  begun_on_ = after ? static_cast<CUstream>(*after) : own_;
  return enqueue(begun_on_, part, {});
}

bool CudaRunner::done(pw_status& status) {
  const Current current(gpu_.driver, context_);
  const CUresult result = gpu_.driver.cuStreamQuery(begun_on_);
  status = PW_OK;
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (times_ != nullptr) times_->take();
  if (result != CUDA_SUCCESS)
    status =
        fail(Driver::status(result), format("{}: running a plan: {}", gpu_.name(), gpu_.driver.text(result)));
  return true;
}

bool CudaRunner::notify(void (*call)(void*), void* user) {
  const Current current(gpu_.driver, context_);
  return gpu_.driver.cuLaunchHostFunc(begun_on_, call, user) == CUDA_SUCCESS;
}

uint64_t CudaRunner::epochs(PlanPart part) {
  const unsigned piece = part == PlanPart::finish ? start_pieces_ : 0;
  uint64_t epoch = 0;
  if (piece == start_pieces_ + finish_pieces_) return 0;
  const Current current(gpu_.driver, context_);
  gpu_.driver.cuMemcpy(reinterpret_cast<CUdeviceptr>(&epoch), epochs_ + piece * sizeof epoch, sizeof epoch);
  return epoch & ~peerway::device::kCancelled;
}

pw_status CudaRunner::handle(pw_plan_handle& handle) {
  handle.version = PW_HANDLE_VERSION;
  handle.steps = reinterpret_cast<const void*>(memory_);
  handle.start_pieces = start_pieces_;
  handle.finish_pieces = finish_pieces_;
  handle.epoch = reinterpret_cast<unsigned long long*>(epochs_);
  handle.times = times_in_memory_ == 0 ? 0 : static_cast<unsigned>((times_in_memory_ - epochs_) / 8);
  handle.guard = guard();
  return PW_OK;
}

}  // namespace pw::cuda
