#include "device/cuda/step_times.h"

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <new>

#include "base/clock.h"
#include "base/relax.h"
#include "base/status.h"

namespace pw::cuda {
namespace {

using peerway::device::StepTimes;

constexpr uint64_t kRecords = 4096;
constexpr uint64_t kClockBytes = 4096;
constexpr uint64_t kBytes = kClockBytes + kRecords * sizeof(peerway::device::StepRecord);
constexpr uint64_t kRounds = 16;
constexpr uint64_t kTimeoutNs = 200'000'000;  // the GPU may be full of kernels that wait for one another

uint32_t number_of(const Gpu& gpu) {
  CUuuid uuid{};
  if (gpu.driver.cuDeviceGetUuid(&uuid, gpu.ordinal) != CUDA_SUCCESS)
    return static_cast<uint32_t>(gpu.ordinal);
  uint32_t number = 2166136261u;
  for (const char byte : uuid.bytes) number = (number ^ static_cast<unsigned char>(byte)) * 16777619u;
  return number;
}

StepRun run_of(uint64_t part, uint64_t begin, uint64_t end) {
  const auto site = static_cast<unsigned>(part >> StepTimes::part_bits);
  const auto index = static_cast<unsigned>(part & ((1u << StepTimes::part_bits) - 1));
  const bool in_kernel = index >= StepTimes::in_kernels;
  return {static_cast<PlanPart>(in_kernel ? index - StepTimes::in_kernels : index), in_kernel, site, begin,
          end};
}

}  // namespace

std::unique_ptr<TracedTimes> TracedTimes::make(const Gpu& gpu, Pins& pins, const Kernels& kernels,
                                               const Program& program) {
  auto track = StepTrack::make(program, {gpu.driver.vendor.kind, gpu.ordinal}, number_of(gpu));
  if (track == nullptr) return nullptr;
  return std::unique_ptr<TracedTimes>(new TracedTimes(gpu, pins, kernels, std::move(track)));
}

TracedTimes::TracedTimes(const Gpu& gpu, Pins& pins, const Kernels& kernels, std::unique_ptr<StepTrack> track)
    : gpu_(gpu), pins_(pins), kernels_(kernels), track_(std::move(track)) {
  memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) throw Error(PW_NO_MEMORY, "no host memory for the times of a plan");
  try {
    pins_.pin(memory_, kBytes);
  } catch (...) {
    munmap(memory_, kBytes);
    throw;
  }
  records_ = reinterpret_cast<peerway::device::StepRecord*>(static_cast<std::byte*>(memory_) + kClockBytes);
}

TracedTimes::~TracedTimes() {
  take();
  pins_.unpin(memory_);
  munmap(memory_, kBytes);
}

StepTimes TracedTimes::initial() const {
  StepTimes times{};
  times.mask = kRecords - 1;
  times.record = reinterpret_cast<peerway::device::StepRecord*>(address_on(gpu_, pins_, records_));
  return times;
}

unsigned TracedTimes::launched(PlanPart part) {
  const std::lock_guard lock(mutex_);
  return track_->site() << StepTimes::part_bits | static_cast<unsigned>(part);
}

void TracedTimes::take() {
  const std::lock_guard lock(mutex_);
  for (;;) {
    peerway::device::StepRecord& record = records_[taken_ & (kRecords - 1)];
    const auto load = [](unsigned long long& word) {
      return std::atomic_ref(word).load(std::memory_order_relaxed);
    };
    const uint64_t number = std::atomic_ref(record.number).load(std::memory_order_acquire);
    if (number <= taken_) return;
    const uint64_t part = load(record.part), begin = load(record.begin), end = load(record.end);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (load(record.number) != number) continue;  // it was overwritten meanwhile
    if (number > taken_ + 1) track_->count_lost(number - taken_ - 1);
    taken_ = number;
    track_->record_run(run_of(part, begin, end));
  }
}

// The kernel answers each word of the host with its time. The shortest round trip bounds the offset between
// the two clocks best, so its middle is used.
void TracedTimes::read_clock(CUstream stream) {
  auto* words = static_cast<uint64_t*>(memory_);
  const auto word = [words](size_t line) { return std::atomic_ref(words[16 * line]); };
  for (const size_t line : {0, 1, 2}) word(line).store(0, std::memory_order_relaxed);
  if (kernels_.launch_clock(CUdeviceptr{address_on(gpu_, pins_, memory_)}, kRounds, stream) != CUDA_SUCCESS)
    return;
  constexpr int kPolls = 256;  // polls before other threads get the CPU
  uint64_t best = UINT64_MAX, gpu_ns = 0, host_ns = 0;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const uint64_t before = now_ns();
    word(0).store(round, std::memory_order_release);
    int polls = 0;
    while (word(2).load(std::memory_order_acquire) != round && now_ns() - before < kTimeoutNs)
      ++polls % kPolls == 0 ? static_cast<void>(sched_yield()) : relax();
    if (word(2).load(std::memory_order_acquire) != round) break;  // the kernel ends after its own timeout
    const uint64_t took = now_ns() - before;
    if (took >= best) continue;
    best = took;
    gpu_ns = word(1).load(std::memory_order_relaxed);
    host_ns = before + took / 2;
  }
  gpu_.driver.cuStreamSynchronize(stream);
  if (best != UINT64_MAX) track_->record_clock_pair(gpu_ns, host_ns);
}

}  // namespace pw::cuda
