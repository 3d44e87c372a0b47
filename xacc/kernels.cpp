#include "xacc/kernels.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "xacc/failure.h"
#include "xacc/gpu.h"
#include "xacc/launches.h"
#include "xacc/operators.h"

namespace pwx {
namespace {

using namespace pw::cuda;

constexpr size_t kMostArguments = 256, kMostReductions = 16;
constexpr size_t kWidest = 8;  // bytes of a value that a kernel reduces

/// As the prelude has it, whatever T is.
struct Total {
  void* of_blocks;
  unsigned* done;
  void* result;
  int join;
};

}  // namespace

/// What the reductions of a kernel use while it runs on one queue.
struct Scratch {
  long queue;
  CUdeviceptr memory = 0;        ///< of_blocks of each reduction, then `done` of each
  std::byte* results = nullptr;  ///< host memory that the GPU writes
  CUdeviceptr results_on_gpu = 0;
  bool awaited = false;  ///< the host has not taken the results of the last launch yet
};

}  // namespace pwx

struct pwx_kernel_state {
  pw::cuda::CUfunction function = nullptr;
  pw::cuda::CUmodule module = nullptr;
  std::vector<std::unique_ptr<pwx::Scratch>> scratch;
};

namespace pwx {
namespace {

std::vector<std::unique_ptr<pwx_kernel_state>>& kernels() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_kernel_state>>;  // outlives atexit
  return all;
}

const Nvrtc& nvrtc() {
  static std::string why;
  static const std::unique_ptr<Nvrtc> found = Nvrtc::load(nvrtc_candidates(pw::config("nvrtc_library")), why);
  if (found == nullptr) throw Failure(why);
  return *found;
}

/// Whether the compiler joins any accesses to neighbours once it knows how arrays are aligned. Where it joins
/// none it shall not know: what it assumes of a pointer keeps reads out of the read-only cache (NVRTC 13.0;
/// 20 % of the time of a hop of lattice QCD).
bool joins_accesses(const KernelSource& source, std::vector<std::string> options) {
  if (std::string_view(source.text).find("  PWX_ALIGNED(") == std::string_view::npos) return false;
  for (std::string& option : options)
    if (option.starts_with("-arch=sm_")) option.replace(0, 9, "-arch=compute_");
  const std::string ptx = nvrtc().compile({&source, 1}, options);
  return ptx.find(".v2.") != std::string::npos || ptx.find(".v4.") != std::string::npos;
}

std::string image_of(const pwx_kernel& kernel, int capability) {
  std::vector<std::string> options = nvrtc().options(capability);
  for (std::string& option : options)
    if (option.starts_with("--std=")) option = "--std=c++20";
  options.emplace_back("--restrict");
  options.emplace_back("--device-as-default-execution-space");
  const std::string text =
      std::string(prelude().text) + "\n#line 1 \"" + kernel.name + "\"\n" + kernel.source;
  std::string key = "peerway cc 2\nnvrtc " + nvrtc().version() + "\n";
  for (const std::string& option : options) key += option + "\n";
  const std::string cache = pw::config("cache");
  return cached_image((cache.empty() ? pw::cache_home() : cache) + "/kernels", key + text, [&] {
    const KernelSource source{kernel.name, text.c_str()};
    std::vector<std::string> joined = options;
    joined.emplace_back("--define-macro=PWX_JOINED");
    return nvrtc().compile({&source, 1}, joins_accesses(source, joined) ? joined : options);
  });
}

pwx_kernel_state& loaded(pwx_kernel& kernel) {
  if (kernel.state != nullptr) return *kernel.state;
  const Gpu& gpu = the_gpu();
  auto made = std::make_unique<pwx_kernel_state>();
  const std::string image = image_of(kernel, gpu.capability());
  gpu.check(gpu.driver.cuModuleLoadData(&made->module, image.data()), "loading a kernel");
  gpu.check(gpu.driver.cuModuleGetFunction(&made->function, made->module, kernel.name), "finding a kernel");
  kernel.state = kernels().emplace_back(std::move(made)).get();
  return *kernel.state;
}

size_t room_of_blocks(const Gpu& gpu) { return kWidest * most_joined(gpu.processors()); }

Scratch& scratch_of(pwx_kernel_state& kernel, long queue, int reductions) {
  for (const auto& one : kernel.scratch)
    if (one->queue == queue) return *one;
  const Gpu& gpu = the_gpu();
  auto made = std::make_unique<Scratch>(Scratch{queue});
  const auto count = static_cast<size_t>(reductions);
  const size_t bytes = count * (room_of_blocks(gpu) + sizeof(uint64_t));
  gpu.check(gpu.driver.cuMemAlloc(&made->memory, bytes), "memory of a reduction");
  gpu.check(gpu.driver.cuMemsetD8Async(made->memory, 0, bytes, stream_of(queue)), "clearing memory");
  constexpr size_t kPage = 4096;
  made->results = static_cast<std::byte*>(std::aligned_alloc(kPage, kPage));
  if (made->results == nullptr) throw Failure("no memory for the result of a reduction");
  gpu.check(
      gpu.driver.cuMemHostRegister(made->results, kPage, kHostRegisterPortable | kHostRegisterDeviceMap),
      "pinning memory");
  gpu.check(gpu.driver.cuMemHostGetDevicePointer(&made->results_on_gpu, made->results, 0), "pinning memory");
  return *kernel.scratch.emplace_back(std::move(made));
}

/// A result that the host is to have once its queue was waited for.
struct Pending {
  Combine combine;
  void* host;
  const std::byte* result;
  Scratch* scratch;
};

void take(const Pending& one) {
  one.combine(one.host, one.host, one.result, 1);
  one.scratch->awaited = false;
}

pwx_op plain(pwx_op op) { return op == PWX_MINUS ? PWX_SUM : op; }

struct Reductions {
  std::array<Total, kMostReductions> totals;
  std::vector<Pending> pending;
};

void prepare(Reductions& made, pwx_kernel_state& kernel, int count, const pwx_reduction* asked, long queue) {
  const Gpu& gpu = the_gpu();
  Scratch& scratch = scratch_of(kernel, queue, count);
  if (scratch.awaited) wait_for(queue);
  const CUdeviceptr done = scratch.memory + static_cast<size_t>(count) * room_of_blocks(gpu);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (size_of(asked[i].type) > kWidest) refuse("a reduction of a type that GPUs do not have");
    const bool stays = asked[i].device != nullptr;
    made.totals[i] = {reinterpret_cast<void*>(scratch.memory + i * room_of_blocks(gpu)),
                      reinterpret_cast<unsigned*>(done + i * sizeof(uint64_t)),
                      stays ? asked[i].device : reinterpret_cast<void*>(scratch.results_on_gpu + i * kWidest),
                      stays ? 1 : 0};
    if (!stays)
      made.pending.push_back({combine_of(plain(asked[i].op), asked[i].type), asked[i].host,
                              scratch.results + i * kWidest, &scratch});
  }
  scratch.awaited = !made.pending.empty();
}

void deliver(const std::vector<Pending>& pending, long queue) {
  if (pending.empty()) return;
  if (queue == PWX_QUEUE_SYNC) {
    wait_for(queue);
    for (const Pending& one : pending) take(one);
    return;
  }
  for (const Pending& one : pending)
    when_finished(
        queue,
        [](void* user) {
          const std::unique_ptr<Pending> mine(static_cast<Pending*>(user));
          take(*mine);
        },
        new Pending(one));
}

void launch(pwx_kernel& kernel, const pwx_shape& shape, void** arguments, size_t argument_count,
            int reduction_count, const pwx_reduction* reductions, long queue) {
  for (const long count : shape.iterations)
    if (count <= 0) return;
  const Gpu& gpu = the_gpu();
  pwx_kernel_state& state = loaded(kernel);
  const auto count = static_cast<size_t>(reduction_count);
  if (argument_count + count > kMostArguments || count > kMostReductions)
    refuse("a loop with ", argument_count, " variables and ", count, " reductions; at most ", kMostArguments,
           " and ", kMostReductions, " are possible");
  const Grid grid = grid_of(shape, count > 0, gpu.processors());
  std::array<void*, kMostArguments> all;
  std::memcpy(all.data(), arguments, argument_count * sizeof(void*));
  Reductions made;
  if (count > 0) prepare(made, state, reduction_count, reductions, queue);
  for (size_t i = 0; i < count; ++i) all[argument_count + i] = &made.totals[i];
  gpu.check(gpu.driver.cuLaunchKernel(state.function, grid.blocks[0], grid.blocks[1], grid.blocks[2],
                                      grid.threads, 1, 1, 0, stream_of(queue), all.data(), nullptr),
            "launching the loop");
  deliver(made.pending, queue);
}

}  // namespace

void free_kernels() {
  for (const auto& kernel : kernels()) {
    const Gpu& gpu = the_gpu();
    for (const auto& scratch : kernel->scratch) {
      gpu.driver.cuMemFree(scratch->memory);
      gpu.driver.cuMemHostUnregister(scratch->results);
      std::free(scratch->results);
    }
    kernel->scratch.clear();
    gpu.driver.cuModuleUnload(kernel->module);
  }
}

}  // namespace pwx

extern "C" void pwx_launch(pwx_kernel* kernel, const pwx_shape* shape, void** arguments, int argument_count,
                           int reduction_count, const pwx_reduction* reductions, long queue,
                           const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::launch(*kernel, *shape, arguments, static_cast<size_t>(argument_count), reduction_count, reductions,
                queue);
  });
}
