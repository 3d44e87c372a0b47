// A double of CUPTI's library: what it is asked for it delivers when it is flushed: two kernels on one
// stream, one on another that overlaps them, a copy and a fill. Its records have the members that cupti_abi.h
// names.
#include <cstdint>
#include <cstring>
#include <map>

#include "trace/cuda/cupti_abi.h"

using namespace pw::trace;

#define API extern "C" __attribute__((visibility("default")))

namespace {
uint64_t (*clock_of_program)() = nullptr;
void (*request)(uint8_t**, size_t*, size_t*) = nullptr;
void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;
std::map<uint32_t, bool> enabled;
constexpr size_t kRoom = 256;  // of each record

void add(uint8_t*& at, const void* record, size_t bytes) {
  uint32_t kind = 0;
  std::memcpy(&kind, record, sizeof kind);
  if (!enabled[kind]) return;
  std::memset(at, 0, kRoom);
  std::memcpy(at, record, bytes);
  at += kRoom;
}
}  // namespace

API int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)()) {
  clock_of_program = clock;
  return kCuptiSuccess;
}
API int cuptiActivityRegisterCallbacks(void (*give)(uint8_t**, size_t*, size_t*),
                                       void (*take)(void*, uint32_t, uint8_t*, size_t, size_t)) {
  request = give, complete = take;
  return kCuptiSuccess;
}
API int cuptiActivityEnable(uint32_t kind) {
  enabled[kind] = true;
  return kCuptiSuccess;
}
API int cuptiActivityFlushPeriod(uint32_t) { return kCuptiSuccess; }
API int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = 3;
  return kCuptiSuccess;
}
API int cuptiGetResultString(int, const char** text) {
  *text = "CUPTI_ERROR_OF_THE_DOUBLE";
  return kCuptiSuccess;
}
API int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
  auto* at = static_cast<uint8_t*>(*record);
  at = at == nullptr ? buffer : at + kRoom;
  if (at >= buffer + valid) return kCuptiNoMoreRecords;
  *record = at;
  return kCuptiSuccess;
}
API int cuptiActivityFlushAll(uint32_t) {
  uint8_t* buffer = nullptr;
  size_t bytes = 0, most = 0;
  request(&buffer, &bytes, &most);
  uint8_t* at = buffer;
  const uint64_t now = clock_of_program();
  KernelRecord kernel{};
  kernel.kind = kConcurrentKernel;
  kernel.streamId = 7;
  kernel.name = "_Z5scalePfi";
  for (const uint64_t ago : {5000, 3000}) {
    kernel.start = now - ago, kernel.end = now - ago + 1000;
    kernel.correlationId = static_cast<uint32_t>(ago);
    add(at, &kernel, sizeof kernel);
  }
  kernel.streamId = 8, kernel.start = now - 4500, kernel.end = now - 2500, kernel.name = "plain_c";
  add(at, &kernel, sizeof kernel);
  kernel.start = kernel.end = 0;  // one that could not be timed
  add(at, &kernel, sizeof kernel);
  CopyRecord copy{};
  copy.kind = kMemcpy, copy.copyKind = 2, copy.bytes = 4096, copy.streamId = 7;
  copy.start = now - 2000, copy.end = now - 1500;
  add(at, &copy, sizeof copy);
  copy.kind = kMemset, copy.bytes = 512, copy.start = now - 1000, copy.end = now - 900;
  add(at, &copy, sizeof copy);
  complete(nullptr, 0, buffer, bytes, static_cast<size_t>(at - buffer));
  return kCuptiSuccess;
}
