// Kernels and copies of GPUs, as CUPTI tells of them, on a track for each stream. The CUDA driver loads this
// library and calls InitializeInjection() when a program begins to use it (CUDA_INJECTION64_PATH).
#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "peerway/trace/recorder.h"
#include "trace/cuda/cupti_abi.h"

namespace pw::trace {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr uint32_t kFlushMs = 100;  // a process that is killed has left what is older
constexpr unsigned kFirstTid = 0x40000000;

struct Cupti {
#define PW_CUPTI_MEMBER(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  PW_CUPTI_FUNCTIONS(PW_CUPTI_MEMBER)
#undef PW_CUPTI_MEMBER
};

// Never destroyed: CUPTI's thread may still be at it when the process ends.
struct World {
  Cupti cupti;
  std::mutex mutex;                                                  ///< protects what follows
  std::map<std::pair<uint32_t, uint32_t>, pw_trace_writer*> tracks;  ///< by GPU and stream
  std::unordered_map<std::string, std::string> names;                ///< of kernels, as people write them
  bool over = false;
};
World& world() {
  static auto* only = new World;
  return *only;
}

pw_trace_writer* track_of(uint32_t device, uint32_t stream) {
  const auto [entry, is_new] = world().tracks.try_emplace({device, stream}, nullptr);
  if (is_new) {
    char name[16];
    std::snprintf(name, sizeof name, "cuda:%u/%u", device & 0xff, stream);
    const pw_trace_track track{
        "gpu", name, kFirstTid | (device & 0xff) << 20 | (stream & 0xfffff), PW_TRACE_CLOCK_NS, device, 0};
    entry->second = pw_trace_make(&track);
  }
  return entry->second;
}

const std::string& readable(const char* name) {
  std::string mangled = name != nullptr ? name : "kernel";
  const auto known = world().names.find(mangled);
  if (known != world().names.end()) return known->second;
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string demangled = status == 0 ? text : mangled;
  std::free(text);
  return world().names.emplace(std::move(mangled), std::move(demangled)).first->second;
}

const char* direction(const CopyRecord& copy) {
  static const char* const directions[] = {"",
                                           "host to device",
                                           "device to host",
                                           "host to array",
                                           "array to host",
                                           "array to array",
                                           "array to device",
                                           "device to array",
                                           "device to device",
                                           "host to host",
                                           "GPU to GPU"};
  return copy.copyKind < std::size(directions) ? directions[copy.copyKind] : "";
}

struct Activity {
  pw_trace_kind kind;
  uint32_t device, stream;
  uint64_t start, end, bytes;
  const char* name;
  const char* where;
  int32_t tag;
};

void add(const Activity& activity) {
  // CUPTI could not time this one.
  if (activity.start == 0 || activity.end < activity.start || !pw_trace_recording()) return;
  pw_trace_writer* writer = track_of(activity.device, activity.stream);
  if (writer == nullptr) return;
  pw_trace_event event{};
  event.begin = activity.start;
  event.duration = (activity.end - activity.start) & ((uint64_t{1} << 44) - 1);
  event.bytes = activity.bytes & ((uint64_t{1} << 44) - 1);
  event.kind = activity.kind & 0x3ff;
  event.name = pw_trace_name(writer, activity.name, strlen(activity.name)) & 0x3ff;
  if (*activity.where != '\0')
    event.where = pw_trace_name(writer, activity.where, strlen(activity.where)) & 0x3ff;
  event.peer = -1;
  event.tag = activity.tag;
  pw_trace_add(writer, &event);
}

void add(const void* record) {
  const auto& kernel = *static_cast<const KernelRecord*>(record);
  const auto& copy = *static_cast<const CopyRecord*>(record);
  if (kernel.kind == kConcurrentKernel)
    add({PW_TRACE_KERNEL, kernel.deviceId, kernel.streamId, kernel.start, kernel.end, 0,
         readable(kernel.name).c_str(), "", static_cast<int32_t>(kernel.correlationId)});
  else if (kernel.kind == kMemcpy || kernel.kind == kMemcpyPeer)
    add({PW_TRACE_COPY, copy.deviceId, copy.streamId, copy.start, copy.end, copy.bytes, "GPU copy",
         direction(copy), -1});
  else if (kernel.kind == kMemset)
    add({PW_TRACE_FILL, copy.deviceId, copy.streamId, copy.start, copy.end, copy.bytes, "GPU fill", "", -1});
}

void request(uint8_t** buffer, size_t* bytes, size_t* most) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kCuptiAlignment, kBufferBytes));
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *most = 0;
}

void complete(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(world().mutex);
  void* record = nullptr;
  while (!world().over && valid > 0 &&
         world().cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == kCuptiSuccess)
    add(record);
  size_t dropped = 0;
  if (world().cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == kCuptiSuccess &&
      dropped > 0)
    std::fprintf(stderr, "peerway: trace: CUPTI lost %zu kernels and copies of process %d\n", dropped,
                 getpid());
  std::free(buffer);
}

void at_exit() {
  world().cupti.cuptiActivityFlushAll(1);
  const std::lock_guard lock(world().mutex);
  world().over = true;
  for (const auto& [name, writer] : world().tracks)
    if (writer != nullptr) pw_trace_close(writer);
}

// Null where CUPTI is not there, with what was tried.
void* open_cupti(std::string& tried) {
  for (const char* name : {static_cast<const char*>(std::getenv("PEERWAY_TRACE_CUPTI")), "libcupti.so.13",
                           "libcupti.so.12", "libcupti.so"}) {
    if (name == nullptr || *name == '\0') continue;
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    tried = dlerror();
  }
  return nullptr;
}

std::string load() {
  std::string tried;
  void* library = open_cupti(tried);
  if (library == nullptr) return tried;
#define PW_CUPTI_LOAD(name, ...)                                          \
  *reinterpret_cast<void**>(&world().cupti.name) = dlsym(library, #name); \
  if (world().cupti.name == nullptr) return "it is older than CUDA 12 and has no " #name;
  PW_CUPTI_FUNCTIONS(PW_CUPTI_LOAD)
#undef PW_CUPTI_LOAD
  return "";
}

std::string begin() {
  if (std::string why = load(); !why.empty()) return why;
  const Cupti& cupti = world().cupti;
  // Its times become those of the clock that this process has.
  int result = cupti.cuptiActivityRegisterTimestampCallback([]() -> uint64_t { return pw_trace_ns(); });
  if (result == kCuptiSuccess) result = cupti.cuptiActivityRegisterCallbacks(request, complete);
  for (const uint32_t kind : {kConcurrentKernel, kMemcpy, kMemcpyPeer, kMemset})
    if (result == kCuptiSuccess) result = cupti.cuptiActivityEnable(kind);
  if (result == kCuptiSuccess) {
    cupti.cuptiActivityFlushPeriod(kFlushMs);
    std::atexit(at_exit);
    return "";
  }
  const char* text = "";
  cupti.cuptiGetResultString(result, &text);
  return text;
}

}  // namespace
}  // namespace pw::trace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (pw_trace_attach() == 0 || !pw_trace_wants(pw_trace_rank())) return 1;
  if (const std::string why = pw::trace::begin(); !why.empty())
    std::fprintf(
        stderr,
        "peerway: trace: kernels and copies of process %d are not recorded, for CUPTI does not serve: "
        "%s; install nvidia-cuda-cupti, or name its library by PEERWAY_TRACE_CUPTI\n",
        getpid(), why.c_str());
  return 1;
}
