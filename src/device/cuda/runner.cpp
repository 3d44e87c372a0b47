#include "device/cuda/runner.h"

#include <algorithm>
#include <span>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/launch.h"
#include "device/device.h"
#include "device/steps.h"

namespace pw::cuda {
namespace {

size_t index_of(PlanPart part) { return static_cast<size_t>(part); }

// As many as the largest piece has words: fewer threads meet faster.
unsigned threads_for(std::span<const peerway::device::Step> steps) {
  unsigned most = 1;
  for (const peerway::device::Step& step : steps) most = std::max({most, step.share, step.words});
  return std::min((most + 31) / 32 * 32, kPlanThreads);
}

}  // namespace

std::vector<PacketPiece> make_packet_pieces(std::span<const peerway::device::Step> steps) {
  std::vector<PacketPiece> pieces;
  for (const peerway::device::Step& step : steps) {
    const bool sends = step.kind == StepKind::send_packets;
    const bool packets = sends || step.kind == StepKind::receive_packets;
    const bool waits = step.wait.word != nullptr || step.mark.word != nullptr;
    if (!packets || step.unit != 8 || step.copy.inner_levels > 0 || waits) return {};
    const int64_t stride = sends ? step.copy.outer_from : step.copy.outer_to;
    auto* memory = sends ? const_cast<unsigned char*>(step.copy.from) : step.copy.to;
    auto* slots = sends ? step.copy.to : const_cast<unsigned char*>(step.copy.from);
    for (unsigned first = 0; first < step.copy.words; first += step.share)
      pieces.push_back({memory + first * stride, slots + first * sizeof(peerway::device::Packet),
                        sends ? step.to_turn : step.from_turn, stride,
                        std::min(step.share, step.copy.words - first), sends ? 1u : 0u, step.rank});
    // A piece may be left without words; it counts its epochs all the same.
    while (pieces.size() < step.first - steps.front().first + step.pieces)
      pieces.push_back({memory, slots, 0, 0, 0, sends ? 1u : 0u, step.rank});
  }
  return pieces;
}

CudaRunner::CudaRunner(const Gpu& gpu, CUcontext context, Pins& pins, const Kernels& kernels,
                       const Program& program)
    : gpu_(gpu),
      context_(context),
      pins_(pins),
      kernels_(kernels),
      guard_(program.guard),
      start_steps_(program.start.size()) {
  steps_ = make_steps(program, [this](const void* address) { return address_on(gpu_, pins_, address); });
  for (size_t s = 0; s < steps_.size(); ++s)
    (s < start_steps_ ? start_pieces_ : finish_pieces_) += steps_[s].pieces;
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
  } catch (...) {
    release();
    throw;
  }
  for (const PlanPart part : {PlanPart::start, PlanPart::finish, PlanPart::both}) prepare(part);
}

CudaRunner::~CudaRunner() {
  const Current current(gpu_.driver, context_);
  gpu_.driver.cuStreamSynchronize(own_);
  if (times_ != nullptr) times_->read_clock(own_);
  release();  // which waits for kernels on other streams, too: only then are the times whole
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
  const size_t epochs = (start_pieces_ + finish_pieces_) * sizeof(peerway::device::Word);
  pieces_ = make_packet_pieces(steps_);
  const size_t pieces_at = (table + counters + epochs + 127) / 128 * 128;
  const size_t times_at = (pieces_at + pieces_.size() * sizeof(PacketPiece) + 127) / 128 * 128;
  const size_t bytes = times_ != nullptr ? times_at + sizeof(peerway::device::StepTimes)
                                         : pieces_at + pieces_.size() * sizeof(PacketPiece);
  if (bytes == 0) return;  // a plan of a rank that has nothing to move
  driver.check(driver.cuMemAlloc(&memory_, bytes), "allocating the table of a plan");
  driver.check(driver.cuMemsetD8Async(memory_, 0, bytes, nullptr), "clearing it");
  driver.check(driver.cuStreamSynchronize(nullptr), "clearing the table of a plan");
  epochs_ = memory_ + table + counters;
  pieces_in_memory_ = memory_ + pieces_at;
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
  if (!pieces_.empty())
    driver.check(driver.cuMemcpy(pieces_in_memory_, reinterpret_cast<CUdeviceptr>(pieces_.data()),
                                 pieces_.size() * sizeof(PacketPiece)),
                 "writing the pieces of a plan");
}

void CudaRunner::prepare(PlanPart part) {
  PlanLaunch& launch = launch_[index_of(part)];
  const unsigned first = part == PlanPart::finish ? start_pieces_ : 0;
  const unsigned last = part == PlanPart::start ? start_pieces_ : start_pieces_ + finish_pieces_;
  const std::span<const peerway::device::Step> all(steps_);
  const auto steps = part == PlanPart::start    ? all.first(start_steps_)
                     : part == PlanPart::finish ? all.subspan(start_steps_)
                                                : all;
  const void* in_memory = reinterpret_cast<const void*>(memory_);
  if (!pieces_.empty()) {
    const auto pieces = std::span<const PacketPiece>(pieces_).subspan(first, last - first);
    in_memory = reinterpret_cast<const PacketPiece*>(pieces_in_memory_) + first;
    launch.kernel = pieces.size() <= std::size(FewPieces().entry)    ? PlanKernel::few_pieces
                    : pieces.size() <= std::size(SomePieces().entry) ? PlanKernel::some_pieces
                                                                     : PlanKernel::many_pieces;
    if (launch.kernel != PlanKernel::many_pieces) std::ranges::copy(pieces, launch.pieces.entry);
  } else {
    launch.kernel = steps.size() <= std::size(FewSteps().entry)    ? PlanKernel::few_steps
                    : steps.size() <= std::size(SomeSteps().entry) ? PlanKernel::some_steps
                                                                   : PlanKernel::many_steps;
    if (launch.kernel != PlanKernel::many_steps) std::ranges::copy(steps, launch.steps.entry);
  }
  launch.head = {in_memory,
                 first,
                 last,
                 reinterpret_cast<peerway::device::Word*>(epochs_),
                 guard(),
                 reinterpret_cast<peerway::device::StepTimes*>(times_in_memory_),
                 static_cast<unsigned>(part)};
  launch.threads = threads_for(steps);
  // Blocks of a launch wait for peers, so all of them must find room at once.
  launch.blocks = std::min(last - first, gpu_.sms);
}

pw_status CudaRunner::enqueue(void* stream, PlanPart part) {
  PlanLaunch& launch = launch_[index_of(part)];
  if (launch.blocks == 0) return PW_OK;
  launch.head.guard.timeout_ns = guard_->timeout_ns;
  if (times_ != nullptr) {
    times_->take();
    launch.head.part = times_->launched(part);
  }
  const Current current(gpu_.driver, context_);
  const CUresult result = kernels_.launch(launch, static_cast<CUstream>(stream));
  return result == CUDA_SUCCESS
             ? PW_OK
             : fail(Driver::status(result),
                    format("peerway: cuda:{}: launching a plan: {}", gpu_.ordinal, gpu_.driver.text(result)));
}

pw_status CudaRunner::begin(PlanPart part, const std::optional<void*>& after) {
  begun_on_ = after ? static_cast<CUstream>(*after) : own_;
  return enqueue(begun_on_, part);
}

bool CudaRunner::done(pw_status& status) {
  const Current current(gpu_.driver, context_);
  const CUresult result = gpu_.driver.cuStreamQuery(begun_on_);
  status = PW_OK;
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (times_ != nullptr) times_->take();
  if (result != CUDA_SUCCESS)
    status = fail(Driver::status(result),
                  format("peerway: cuda:{}: running a plan: {}", gpu_.ordinal, gpu_.driver.text(result)));
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
