/* The functions of OpenACC. If a process computes on its CPUs, host and device memory are the same: data
 * calls have nothing to copy, and work is done when its directive ends. */
#ifndef PEERWAY_XACC_OPENACC_H
#define PEERWAY_XACC_OPENACC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum acc_device_t {
  acc_device_none = 0,
  acc_device_default = 1,
  acc_device_host = 2,
  acc_device_not_host = 4,
  acc_device_nvidia = 5,
  acc_device_radeon = 8
} acc_device_t;

/* acc_async_sync is not a queue: a function called with it returns when its work is done. */
enum { acc_async_sync = -2, acc_async_noval = -1, acc_async_default = -3 };

int acc_get_num_devices(acc_device_t type);
void acc_set_device_type(acc_device_t type);
acc_device_t acc_get_device_type(void);
void acc_set_device_num(int number, acc_device_t type);
int acc_get_device_num(acc_device_t type);
void acc_init(acc_device_t type);
void acc_shutdown(acc_device_t type);
void acc_init_device(int number, acc_device_t type);
void acc_shutdown_device(int number, acc_device_t type);
int acc_on_device(acc_device_t type);

int acc_async_test(int async);
int acc_async_test_all(void);
void acc_wait(int async);
void acc_wait_async(int async, int on);
void acc_wait_all(void);
int acc_wait_any(int count, const int* async);
void acc_wait_all_async(int async);
int acc_get_default_async(void);
void acc_set_default_async(int async);

void* acc_malloc(size_t bytes);
void acc_free(void* address);
void* acc_copyin(void* address, size_t bytes);
void* acc_create(void* address, size_t bytes);
void* acc_present_or_copyin(void* address, size_t bytes);
void* acc_present_or_create(void* address, size_t bytes);
void* acc_pcopyin(void* address, size_t bytes);
void* acc_pcreate(void* address, size_t bytes);
void acc_copyin_async(void* address, size_t bytes, int async);
void acc_create_async(void* address, size_t bytes, int async);
void acc_copyout(void* address, size_t bytes);
void acc_copyout_async(void* address, size_t bytes, int async);
void acc_copyout_finalize(void* address, size_t bytes);
void acc_copyout_finalize_async(void* address, size_t bytes, int async);
void acc_delete(void* address, size_t bytes);
void acc_delete_async(void* address, size_t bytes, int async);
void acc_delete_finalize(void* address, size_t bytes);
void acc_delete_finalize_async(void* address, size_t bytes, int async);
void acc_update_device(void* address, size_t bytes);
void acc_update_device_async(void* address, size_t bytes, int async);
void acc_update_self(void* address, size_t bytes);
void acc_update_self_async(void* address, size_t bytes, int async);
void acc_map_data(void* address, void* device, size_t bytes);
void acc_unmap_data(void* address);
void* acc_deviceptr(void* address);
void* acc_hostptr(void* address);
int acc_is_present(void* address, size_t bytes);
void acc_memcpy_to_device(void* to, void* from, size_t bytes);
void acc_memcpy_to_device_async(void* to, void* from, size_t bytes, int async);
void acc_memcpy_from_device(void* to, void* from, size_t bytes);
void acc_memcpy_from_device_async(void* to, void* from, size_t bytes, int async);
void acc_memcpy_device(void* to, void* from, size_t bytes);
void acc_memcpy_d2d(void* to, void* from, size_t bytes, int to_device, int from_device);
void acc_memcpy_d2d_async(void* to, void* from, size_t bytes, int to_device, int from_device, int async);
void acc_memcpy_device_async(void* to, void* from, size_t bytes, int async);

#ifdef __cplusplus
}
#endif
#endif
