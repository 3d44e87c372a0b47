// A test double of GDRCopy's library: "device" memory is host memory, which it maps at the place where it
// lies. Fails as the variable FAKE_GDRCOPY_FAIL says: open, pin or map.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "device/cuda/gdrcopy.h"

using pw::cuda::gdrcopy::Gdr;
using pw::cuda::gdrcopy::Info;
using pw::cuda::gdrcopy::MemoryHandle;

#define API extern "C" __attribute__((visibility("default")))

static bool fails(const char* function) {
  const char* failing = std::getenv("FAKE_GDRCOPY_FAIL");
  return failing != nullptr && std::strcmp(failing, function) == 0;
}

API Gdr gdr_open() { return fails("open") ? nullptr : reinterpret_cast<Gdr>(1); }
API int gdr_close(Gdr) { return 0; }
API int gdr_pin_buffer(Gdr, unsigned long address, size_t bytes, uint64_t, uint32_t, MemoryHandle* handle) {
  if (fails("pin") || address % pw::cuda::gdrcopy::kGpuPage != 0 || bytes % pw::cuda::gdrcopy::kGpuPage != 0)
    return EINVAL;
  handle->h = address;
  return 0;
}
API int gdr_unpin_buffer(Gdr, MemoryHandle) { return 0; }
API int gdr_get_info_v2(Gdr, MemoryHandle handle, Info* info) {
  info->va = handle.h;
  return 0;
}
API int gdr_map(Gdr, MemoryHandle handle, void** address, size_t) {
  if (fails("map")) return ENOMEM;
  *address = reinterpret_cast<void*>(handle.h);
  return 0;
}
API int gdr_unmap(Gdr, MemoryHandle, void*, size_t) { return 0; }
API int gdr_copy_to_mapping(MemoryHandle, void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return 0;
}
API int gdr_copy_from_mapping(MemoryHandle, void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return 0;
}
