// The part of CUPTI's binary interface that is used, so that nothing needs its headers. Newer versions of a
// record only add members behind these. Facts of that interface; trace/tests/system/test_trace_cuda.py
// compares them with NVIDIA's cupti_activity.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pw::trace {

enum : uint32_t { kMemcpy = 1, kMemset = 2, kConcurrentKernel = 10, kMemcpyPeer = 22 };
enum : int { kCuptiSuccess = 0, kCuptiNoMoreRecords = 12 };
inline constexpr size_t kCuptiAlignment = 8;

struct KernelRecord {
  uint32_t kind;
  uint8_t unused[12];
  uint64_t start, end;  // ns; 0: unknown
  uint64_t completed;
  uint32_t deviceId, contextId, streamId;
  int32_t shape[10];
  uint32_t correlationId;
  int64_t gridId;
  const char* name;
};

struct CopyRecord {  // and of a fill, whose value lies where the kinds do
  uint32_t kind;
  uint8_t copyKind, srcKind, dstKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId;
  uint32_t correlationId;  // of a copy between GPUs it is something else
};

// X(name, parameters...)
#define PW_CUPTI_FUNCTIONS(X)                                              \
  X(cuptiActivityRegisterCallbacks, void (*)(uint8_t**, size_t*, size_t*), \
    void (*)(void*, uint32_t, uint8_t*, size_t, size_t))                   \
  X(cuptiActivityEnable, uint32_t)                                         \
  X(cuptiActivityGetNextRecord, uint8_t*, size_t, void**)                  \
  X(cuptiActivityGetNumDroppedRecords, void*, uint32_t, size_t*)           \
  X(cuptiActivityFlushAll, uint32_t)                                       \
  X(cuptiActivityFlushPeriod, uint32_t)                                    \
  X(cuptiActivityRegisterTimestampCallback, uint64_t (*)())                \
  X(cuptiGetResultString, int, const char**)

}  // namespace pw::trace
