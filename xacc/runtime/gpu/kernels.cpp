#include "xacc/runtime/gpu/kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/cuda/kernel_cache.h"
#include "device/gpu_code.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/grid.h"
#include "xacc/runtime/gpu/kernel_reductions.h"
#include "xacc/runtime/gpu/sequences.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

using namespace pw::cuda;

constexpr size_t kMostCompilers = 4;  // at once; the host's other ranks compile, too

}  // namespace
}  // namespace pwx

struct pwx_kernel_state {
  pw::cuda::CUfunction function = nullptr;
  pw::cuda::CUmodule module = nullptr;
  bool in_order = false;     ///< it waits for the work before it itself
  bool conditional = false;  ///< it has the state of a loop as a parameter
  bool can_overlap = false;  ///< a reflect before it
  unsigned at_once = 1;      ///< blocks that the GPU runs
};

namespace pwx {
namespace {

/// A word on the GPU that is always 0, for kernels that overlap reflects.
CUdeviceptr zero_word = 0;

void make_zero_word() {
  const Gpu& gpu = the_gpu();
  uint32_t zero = 0;
  gpu.check(gpu.driver.cuMemAlloc(&zero_word, sizeof zero), "preparing kernels");
  gpu.check(gpu.driver.cuMemcpy(zero_word, reinterpret_cast<CUdeviceptr>(&zero), sizeof zero),
            "preparing kernels");
}

std::vector<std::unique_ptr<pwx_kernel_state>>& kernels() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_kernel_state>>;  // outlives atexit
  return all;
}

const Nvrtc& compiler_for(const Gpu& gpu) {
  static std::string why;
  static const std::unique_ptr<Nvrtc> compiler = pw::load_gpu_compiler(gpu.driver.vendor.kind, why);
  if (compiler == nullptr) throw Failure(why);
  return *compiler;
}

/// Whether NVRTC merges any neighbouring accesses if it knows the alignment of arrays. If it merges none, we
/// compile without that knowledge: an assumption about a pointer keeps its reads out of the read-only cache
/// (NVRTC 13.0; it costs 20 % of the time of a hop of lattice QCD). AMD GPUs need no such knowledge: their
/// widest loads need an alignment of 4 bytes only.
bool joins_accesses(const Nvrtc& compiler, const KernelSource& source, std::vector<std::string> options) {
  if (compiler.kind() != Nvrtc::Kind::nvrtc) return false;
  if (std::string_view(source.text).find("  PWX_ALIGNED(") == std::string_view::npos) return false;
  for (std::string& option : options)
    if (option.starts_with("-arch=sm_")) option.replace(0, 9, "-arch=compute_");
  const std::string ptx = compiler.compile({&source, 1}, options);
  return ptx.find(".v2.") != std::string::npos || ptx.find(".v4.") != std::string::npos;
}

/// Whether the program has only one rank, or has none of xmp's directives.
bool is_alone() {
  const Program* const begun = program_if_begun();
  return begun == nullptr || begun->size() == 1;
}

std::vector<std::string> options_of(const pwx_kernel& kernel, const Gpu& gpu, const Nvrtc& compiler) {
  std::vector<std::string> options = pw::options_for_gpu(gpu.driver, compiler, gpu.ordinal, "c++20");
  const bool on_nvidia = compiler.kind() == Nvrtc::Kind::nvrtc;
  if (on_nvidia) options.insert(options.end(), {"--restrict", "--device-as-default-execution-space"});
  if (kernel.apart != nullptr && is_alone()) options.emplace_back("-DPWX_ALONE");
  // Without it, arithmetic between loops would have other bits than on the host.
  if (std::string_view(kernel.source).find("PWX_ONE_THREAD") != std::string_view::npos)
    options.emplace_back(on_nvidia ? "--fmad=false" : "-ffp-contract=off");
  return options;
}

/// The registers of a thread, as ptxas says them; 0 if it says none.
int registers_of(const std::string& log) {
  constexpr std::string_view kUsed = "Used ";
  const size_t at = log.find(kUsed);
  return at == std::string::npos ? 0 : std::atoi(log.c_str() + at + kUsed.size());
}

/// Compiles a kernel. If its threads have so many registers that a multiprocessor runs only one block of 256,
/// they get fewer, as long as none is spilled: while one block waits for memory or halos, the other has
/// something to do.
std::string compiled(const Nvrtc& compiler, std::span<const KernelSource> sources,
                     std::vector<std::string> options) {
  if (compiler.kind() != Nvrtc::Kind::nvrtc) return compiler.compile(sources, options);
  constexpr int kRegistersOfTwo = 128;
  options.emplace_back("--ptxas-options=-v");
  std::string log;
  std::string image = compiler.compile(sources, options, &log);
  if (registers_of(log) <= kRegistersOfTwo) return image;
  options.insert(options.end(), {"--maxrregcount=" + std::to_string(kRegistersOfTwo),
                                 "--ptxas-options=--warn-on-spills", "--ptxas-options=-Werror"});
  try {
    return compiler.compile(sources, options);
  } catch (const std::exception&) {  // it would spill some
    return image;
  }
}

std::string image_of(const pwx_kernel& kernel, const Gpu& gpu) {
  const Nvrtc& compiler = compiler_for(gpu);
  const std::vector<std::string> options = options_of(kernel, gpu, compiler);
  const std::string text = std::string(prelude()) + "\n#line 1 \"" + kernel.name + "\"\n" + kernel.source;
  std::string key = "peerway cc 3\n" + std::string(compiler.name()) + " " + compiler.version() + "\n";
  for (const std::string& option : options) key += option + "\n";
  std::vector<KernelSource> sources = {{kernel.name, text.c_str()}};
  if (kernel.reduces_ranks != 0)
    for (const KernelSource& header : kernel_sources()) {
      sources.push_back(header);
      key += header.text;
    }
  return cached_image(kernel_folder(), key + text, [&] {
    std::vector<std::string> joined = options;
    joined.emplace_back("--define-macro=PWX_JOINED");
    return compiled(compiler, sources, joins_accesses(compiler, sources.front(), joined) ? joined : options);
  });
}

/// Whether a kernel can begin while the launch before it runs (programmatic dependent launch).
bool begins_kernels_early(const Gpu& gpu) {
  constexpr int kFirstMajor = 9;
  int major = 0;
  return gpu.driver.vendor.kind == PW_CUDA &&
         gpu.driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.ordinal) ==
             CUDA_SUCCESS &&
         major >= kFirstMajor;
}

std::vector<pwx_kernel*>& preloaded_kernels() {
  static auto& all = *new std::vector<pwx_kernel*>;  // outlives atexit
  return all;
}

pwx_kernel_state& load(pwx_kernel& kernel, const std::string& image) {
  const Gpu& gpu = the_gpu();
  auto state = std::make_unique<pwx_kernel_state>();
  gpu.check(gpu.driver.cuModuleLoadData(&state->module, image.data()), "loading a kernel");
  gpu.check(gpu.driver.cuModuleGetFunction(&state->function, state->module, kernel.name), "finding a kernel");
  int of_processor = 0;
  gpu.check(gpu.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, state->function,
                                                                   kUsualThreads, 0),
            "asking how many blocks of a kernel run at once");
  state->at_once = blocks_at_once(gpu.processors(), of_processor);
  state->in_order = kernel.reduces_ranks != 0 || kernel.apart != nullptr ||
                    std::string_view(kernel.source).find("pwx_begin_in_order();") != std::string_view::npos;
  state->conditional = std::string_view(kernel.source).find("const int* pwx_state") != std::string_view::npos;
  state->can_overlap = kernel.apart != nullptr && !is_alone() && begins_kernels_early(gpu);
  if (state->can_overlap && zero_word == 0) make_zero_word();
  kernel.state = kernels().emplace_back(std::move(state)).get();
  return *kernel.state;
}

pwx_kernel_state& loaded(pwx_kernel& kernel) {
  return kernel.state != nullptr ? *kernel.state : load(kernel, image_of(kernel, the_gpu()));
}

/// The number of the kernel with which this rank begins to compile `count` of them, so that the ranks of a
/// host, which share what they have compiled, begin with different ones.
size_t first_to_compile(size_t count) {
  const Program* const begun = program_if_begun();
  if (begun == nullptr) return 0;
  return count * static_cast<size_t>(begun->rank()) / static_cast<size_t>(begun->size());
}

/// The images of all these kernels, compiled in parallel; the image of one that fails is empty.
std::vector<std::string> images_of(const std::vector<pwx_kernel*>& all, const Gpu& gpu) {
  std::vector<std::string> images(all.size());
  std::atomic<size_t> next{0};
  const size_t first = first_to_compile(all.size());
  const auto work = [&] {
    for (size_t n = next++; n < all.size(); n = next++) {
      const size_t i = (first + n) % all.size();
      try {
        images[i] = image_of(*all[i], gpu);
      } catch (const std::exception&) {
        images[i].clear();
      }
    }
  };
  std::vector<std::thread> others;
  const size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
  for (size_t i = 1; i < std::min({cores, kMostCompilers, all.size()}); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return images;
}

KernelLaunch launch_of(pwx_kernel& kernel, const pwx_shape& shape, bool reduces, peerway::Plan* plan) {
  const pwx_kernel_state& state = loaded(kernel);
  return {state.function, state.in_order, state.conditional, grid_of(shape, reduces, state.at_once), plan};
}

/// Whether a kernel may begin while the reflect that was launched last is under way: it writes none of its
/// arrays, and reaches none in another way than the compiler knows.
bool may_overlap(const pwx_kernel& kernel, void** arguments) {
  if (!kernel.state->can_overlap) return false;
  const std::span<const MemoryOnGpu> refreshed = refreshed_last();
  const auto is_used = [&](const MemoryOnGpu& memory) {
    for (const int* number = kernel.apart; *number >= 0; ++number) {
      std::byte* address = nullptr;
      std::memcpy(static_cast<void*>(&address), arguments[*number], sizeof address);
      if (memory.first <= address && address < memory.first + memory.bytes) return true;
    }
    return false;
  };
  return !refreshed.empty() && std::ranges::none_of(refreshed, is_used);
}

void launch(pwx_kernel& kernel, const pwx_shape& shape, void** arguments, size_t argument_count,
            int reduction_count, const pwx_reduction* reductions, long queue) {
  if (std::ranges::any_of(shape.iterations, [](long iterations) { return iterations <= 0; })) {
    if (queue == PWX_QUEUE_SYNC) skip_in_order();
    return;
  }
  const auto count = static_cast<size_t>(reduction_count);
  if (argument_count + count > kMostArguments || count > kMostReductions)
    refuse("a loop with ", argument_count, " variables and ", count, " reductions; at most ", kMostArguments,
           " and ", kMostReductions, " are possible");
  KernelLaunch launched = launch_of(kernel, shape, count > 0, nullptr);
  if (queue == PWX_QUEUE_SYNC && may_overlap(kernel, arguments)) {
    launched.overlaps = zero_word;
    overlap_last_reflect();
  }
  if (queue == PWX_QUEUE_SYNC && count == 0)
    return launch_in_order(launched, arguments, kernel.sizes, argument_count);
  std::array<void*, kMostArguments> all;
  std::copy_n(arguments, argument_count, all.data());
  KernelReductions totals;
  if (count > 0) totals = prepare_reductions(reduction_count, reductions, queue);
  for (size_t i = 0; i < count; ++i) all[argument_count + i] = &totals.arguments[i];
  if (queue == PWX_QUEUE_SYNC && totals.slots.empty() && kernel.sizes != nullptr) {
    std::array<unsigned, kMostArguments> sizes;
    std::copy_n(kernel.sizes, argument_count, sizes.data());
    std::fill_n(sizes.begin() + static_cast<ptrdiff_t>(argument_count), count, sizeof(Total));
    return launch_in_order(launched, all.data(), sizes.data(), argument_count + count);
  }
  launch_on(stream_of(queue), launched, {all.data(), argument_count + count});
  deliver_reductions(totals, reductions, reduction_count, queue);
}

}  // namespace

void preload(pwx_kernel& kernel) {
  if (std::ranges::find(preloaded_kernels(), &kernel) == preloaded_kernels().end())
    preloaded_kernels().push_back(&kernel);
}

void load_kernels(std::vector<pwx_kernel*> all) {
  all.insert(all.end(), preloaded_kernels().begin(), preloaded_kernels().end());
  if (all.empty()) return;
  const auto reduces = [](const pwx_kernel* kernel) {
    return std::string_view(kernel->source).find("pwx_total<") != std::string_view::npos;
  };
  if (std::ranges::any_of(all, reduces)) reserve_reductions(PWX_QUEUE_SYNC);
  const std::vector<std::string> images = images_of(all, the_gpu());
  for (size_t i = 0; i < all.size(); ++i)
    if (!images[i].empty() && all[i]->state == nullptr) load(*all[i], images[i]);
}

void launch_rank_reduction(pwx_kernel& kernel, const pwx_shape& shape, void** arguments,
                           size_t argument_count, peerway::Plan& plan) {
  launch_in_order(launch_of(kernel, shape, false, &plan), arguments, kernel.sizes, argument_count);
}

void free_kernels() {
  free_reductions();
  for (const auto& kernel : kernels()) the_gpu().driver.cuModuleUnload(kernel->module);
  if (zero_word != 0) the_gpu().driver.cuMemFree(std::exchange(zero_word, 0));
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
