// The functions of openacc.h. On CPUs the only device has the number 0, and its memory is the program's.
#pragma GCC visibility push(default)
#include "peerway/xacc/openacc.h"
#pragma GCC visibility pop

#include <cstdlib>
#include <cstring>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/sequences.h"

namespace {

const pwx_where kOpenAcc{"openacc", 0};

/// Encloses each function: calls `on_gpu` with the GPU, or on CPUs `otherwise`.
template <typename OnGpu, typename Otherwise>
auto on_gpu_or(OnGpu&& on_gpu, Otherwise&& otherwise) {
  return pwx::guarded(&kOpenAcc,
                      [&] { return pwx::gpu() != nullptr ? on_gpu(pwx::the_gpu()) : otherwise(); });
}
template <typename OnGpu>
void on_gpu(OnGpu&& body) {
  on_gpu_or(body, [] {});
}

bool means_host(acc_device_t type) { return type == acc_device_host; }
using pwx::first_device;

pwx_data plain(pwx_data_kind kind, void* address, size_t bytes) {
  return {kind, "memory", nullptr, address, bytes};
}
long queue_of(int async) { return async == acc_async_default ? PWX_QUEUE_DEFAULT : async; }

void* device_of(void* address) {
  return on_gpu_or(
      [&](const pwx::Gpu&) -> void* {
        const pwx::Present* const copied = pwx::find_present(address, 0, "memory");
        return copied == nullptr ? nullptr
                                 : copied->device + (static_cast<std::byte*>(address) - copied->host);
      },
      [&] { return address; });
}

void* entered(pwx_data_kind kind, void* address, size_t bytes, int async = acc_async_sync) {
  const pwx_data data = plain(kind, address, bytes);
  pwx_enter_data(1, &data, queue_of(async), &kOpenAcc);
  return device_of(address);
}
void exited(pwx_data_kind kind, void* address, size_t bytes, int async = acc_async_sync,
            bool finalize = false) {
  const pwx_data data = plain(kind, address, bytes);
  pwx_exit_data(1, &data, finalize ? 1 : 0, queue_of(async), &kOpenAcc);
}
void updated(bool to_device, void* address, size_t bytes, int async = acc_async_sync) {
  const pwx_data data = plain(PWX_DATA_PRESENT, address, bytes);
  (to_device ? pwx_update_device : pwx_update_host)(1, &data, 0, queue_of(async), &kOpenAcc);
}

/// Copies between host and device memory, or within one of them.
void copy(void* to, const void* from, size_t bytes, int async = acc_async_sync) {
  on_gpu_or(
      [&](const pwx::Gpu& gpu) {
        gpu.check(gpu.driver.cuMemcpyAsync(reinterpret_cast<pw::cuda::CUdeviceptr>(to),
                                           reinterpret_cast<pw::cuda::CUdeviceptr>(from), bytes,
                                           pwx::stream_of(queue_of(async))),
                  "acc_memcpy");
        if (async == acc_async_sync) pwx::wait_for(PWX_QUEUE_SYNC);
      },
      [&] { std::memmove(to, from, bytes); });
}

}  // namespace

extern "C" {

int acc_get_num_devices(acc_device_t type) {
  if (means_host(type)) return 1;
  if (type == acc_device_none || pwx::settings::acc.value() == pwx::settings::Acc::host)
    return type == acc_device_default ? 1 : 0;
  if (type == (pwx::sees_amd_gpus() ? acc_device_nvidia : acc_device_radeon)) return 0;
  const int gpus = pwx::gpu_count();
  return gpus == 0 && type == acc_device_default ? 1 : gpus;
}

/// Programs call this before they choose a GPU, so it opens none.
static bool on_any_gpu(const pwx_where* where) {
  return pwx::guarded(where, [] { return pwx::computes_on_gpu(); });
}

static void choose_type(acc_device_t type, const pwx_where* where) {
  if (type == acc_device_none || type == acc_device_default) return;
  if (means_host(type) == on_any_gpu(where))
    pwx_error(
        where,
        "acc_set_device_type(%d), but this process computes on %s; the setting acc (PEERWAY_ACC) chooses, "
        "and acc_device_default takes what it says",
        static_cast<int>(type), means_host(type) ? "a GPU" : "its CPUs");
}
void acc_set_device_type(acc_device_t type) { choose_type(type, &kOpenAcc); }
acc_device_t acc_get_device_type() {
  if (!on_any_gpu(&kOpenAcc)) return acc_device_host;
  return pwx::sees_amd_gpus() ? acc_device_radeon : acc_device_nvidia;
}

static void choose_number(int number, acc_device_t type, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const int index = number - first_device();
    if (index < 0)
      pwx::refuse("acc_set_device_num(", number, ", ...); devices are counted from ", first_device(),
                  number == 0 ? "; unset PEERWAY_ACC_FIRST_DEVICE for a program that counts from 0" : "");
    if (!means_host(type)) pwx::choose_gpu(index);
  });
}
void acc_set_device_num(int number, acc_device_t type) { choose_number(number, type, &kOpenAcc); }
void pwx_acc_set(int type, const int* number, const long* queue, const pwx_where* where) {
  const auto device = static_cast<acc_device_t>(type);
  if (number != nullptr) choose_number(*number, device, where);
  choose_type(device, where);
  if (queue != nullptr)
    pwx::guarded(where, [&] { pwx::choose_default_queue(queue_of(static_cast<int>(*queue))); });
}
int acc_get_device_num(acc_device_t type) {
  const bool gpu = !means_host(type) && on_any_gpu(&kOpenAcc);
  return first_device() + (gpu ? pwx::guarded(&kOpenAcc, pwx::chosen_gpu) : 0);
}
void acc_init(acc_device_t type) { acc_set_device_type(type); }
void acc_shutdown(acc_device_t /*type*/) {}
void acc_init_device(int /*number*/, acc_device_t type) { acc_init(type); }
void acc_shutdown_device(int /*number*/, acc_device_t /*type*/) {}
int acc_on_device(acc_device_t type) { return means_host(type) ? 1 : 0; }  // on a GPU, kernels have their own

int acc_async_test(int async) {
  return on_gpu_or([&](const pwx::Gpu&) { return pwx::idle(queue_of(async)) ? 1 : 0; }, [] { return 1; });
}
int acc_async_test_all() {
  return on_gpu_or([&](const pwx::Gpu&) { return pwx::all_idle() ? 1 : 0; }, [] { return 1; });
}
void acc_wait(int async) {
  on_gpu([&](const pwx::Gpu&) { pwx::wait_for(queue_of(async)); });
}
void acc_wait_async(int async, int on) {
  on_gpu([&](const pwx::Gpu&) { pwx::order(queue_of(on), queue_of(async)); });
}
void acc_wait_all() {
  on_gpu([&](const pwx::Gpu&) { pwx::wait_for_all(); });
}
void acc_wait_all_async(int async) {
  on_gpu([&](const pwx::Gpu&) { pwx::order_after_all(queue_of(async)); });
}
int acc_wait_any(int count, const int* async) {
  const auto next = [&](bool gpu) {
    int status = 0;
    for (int i = 0; i < count; ++i) {
      if (async[i] == acc_async_sync) continue;  // not a queue
      ++status;
      if (!gpu || pwx::idle(queue_of(async[i]))) return i;
    }
    return status == 0 ? -1 : count;
  };
  return on_gpu_or(
      [&](const pwx::Gpu&) {
        int first = count;
        while (first == count && count > 0) first = next(true);
        return count > 0 ? first : -1;
      },
      [&] { return count > 0 ? next(false) : -1; });
}
int acc_get_default_async() { return static_cast<int>(pwx::default_queue()); }
void acc_set_default_async(int async) {
  pwx::guarded(&kOpenAcc, [&] { pwx::choose_default_queue(queue_of(async)); });
}

void* acc_malloc(size_t bytes) {
  return on_gpu_or(
      [&](const pwx::Gpu& gpu) -> void* {
        pw::cuda::CUdeviceptr address = 0;
        return gpu.driver.cuMemAlloc(&address, bytes) == pw::cuda::CUDA_SUCCESS
                   ? reinterpret_cast<void*>(address)
                   : nullptr;
      },
      [&] { return std::malloc(bytes); });
}
void acc_free(void* address) {
  on_gpu_or(
      [&](const pwx::Gpu& gpu) {
        pwx::launch_recorded();  // the recorded launches may use it
        if (address != nullptr)
          gpu.check(gpu.driver.cuMemFree(reinterpret_cast<pw::cuda::CUdeviceptr>(address)), "acc_free");
      },
      [&] { std::free(address); });
}
void* acc_copyin(void* address, size_t bytes) { return entered(PWX_DATA_COPYIN, address, bytes); }
void* acc_create(void* address, size_t bytes) { return entered(PWX_DATA_CREATE, address, bytes); }
void* acc_present_or_copyin(void* address, size_t bytes) { return acc_copyin(address, bytes); }
void* acc_present_or_create(void* address, size_t bytes) { return acc_create(address, bytes); }
void* acc_pcopyin(void* address, size_t bytes) { return acc_copyin(address, bytes); }
void* acc_pcreate(void* address, size_t bytes) { return acc_create(address, bytes); }
void acc_copyin_async(void* address, size_t bytes, int async) {
  entered(PWX_DATA_COPYIN, address, bytes, async);
}
void acc_create_async(void* address, size_t bytes, int async) {
  entered(PWX_DATA_CREATE, address, bytes, async);
}
void acc_copyout(void* address, size_t bytes) { exited(PWX_DATA_COPYOUT, address, bytes); }
void acc_copyout_async(void* address, size_t bytes, int async) {
  exited(PWX_DATA_COPYOUT, address, bytes, async);
}
void acc_copyout_finalize(void* address, size_t bytes) {
  exited(PWX_DATA_COPYOUT, address, bytes, acc_async_sync, true);
}
void acc_copyout_finalize_async(void* address, size_t bytes, int async) {
  exited(PWX_DATA_COPYOUT, address, bytes, async, true);
}
void acc_delete(void* address, size_t bytes) { exited(PWX_DATA_DELETE, address, bytes); }
void acc_delete_async(void* address, size_t bytes, int async) {
  exited(PWX_DATA_DELETE, address, bytes, async);
}
void acc_delete_finalize(void* address, size_t bytes) {
  exited(PWX_DATA_DELETE, address, bytes, acc_async_sync, true);
}
void acc_delete_finalize_async(void* address, size_t bytes, int async) {
  exited(PWX_DATA_DELETE, address, bytes, async, true);
}
void acc_update_device(void* address, size_t bytes) { updated(true, address, bytes); }
void acc_update_device_async(void* address, size_t bytes, int async) { updated(true, address, bytes, async); }
void acc_update_self(void* address, size_t bytes) { updated(false, address, bytes); }
void acc_update_self_async(void* address, size_t bytes, int async) { updated(false, address, bytes, async); }
void acc_map_data(void* address, void* device, size_t bytes) {
  on_gpu_or([&](const pwx::Gpu&) { pwx::map_present(address, device, bytes); },
            [&] {
              if (address != device)
                pwx::refuse("acc_map_data of ", bytes,
                            " bytes to other memory; host and device memory are one here");
            });
}
void acc_unmap_data(void* address) {
  on_gpu([&](const pwx::Gpu&) {
    pwx::Present* const mapped = pwx::find_present(address, 0, "acc_unmap_data");
    if (mapped == nullptr || !mapped->mapped)
      pwx::refuse("acc_unmap_data of memory that acc_map_data did not map");
    pwx::remove_present(*mapped);
  });
}
void* acc_deviceptr(void* address) { return device_of(address); }
void* acc_hostptr(void* address) {
  return on_gpu_or([&](const pwx::Gpu&) { return pwx::host_of(address); }, [&] { return address; });
}
int acc_is_present(void* address, size_t bytes) {
  return on_gpu_or(
      [&](const pwx::Gpu&) { return pwx::find_present(address, bytes, "memory") != nullptr ? 1 : 0; },
      [&] { return address != nullptr ? 1 : 0; });
}
void acc_memcpy_to_device(void* to, void* from, size_t bytes) { copy(to, from, bytes); }
void acc_memcpy_to_device_async(void* to, void* from, size_t bytes, int async) {
  copy(to, from, bytes, async);
}
void acc_memcpy_from_device(void* to, void* from, size_t bytes) { copy(to, from, bytes); }
void acc_memcpy_from_device_async(void* to, void* from, size_t bytes, int async) {
  copy(to, from, bytes, async);
}
void acc_memcpy_device(void* to, void* from, size_t bytes) { copy(to, from, bytes); }
void acc_memcpy_d2d(void* to, void* from, size_t bytes, int to_device, int from_device) {
  acc_memcpy_d2d_async(to, from, bytes, to_device, from_device, acc_async_sync);
}
/// Copies between the devices' copies of two variables, given by host addresses. A process has only one
/// device.
void acc_memcpy_d2d_async(void* to, void* from, size_t bytes, int to_device, int from_device, int async) {
  const int own = acc_get_device_num(acc_device_default);
  if (to_device != own || from_device != own)
    pwx_error(&kOpenAcc, "acc_memcpy_d2d from device %d to device %d; this process has device %d alone",
              from_device, to_device, own);
  void* const target = device_of(to);
  void* const source = device_of(from);
  if (target == nullptr || source == nullptr)
    pwx_error(&kOpenAcc, "acc_memcpy_d2d of memory that is not present on the GPU");
  copy(target, source, bytes, async);
}
void acc_memcpy_device_async(void* to, void* from, size_t bytes, int async) { copy(to, from, bytes, async); }

}  // extern "C"
