// Maps device memory through GDRCopy (libgdrapi.so.2): declares the part of its interface that Peerway uses.
// The library is loaded at run time and needs the kernel module gdrdrv.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pw::cuda::gdrcopy {

struct MemoryHandle {
  unsigned long h;  // NOLINT(google-runtime-int): the library's type
};

/// gdr_info_v2_t: what the library actually pinned, in pages of the GPU.
struct Info {
  uint64_t va;
  uint64_t mapped_size;
  uint32_t page_size;
  uint64_t tm_cycles;
  uint32_t cycles_per_ms;
  unsigned mapped : 1;
  unsigned wc_mapping : 1;
  int mapping_type;
};

/// The library's functions; `Gdr` is its gdr_t.
using Gdr = struct gdr*;
struct Api {
  Gdr (*gdr_open)() = nullptr;
  int (*gdr_close)(Gdr) = nullptr;
  int (*gdr_pin_buffer)(Gdr, unsigned long, size_t, uint64_t, uint32_t, MemoryHandle*) = nullptr;
  int (*gdr_unpin_buffer)(Gdr, MemoryHandle) = nullptr;
  int (*gdr_get_info_v2)(Gdr, MemoryHandle, Info*) = nullptr;
  int (*gdr_map)(Gdr, MemoryHandle, void**, size_t) = nullptr;
  int (*gdr_unmap)(Gdr, MemoryHandle, void*, size_t) = nullptr;
  int (*gdr_copy_to_mapping)(MemoryHandle, void*, const void*, size_t) = nullptr;
  int (*gdr_copy_from_mapping)(MemoryHandle, void*, const void*, size_t) = nullptr;
};

inline constexpr uint64_t kGpuPage = 65536;

}  // namespace pw::cuda::gdrcopy
