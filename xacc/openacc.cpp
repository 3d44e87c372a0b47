// The functions of openacc.h on the host: its one device has the number 0, and its memory is the program's.
#pragma GCC visibility push(default)
#include "peerway/xacc/openacc.h"
#pragma GCC visibility pop

#include <cstdlib>
#include <cstring>

#include "xacc/failure.h"

namespace {

const pwx_where kOpenAcc{"openacc", 0};
int default_async = acc_async_noval;

bool is_here(acc_device_t type) { return type == acc_device_host || type == acc_device_default; }

}  // namespace

extern "C" {

int acc_get_num_devices(acc_device_t type) { return is_here(type) ? 1 : 0; }

void acc_set_device_type(acc_device_t type) {
  if (!is_here(type) && type != acc_device_none)
    pwx_error(&kOpenAcc,
              "acc_set_device_type(%d), but this program was compiled for the host alone; use "
              "acc_device_host or acc_device_default",
              static_cast<int>(type));
}
acc_device_t acc_get_device_type() { return acc_device_host; }

// Also with the numbers that the program would have for GPUs: there is one device for all.
void acc_set_device_num(int number, acc_device_t /*type*/) {
  if (number < 0) pwx_error(&kOpenAcc, "acc_set_device_num(%d, ...); devices are counted from 0", number);
}
int acc_get_device_num(acc_device_t /*type*/) { return 0; }
void acc_init(acc_device_t type) { acc_set_device_type(type); }
void acc_shutdown(acc_device_t /*type*/) {}
int acc_on_device(acc_device_t type) { return type == acc_device_host ? 1 : 0; }

int acc_async_test(int /*async*/) { return 1; }
int acc_async_test_all() { return 1; }
void acc_wait(int /*async*/) {}
void acc_wait_async(int /*async*/, int /*on*/) {}
void acc_wait_all() {}
void acc_wait_all_async(int /*async*/) {}
int acc_get_default_async() { return default_async; }
void acc_set_default_async(int async) { default_async = async; }

void* acc_malloc(size_t bytes) { return std::malloc(bytes); }
void acc_free(void* address) { std::free(address); }
void* acc_copyin(void* address, size_t /*bytes*/) { return address; }
void* acc_create(void* address, size_t /*bytes*/) { return address; }
void* acc_present_or_copyin(void* address, size_t /*bytes*/) { return address; }
void* acc_present_or_create(void* address, size_t /*bytes*/) { return address; }
void acc_copyout(void* /*address*/, size_t /*bytes*/) {}
void acc_delete(void* /*address*/, size_t /*bytes*/) {}
void acc_update_device(void* /*address*/, size_t /*bytes*/) {}
void acc_update_self(void* /*address*/, size_t /*bytes*/) {}
void acc_map_data(void* address, void* device, size_t bytes) {
  if (address != device)
    pwx_error(&kOpenAcc, "acc_map_data of %zu bytes to other memory; host and device memory are one here",
              bytes);
}
void acc_unmap_data(void* /*address*/) {}
void* acc_deviceptr(void* address) { return address; }
void* acc_hostptr(void* address) { return address; }
int acc_is_present(void* address, size_t /*bytes*/) { return address != nullptr ? 1 : 0; }
void acc_memcpy_to_device(void* to, void* from, size_t bytes) { std::memmove(to, from, bytes); }
void acc_memcpy_from_device(void* to, void* from, size_t bytes) { std::memmove(to, from, bytes); }

}  // extern "C"
