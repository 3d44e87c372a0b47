// What compiled functions of JAX call: a start copies arrays into the memory of a plan and starts the plan, a
// finish finishes it and copies what came into new arrays. On a GPU all of that is enqueued in XLA's stream.
// library/python/peerway/jax makes the plans and writes the calls into the function.
#include <dlfcn.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <xla/ffi/api/ffi.h>

#include <atomic>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "core.h"

namespace pwpy {
namespace {

namespace ffi = xla::ffi;

/// Memory of an array in a region of the plan.
struct ArrayMemory {
  std::byte* address;
  uint64_t bytes;
};

/// A plan with the memory of the arrays that a start takes and a finish gives, in their order.
struct OpenPlan {
  std::weak_ptr<peerway::Plan> plan;  ///< closing a plan waits for all who hold it
  pw_device device;
  std::vector<ArrayMemory> sources, results;
  std::atomic<bool> started = false;  ///< from a start until its finish has copied the results out

  OpenPlan(std::weak_ptr<peerway::Plan> of, pw_device on, std::vector<ArrayMemory> from,
           std::vector<ArrayMemory> to)
      : plan(std::move(of)), device(on), sources(std::move(from)), results(std::move(to)) {}

  /// XLA may call independent starts in any order, also at once, so this comes before the memory is written.
  void begin() {
    if (started.exchange(true))
      throw peerway::Error(
          peerway::Status::invalid_argument,
          "peerway: a compiled function starts an exchange, a halo or a collective that was started before "
          "and is not finished. Give the later start the results of the earlier finish: start(..., "
          "after=results). If a function ended between the two, close it and make it again.");
  }
};

/// The open plans by number: a compiled function has the number, and may be called after the plan was closed.
class OpenPlans {
 public:
  int64_t add(std::shared_ptr<OpenPlan> plan) {
    const std::lock_guard lock(mutex_);
    plans_.emplace(++last_, std::move(plan));
    return last_;
  }
  void remove(int64_t number) {
    std::shared_ptr<OpenPlan> last;  // ends after the lock
    const std::lock_guard lock(mutex_);
    if (const auto entry = plans_.find(number); entry != plans_.end()) {
      last = std::move(entry->second);
      plans_.erase(entry);
    }
  }
  std::shared_ptr<OpenPlan> find(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto entry = plans_.find(number);
    if (entry == plans_.end()) throw_closed();
    return entry->second;
  }
  [[noreturn]] static void throw_closed() {
    throw peerway::Error(peerway::Status::closed,
                         "peerway: a compiled function uses an exchange, a halo or a collective that was "
                         "closed; keep it open, or trace the function again with another one.");
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<OpenPlan>> plans_;
  int64_t last_ = 0;
};

OpenPlans& open_plans() {
  static OpenPlans all;
  return all;
}

/// A plan that stays open while this lives, and its memory with it. Throws Closed.
struct Held {
  explicit Held(int64_t number) : open(open_plans().find(number)), plan(open->plan.lock()) {
    if (plan == nullptr) OpenPlans::throw_closed();
  }
  std::shared_ptr<OpenPlan> open;
  std::shared_ptr<peerway::Plan> plan;
};

/// A function of CUDA's driver, which XLA has loaded; null if there is none.
template <typename Function>
Function driver_function(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver, name));
}

/// Copies between memory of one GPU in the order of a stream.
void copy_in_stream(void* to, const void* from, uint64_t bytes, void* stream) {
  using CopyAsync = int (*)(uint64_t, uint64_t, size_t, void*);
  static const auto copy = driver_function<CopyAsync>("cuMemcpyDtoDAsync_v2");
  const int status =
      copy == nullptr ? -1
                      : copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, stream);
  if (status != 0)
    throw peerway::Error(peerway::Status::device, "peerway: a copy of " + std::to_string(bytes) +
                                                      " bytes for JAX failed; CUDA error " +
                                                      std::to_string(status));
}

/// Throws InvalidArgument if JAX computes on the CPU, and the plan's memory is on a GPU.
void check_host(const pw_device& device) {
  if (device.kind != PW_HOST)
    throw peerway::Error(peerway::Status::invalid_argument,
                         "peerway: a compiled function runs on the CPU, and the plan that it uses is on a "
                         "GPU; make the plan with device=\"host\"");
}

/// Throws InvalidArgument if JAX's array is not on the GPU of the plan: JAX takes the first GPU that it sees,
/// and a plan that of its rank.
void check_gpu(const pw_device& device, const void* array) {
  if (device.kind == PW_HOST)
    throw peerway::Error(peerway::Status::invalid_argument,
                         "peerway: a compiled function runs on a GPU, and the plan that it uses is on the "
                         "host; make the plan with device=\"cuda\"");
  using GetAttribute = int (*)(void*, int, uint64_t);
  constexpr int kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  static const auto get_attribute = driver_function<GetAttribute>("cuPointerGetAttribute");
  int ordinal = device.index;
  if (get_attribute == nullptr ||
      get_attribute(&ordinal, kDeviceOrdinal, reinterpret_cast<uint64_t>(array)) != 0 ||
      ordinal == device.index)
    return;
  const std::string own = "cuda:" + std::to_string(device.index);
  throw peerway::Error(peerway::Status::invalid_argument,
                       "peerway: a compiled function has its arrays on cuda:" + std::to_string(ordinal) +
                           ", and the plan that it uses is on " + own +
                           ", the GPU of this rank. Let JAX compute there, before it makes arrays: "
                           "jax.config.update(\"jax_default_device\", jax.devices()[" +
                           std::to_string(device.index) + "])");
}

void check_size(size_t index, uint64_t bytes, const ArrayMemory& memory) {
  if (bytes != memory.bytes)
    throw peerway::Error(peerway::Status::invalid_argument,
                         "peerway: array " + std::to_string(index) + " of a plan's start or finish has " +
                             std::to_string(bytes) + " bytes; the plan was made for " +
                             std::to_string(memory.bytes));
}

/// Runs `body`; what it throws becomes the error of the compiled function.
template <typename Body>
ffi::Error guarded(Body&& body) {
  try {
    body();
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, error.what());
  }
}

template <typename Copy>
void fill(const std::vector<ArrayMemory>& memory, const ffi::RemainingArgs& arrays, Copy&& copy) {
  for (size_t i = 0; i < memory.size(); ++i) {
    const auto array = arrays.get<ffi::AnyBuffer>(i).value();
    check_size(i, array.size_bytes(), memory[i]);
    copy(memory[i].address, array.untyped_data(), array.size_bytes());
  }
}

template <typename Copy>
void drain(const std::vector<ArrayMemory>& memory, const ffi::RemainingRets& arrays, Copy&& copy) {
  for (size_t i = 0; i < memory.size(); ++i) {
    auto array = arrays.get<ffi::AnyBuffer>(i).value();
    check_size(i, array->size_bytes(), memory[i]);
    copy(array->untyped_data(), memory[i].address, array->size_bytes());
  }
}

/// Begins a start of a plan, and ends it again if `body` throws.
template <typename Body>
void started(OpenPlan& plan, Body&& body) {
  plan.begin();
  try {
    body();
  } catch (...) {
    plan.started = false;
    throw;
  }
}

/// Runs `body`, the finish of a plan. After it the plan may be started again, or says why it was cancelled.
template <typename Body>
void finished(OpenPlan& plan, Body&& body) {
  struct End {
    OpenPlan& plan;
    ~End() { plan.started = false; }
  } end{plan};
  body();
}

void copy_on_host(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }

// The arrays behind those of the plan are those that the start comes after.
ffi::Error start_on_host(int64_t number, ffi::RemainingArgs arrays, ffi::RemainingRets) {
  return guarded([&] {
    const Held held(number);
    check_host(held.open->device);
    started(*held.open, [&] {
      fill(held.open->sources, arrays, copy_on_host);
      peerway::check(held.plan->start());
    });
  });
}

ffi::Error finish_on_host(int64_t number, ffi::RemainingArgs, ffi::RemainingRets arrays) {
  return guarded([&] {
    const Held held(number);
    check_host(held.open->device);
    finished(*held.open, [&] {
      peerway::check(held.plan->finish());
      drain(held.open->results, arrays, copy_on_host);
    });
  });
}

ffi::Error start_on_gpu(void* stream, int64_t number, ffi::RemainingArgs arrays, ffi::RemainingRets) {
  return guarded([&] {
    const Held held(number);
    peerway::check(held.plan->status());  // a plan that was cancelled would move nothing, without a word
    if (!arrays.empty()) check_gpu(held.open->device, arrays.get<ffi::AnyBuffer>(0).value().untyped_data());
    started(*held.open, [&] {
      fill(held.open->sources, arrays,
           [stream](void* to, const void* from, uint64_t bytes) { copy_in_stream(to, from, bytes, stream); });
      peerway::check(held.plan->start({held.open->device, stream}));
    });
  });
}

ffi::Error finish_on_gpu(void* stream, int64_t number, ffi::RemainingArgs, ffi::RemainingRets arrays) {
  return guarded([&] {
    const Held held(number);
    if (!arrays.empty()) check_gpu(held.open->device, arrays.get<ffi::AnyBuffer>(0).value()->untyped_data());
    finished(*held.open, [&] {
      peerway::check(held.plan->finish({held.open->device, stream}));
      drain(held.open->results, arrays, [stream](void* to, const void* from, uint64_t bytes) {
        copy_in_stream(to, from, bytes, stream);
      });
    });
  });
}

XLA_FFI_DEFINE_HANDLER(kStartOnHost, start_on_host,
                       ffi::Ffi::Bind().Attr<int64_t>("plan").RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER(kFinishOnHost, finish_on_host,
                       ffi::Ffi::Bind().Attr<int64_t>("plan").RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER(
    kStartOnGpu, start_on_gpu,
    ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Attr<int64_t>("plan").RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER(
    kFinishOnGpu, finish_on_gpu,
    ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Attr<int64_t>("plan").RemainingArgs().RemainingRets());

using Spans = std::vector<std::pair<uint64_t, uint64_t>>;  ///< offsets and bytes

std::vector<ArrayMemory> arrays_in(Region& region, const Spans& spans) {
  std::vector<ArrayMemory> arrays;
  for (const auto& [offset, bytes] : spans)
    arrays.push_back({static_cast<std::byte*>(region->address()) + offset, bytes});
  return arrays;
}

}  // namespace

void bind_jax(nb::module_& module) {
  const auto target = [](XLA_FFI_Handler* handler) { return nb::capsule(reinterpret_cast<void*>(handler)); };
  nb::dict targets;
  targets["cpu"] = nb::make_tuple(target(kStartOnHost), target(kFinishOnHost));
  targets["CUDA"] = nb::make_tuple(target(kStartOnGpu), target(kFinishOnGpu));
  module.attr("jax_targets") = targets;
  module.def(
      "open_jax_plan",
      [](Plan& plan, Region& sources, const Spans& source_spans, Region& results, const Spans& result_spans) {
        return open_plans().add(std::make_shared<OpenPlan>(plan.hold("open"), sources->device(),
                                                           arrays_in(sources, source_spans),
                                                           arrays_in(results, result_spans)));
      },
      nb::arg("plan"), nb::arg("sources"), nb::arg("source_spans"), nb::arg("results"),
      nb::arg("result_spans"));
  module.def(
      "close_jax_plan", [](int64_t number) { open_plans().remove(number); }, nb::arg("number"),
      nb::call_guard<Calling>());
}

}  // namespace pwpy
