// A test double of the CUDA driver: a libcuda.so.1 with two GPUs whose memory is shared host memory and whose
// streams do their work at once, or late (late_streams.h). It is strict where the driver is (which addresses
// a GPU reaches, what may be exported) and knows nothing of time. Kernels are the text of the device code,
// run by the CPU.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/cuda/driver_abi.h"
#include "device/cuda/kernels/copy_arguments.h"
#include "device/cuda/kernels/plan_arguments.h"
#include "device/cuda/kernels/reduce_arguments.h"
#include "late_streams.h"

using namespace pw::cuda;

#define API extern "C" __attribute__((visibility("default")))
#define COUNT_CALL ++world.calls[__func__]  // while the world is locked
#define LOCKED const std::lock_guard<std::recursive_mutex> locked(world_mutex)
#define FAIL_IF_ASKED(function)                                                              \
  if (const auto failure = world.failures.find(function); failure != world.failures.end()) { \
    const int result = failure->second;                                                      \
    world.failures.erase(failure);                                                           \
    return result;                                                                           \
  }

struct pw::cuda::CUctx_st {
  int ordinal;
  std::set<int> peers;
};
/// A launch in a graph.
struct GraphLaunch {
  std::function<void()> run;
  bool lets_next_begin = false;  // once the launches before it have ended
  bool begins_early = false;     // a kernel of the fake NVRTC that itself waits for the launch before
};
struct pw::cuda::CUgraph_st {
  std::vector<GraphLaunch> launches;
  std::vector<std::pair<uint64_t, unsigned>> conditions;  // their handles, and their values at a launch
};
struct pw::cuda::CUgraphExec_st : CUgraph_st {};
struct pw::cuda::CUstream_st {
  int ordinal;
  CUgraph captured = nullptr;  // what it is captured into
  fake_cuda::LateStream* late = nullptr;
};
struct pw::cuda::CUmemPoolHandle_st {
  int ordinal;
  int handle_types;
  std::set<int> access;
  bool shared = false;  // by a descriptor
};

namespace {

constexpr int kGpus = 2;
constexpr uint64_t kGranularity = 65536;
constexpr uint64_t kMemory = uint64_t{1} << 36;      // bytes of a GPU
constexpr int kNew = 0xa5;                           // each byte of new memory,
constexpr uint64_t kMostFilled = uint64_t{1} << 20;  // up to so many

// The GPUs that the process sees, as CUDA_VISIBLE_DEVICES names them by number: visible()[ordinal] is a GPU.
const std::vector<int>& visible() {
  static const std::vector<int> gpus = [] {
    const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
    std::vector<int> named;
    for (const char* next = text == nullptr ? "0,1" : text; *next != 0; ++next)
      if (*next >= '0' && *next < '0' + kGpus) named.push_back(*next - '0');
    return named;
  }();
  return gpus;
}

// The ordinal of a GPU, or for one that is hidden a number that no ordinal has.
int ordinal_of(int gpu) {
  const auto place = std::find(visible().begin(), visible().end(), gpu);
  return place == visible().end() ? kGpus + gpu : static_cast<int>(place - visible().begin());
}

enum class Kind { device, vmm, pool, managed, host };

struct Memory {
  Kind kind;
  int ordinal;
  uint64_t bytes;
  uint64_t buffer;
  uint64_t block;
  int handle_types;
  int descriptor;  // the memfd behind it
  CUmemoryPool pool;
  uint64_t reservation;
  std::set<int> access;
};

struct Physical {
  int ordinal, descriptor, handle_types;
  uint64_t bytes, block;
};

struct World {
  pw::cuda::CUctx_st context[kGpus] = {{0, {}}, {1, {}}};
  std::map<uint64_t, Memory> memory;
  std::map<uint64_t, Physical> physical;
  std::map<uint64_t, uint64_t> reserved;
  std::map<CUmemoryPool, std::unique_ptr<pw::cuda::CUmemPoolHandle_st>> pools;
  std::map<std::string, int> failures;
  std::map<int, int> attributes;
  std::string log, taken;
  std::map<std::string, int> calls;
  uint64_t next_id = 1;
  int version = 13000;
};
World world;
std::recursive_mutex world_mutex;
thread_local CUcontext stack[16];
thread_local int depth = 0;

int make_memfd(uint64_t bytes) {
  const int descriptor = memfd_create("fake-gpu", 0);
  return ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? descriptor : -1;
}

uint64_t map_memory(int descriptor, uint64_t bytes, void* at = nullptr) {
  return reinterpret_cast<uint64_t>(
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), descriptor, 0));
}

const std::pair<const uint64_t, Memory>* find(uint64_t address) {
  auto next = world.memory.upper_bound(address);
  if (next == world.memory.begin()) return nullptr;
  --next;
  return address < next->first + next->second.bytes ? &*next : nullptr;
}

bool reaches(int ordinal, uint64_t address) {
  const auto* mapped = find(address);
  if (mapped == nullptr) return false;
  const Memory& memory = mapped->second;
  switch (memory.kind) {
    case Kind::host:
    case Kind::managed:
      return true;
    case Kind::pool:
      return memory.ordinal == ordinal || memory.pool->access.count(ordinal) != 0;
    case Kind::vmm:
      return memory.access.count(ordinal) != 0;
    case Kind::device:
      return memory.ordinal == ordinal || world.context[ordinal].peers.count(memory.ordinal) != 0;
  }
  return false;
}

int current() { return depth > 0 ? stack[depth - 1]->ordinal : -1; }

CUdeviceptr new_device_memory(Kind kind, uint64_t bytes, int ordinal, CUmemoryPool pool = nullptr,
                              int types = 0) {
  const int descriptor = make_memfd(bytes);
  const uint64_t address = map_memory(descriptor, bytes);
  memset(reinterpret_cast<void*>(address), kNew, std::min(bytes, kMostFilled));
  world.memory[address] = {kind, ordinal, bytes, world.next_id++, world.next_id++, types, descriptor,
                           pool, 0,       {}};
  return address;
}

CUresult free_memory(uint64_t address) {
  const auto entry = world.memory.find(address);
  if (entry == world.memory.end()) return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(address), entry->second.bytes);
  close(entry->second.descriptor);
  world.memory.erase(entry);
  return CUDA_SUCCESS;
}

// The bytes behind a descriptor of another process, as the handles of this fake carry it.
struct Shared {
  int process, descriptor, gpu;
  uint64_t bytes;
};

Shared shared_by(const Memory& memory) {
  return {getpid(), memory.descriptor, visible()[static_cast<size_t>(memory.ordinal)], memory.bytes};
}

CUresult open_shared(const Shared& shared, Kind kind, CUmemoryPool pool, CUdeviceptr* address) {
  const std::string path =
      "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.descriptor);
  const int own = open(path.c_str(), O_RDWR);
  if (own < 0) return CUDA_ERROR_INVALID_VALUE;
  *address = map_memory(own, shared.bytes);
  world.memory[*address] = {
      kind, ordinal_of(shared.gpu), shared.bytes, world.next_id++, world.next_id++, 0, own, pool, 0, {}};
  return CUDA_SUCCESS;
}

template <typename Unit>
void run(const peerway::device::StridedCopy& copy, unsigned threads) {
  for (unsigned thread = 0; thread < threads; ++thread) {
    peerway::device::detail::copy_edges(copy, copy.to, copy.from, uint64_t{copy.words} * sizeof(Unit), thread,
                                        threads);
    peerway::device::detail::OpenTarget to{copy.to};
    peerway::device::detail::copy_words(peerway::device::detail::WordsOf<Unit>(), copy, to, copy.from, 0,
                                        copy.words, thread, threads);
  }
}

// The results of cuModuleGetFunction for the plan kernels; for copy kernels the result is the word's size.
enum : uintptr_t {
  kSteps = 100,
  kManySteps,
  kFewPackets,
  kSomePackets,
  kFewLines,
  kSomeLines,
  kReduce,
  kCondition,
  kClock
};

uintptr_t plan_kernel(const std::string& name) {
  if (name == "pw_plan_clock") return kClock;
  if (name == "pw_reduce") return kReduce;
  if (name == "set_condition") return kCondition;
  if (name == "pw_plan_many_steps") return kManySteps;
  const bool few = name.starts_with("pw_plan_few");
  if (name.ends_with("_packets")) return few ? kFewPackets : kSomePackets;
  return name.ends_with("_lines") ? (few ? kFewLines : kSomeLines) : kSteps;
}

template <Form form, class Arguments>
void run_messages(const void* arguments) {
  const auto& plan = *static_cast<const Arguments*>(arguments);
  const PlanHead& head = plan.head;
  run_messages<form>(peerway::device::Thread{}, plan.entry, plan.ends, head.first, head.last, head.epoch,
                     head.guard, 0, 1, [] {});
}

// One thread does all the pieces, in order. What they wait for comes from other threads, which need the lock.
void run_pieces(uintptr_t function, const void* arguments) {
  if (function == kFewPackets) return run_messages<Form::packets, FewMessages>(arguments);
  if (function == kSomePackets) return run_messages<Form::packets, SomeMessages>(arguments);
  if (function == kFewLines) return run_messages<Form::lines, FewMessages>(arguments);
  if (function == kSomeLines) return run_messages<Form::lines, SomeMessages>(arguments);
  const auto& head = *static_cast<const PlanHead*>(arguments);
  const auto* steps = function == kSteps ? static_cast<const SomeSteps*>(arguments)->entry
                                         : static_cast<const peerway::device::Step*>(head.steps);
  peerway::device::detail::run_pieces(peerway::device::Thread{}, steps, head.first, head.last, head.epoch,
                                      head.guard, 0, 1);
}

/// Says at the end on standard error how many blocks each run of a plan had, if FAKE_CUDA_SAYS_PLANS is
/// set.
class PlanBlocks {
 public:
  ~PlanBlocks() {
    if (std::getenv("FAKE_CUDA_SAYS_PLANS") != nullptr)
      fprintf(stderr, "blocks of plans:%s\n", text_.c_str());
  }
  void add(unsigned blocks) {
    LOCKED;
    text_ += " " + std::to_string(blocks);
  }

 private:
  std::string text_;
};
PlanBlocks plan_blocks;

CUresult run_plan(uintptr_t function, const void* arguments, unsigned blocks) {
  const auto& head = *static_cast<const PlanHead*>(arguments);
  if (!head.condition.is_met()) return CUDA_SUCCESS;
  plan_blocks.add(blocks);
  peerway::device::detail::run_timed(peerway::device::Thread{}, head.times, head.part, 1,
                                     [&] { run_pieces(function, arguments); });
  return CUDA_SUCCESS;
}

}  // namespace

API void fake_cuda_fail(const char* function, int result) {
  LOCKED;
  world.failures[function] = result;
}
API void fake_cuda_set_attribute(int attribute, int value) {
  LOCKED;
  world.attributes[attribute] = value;
}
API void fake_cuda_set_version(int version) {
  LOCKED;
  world.version = version;
}
API const char* fake_cuda_take_log() {
  LOCKED;
  world.taken = std::exchange(world.log, "");
  return world.taken.c_str();
}
API int fake_cuda_calls(const char* function) {
  LOCKED;
  return world.calls[function];
}
API void fake_cuda_reset() {
  LOCKED;
  const uint64_t next = world.next_id;
  world = World{};
  world.next_id = next;
}

API CUresult cuInit(unsigned) {
  FAIL_IF_ASKED("cuInit");
  return CUDA_SUCCESS;
}
API CUresult cuDriverGetVersion(int* version) {
  LOCKED;
  *version = world.version;
  return CUDA_SUCCESS;
}
API CUresult cuGetErrorName(CUresult error, const char** text) {
  static thread_local std::string name;
  name = "CUDA_ERROR_" + std::to_string(error);
  *text = name.c_str();
  return CUDA_SUCCESS;
}
API CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "a fake error";
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(visible().size());
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  memset(uuid->bytes, 0x10 + visible()[static_cast<size_t>(device)], sizeof uuid->bytes);
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  LOCKED;
  if (const auto set = world.attributes.find(attribute); set != world.attributes.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = 0x7fffffff;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 4;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
      *value = 0;
      break;
    default:
      *value = 1;
  }
  return CUDA_SUCCESS;
}
API CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  FAIL_IF_ASKED("cuDeviceCanAccessPeer");
  *can = 1;
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGetP2PAttribute(int* value, int, CUdevice, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  LOCKED;
  FAIL_IF_ASKED("cuDevicePrimaryCtxRetain");
  *context = &world.context[device];
  return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}
API CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = depth > 0 ? stack[depth - 1] : nullptr;
  return CUDA_SUCCESS;
}
API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (context == nullptr || depth == 16) return CUDA_ERROR_INVALID_CONTEXT;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}
API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack[--depth];
  return CUDA_SUCCESS;
}
API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  LOCKED;
  if (current() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return world.context[current()].peers.insert(peer->ordinal).second ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

API CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** data, CUdeviceptr address) {
  LOCKED;
  const auto* entry = find(address);
  const uint64_t base = entry != nullptr ? entry->first : 0;
  const Memory memory = entry != nullptr ? entry->second : Memory{};
  const bool vmm = memory.kind == Kind::vmm;
  for (unsigned i = 0; i < count; ++i) {
    uint64_t value = 0;
    size_t bytes = 8;
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        value = memory.kind == Kind::host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        bytes = 4;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        value = static_cast<uint64_t>(memory.ordinal);
        bytes = 4;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        value = memory.kind == Kind::managed;
        bytes = 1;
        break;
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        value = memory.kind == Kind::device;
        bytes = 4;
        break;
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        value = memory.buffer;
        break;
      case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        value = memory.block;
        break;
      case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        value = static_cast<uint64_t>(memory.handle_types);
        break;
      case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        value = reinterpret_cast<uint64_t>(memory.pool);
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        value = vmm ? memory.reservation : base;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        value = vmm ? world.reserved[memory.reservation] : memory.bytes;
        break;
      case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        value = vmm ? base : 0;
        break;
      case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        value = vmm ? memory.bytes : 0;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (entry == nullptr) value = 0;
    memcpy(data[i], &value, bytes);
  }
  return CUDA_SUCCESS;
}

namespace {

bool is_late(CUstream stream) { return stream != nullptr && stream->late != nullptr; }

/// Does `work` now; of a late stream, later, where nobody sees how it ends.
template <typename Work>
CUresult in_order(CUstream stream, Work&& work) {
  if (!is_late(stream)) return work();
  fake_cuda::add(*stream->late, [work] { work(); });
  return CUDA_SUCCESS;
}

void finish(CUstream stream) {
  if (is_late(stream)) fake_cuda::finish(*stream->late);
}

}  // namespace

API CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  LOCKED;
  FAIL_IF_ASKED("cuMemAlloc");
  COUNT_CALL;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = new_device_memory(Kind::device, bytes, current());
  return CUDA_SUCCESS;
}
API CUresult cuMemFree_v2(CUdeviceptr address) {
  fake_cuda::finish_all();
  LOCKED;
  return free_memory(address);
}
API CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  LOCKED;
  *address = new_device_memory(Kind::managed, bytes, current());
  return CUDA_SUCCESS;
}
API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return in_order(stream, [=] {
    LOCKED;
    return free_memory(address);
  });
}
API CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream) {
  return in_order(stream, [=] {
    memset(reinterpret_cast<void*>(address), value, bytes);
    return CUDA_SUCCESS;
  });
}
API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return CUDA_SUCCESS;
}
API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  bool late = false, staged = false;
  {
    LOCKED;
    FAIL_IF_ASKED("cuMemcpyAsync");
    COUNT_CALL;
    world.log += "1d " + std::to_string(bytes) + "\n";
    late = find(to) != nullptr;  // to pageable memory the driver copies before it returns,
    staged = late && is_late(stream) && find(from) == nullptr;  // and from there it takes the bytes
  }
  std::shared_ptr<std::vector<char>> bytes_then;
  if (staged)
    bytes_then = std::make_shared<std::vector<char>>(reinterpret_cast<char*>(from),
                                                     reinterpret_cast<char*>(from) + bytes);
  const CUresult result = in_order(stream, [=] {
    memcpy(reinterpret_cast<void*>(to), staged ? bytes_then->data() : reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
  });
  if (!late) finish(stream);
  return result;
}
API CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* parameters, CUstream stream) {
  bool late = false;
  {
    LOCKED;
    const bool good = parameters->WidthInBytes <= parameters->srcPitch &&
                      parameters->WidthInBytes <= parameters->dstPitch &&
                      parameters->srcPitch <= 0x7fffffff && parameters->dstPitch <= 0x7fffffff &&
                      (parameters->Depth == 1 || (parameters->srcHeight >= parameters->Height &&
                                                  parameters->dstHeight >= parameters->Height)) &&
                      parameters->srcMemoryType == CU_MEMORYTYPE_UNIFIED &&
                      parameters->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
    if (!good) return CUDA_ERROR_INVALID_VALUE;
    world.log += "3d " + std::to_string(parameters->WidthInBytes) + " x " +
                 std::to_string(parameters->Height) + " x " + std::to_string(parameters->Depth) + "\n";
    late = find(parameters->srcDevice) != nullptr && find(parameters->dstDevice) != nullptr;
  }
  const CUresult result = in_order(stream, [copy = *parameters] {
    for (size_t z = 0; z < copy.Depth; ++z)
      for (size_t y = 0; y < copy.Height; ++y)
        memcpy(reinterpret_cast<void*>(copy.dstDevice + (z * copy.dstHeight + y) * copy.dstPitch),
               reinterpret_cast<void*>(copy.srcDevice + (z * copy.srcHeight + y) * copy.srcPitch),
               copy.WidthInBytes);
    return CUDA_SUCCESS;
  });
  if (!late) finish(stream);
  return result;
}
API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* rows, CUstream stream) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = rows->srcMemoryType;
  copy.dstMemoryType = rows->dstMemoryType;
  copy.srcDevice = rows->srcDevice;
  copy.dstDevice = rows->dstDevice;
  copy.srcPitch = rows->srcPitch;
  copy.dstPitch = rows->dstPitch;
  copy.WidthInBytes = rows->WidthInBytes;
  copy.Height = rows->Height;
  copy.Depth = 1;
  return cuMemcpy3DAsync_v2(&copy, stream);
}

API CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  LOCKED;
  FAIL_IF_ASKED("cuMemHostRegister");
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (address + bytes <= address) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [base, memory] : world.memory)
    if (base < address + bytes && address < base + memory.bytes)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  world.memory[address] = {Kind::host, 0, bytes, world.next_id++, 0, 0, -1, nullptr, 0, {}};
  return CUDA_SUCCESS;
}
API CUresult cuMemHostUnregister(void* pointer) {
  LOCKED;
  return world.memory.erase(reinterpret_cast<uint64_t>(pointer)) == 1 ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}
API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned) {
  *address = reinterpret_cast<uint64_t>(pointer);
  return CUDA_SUCCESS;
}

API CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  LOCKED;
  FAIL_IF_ASKED("cuIpcGetMemHandle");
  const auto* entry = find(address);
  if (entry == nullptr || entry->second.kind != Kind::device) return CUDA_ERROR_INVALID_VALUE;
  const Shared shared = shared_by(entry->second);
  memcpy(handle->reserved, &shared, sizeof shared);
  return CUDA_SUCCESS;
}
API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  LOCKED;
  Shared shared;
  memcpy(&shared, handle.reserved, sizeof shared);
  if (shared.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    world.context[current()].peers.insert(ordinal_of(shared.gpu));
  return open_shared(shared, Kind::device, nullptr, address);
}
API CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  LOCKED;
  return free_memory(address);
}

API CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*, int) {
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}
API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                         const CUmemAllocationProp* wanted, unsigned long long) {
  LOCKED;
  FAIL_IF_ASKED("cuMemCreate");
  if (bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = world.next_id++;
  world.physical[*handle] = {wanted->location.id, make_memfd(bytes), wanted->requestedHandleTypes, bytes,
                             world.next_id++};
  return CUDA_SUCCESS;
}
API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  LOCKED;
  const auto entry = world.physical.find(handle);
  if (entry == world.physical.end()) return CUDA_ERROR_INVALID_VALUE;
  close(entry->second.descriptor);
  world.physical.erase(entry);
  return CUDA_SUCCESS;
}
API CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                                 unsigned long long) {
  LOCKED;
  *address = reinterpret_cast<uint64_t>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  world.reserved[*address] = bytes;
  return CUDA_SUCCESS;
}
API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  LOCKED;
  munmap(reinterpret_cast<void*>(address), bytes);
  return world.reserved.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                      unsigned long long) {
  LOCKED;
  FAIL_IF_ASKED("cuMemMap");
  const Physical& physical = world.physical.at(handle);
  map_memory(physical.descriptor, bytes, reinterpret_cast<void*>(address));
  world.memory[address] = {Kind::vmm,
                           physical.ordinal,
                           bytes,
                           0,
                           physical.block,
                           physical.handle_types,
                           dup(physical.descriptor),
                           nullptr,
                           std::prev(world.reserved.upper_bound(address))->first,
                           {}};
  return CUDA_SUCCESS;
}
API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  LOCKED;
  const auto entry = world.memory.find(address);
  if (entry == world.memory.end() || entry->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  close(entry->second.descriptor);
  world.memory.erase(entry);
  return CUDA_SUCCESS;
}
API CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t) {
  LOCKED;
  FAIL_IF_ASKED("cuMemSetAccess");
  uint64_t end = address;  // whole mappings, one after the other
  while (end < address + bytes) {
    const auto entry = world.memory.find(end);
    if (entry == world.memory.end() || entry->second.kind != Kind::vmm) return CUDA_ERROR_INVALID_VALUE;
    entry->second.access.insert(access->location.id);
    end += entry->second.bytes;
  }
  return end == address + bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  LOCKED;
  const auto* entry = find(reinterpret_cast<uint64_t>(address));
  if (entry == nullptr || entry->second.kind != Kind::vmm) return CUDA_ERROR_INVALID_VALUE;
  const Memory& memory = entry->second;
  *handle = world.next_id++;
  world.physical[*handle] = {memory.ordinal, dup(memory.descriptor), memory.handle_types, memory.bytes,
                             memory.block};
  return CUDA_SUCCESS;
}
API CUresult cuMemExportToShareableHandle(void* handle, CUmemGenericAllocationHandle physical, int type,
                                          unsigned long long) {
  LOCKED;
  if ((world.physical.at(physical).handle_types & type) == 0 ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(handle) = dup(world.physical.at(physical).descriptor);
  return CUDA_SUCCESS;
}
API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared, int type) {
  LOCKED;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const int own = dup(static_cast<int>(reinterpret_cast<intptr_t>(shared)));
  struct stat status{};
  if (own < 0 || fstat(own, &status) != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = world.next_id++;
  world.physical[*handle] = {0, own, type, static_cast<uint64_t>(status.st_size), world.next_id++};
  return CUDA_SUCCESS;
}
API CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t, int,
                                           unsigned long long) {
  LOCKED;
  FAIL_IF_ASKED("cuMemGetHandleForAddressRange");
  const auto* entry = find(address);
  // A memfd cannot begin in the middle, as a dma-buf can.
  if (entry == nullptr || entry->first != address) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(handle) = dup(entry->second.descriptor);
  return CUDA_SUCCESS;
}

static CUresult make_pool(pw::cuda::CUmemPoolHandle_st handle, CUmemoryPool* pool) {
  auto owned = std::make_unique<pw::cuda::CUmemPoolHandle_st>(std::move(handle));
  *pool = owned.get();
  world.pools[*pool] = std::move(owned);
  return CUDA_SUCCESS;
}
API CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* wanted) {
  LOCKED;
  return make_pool({wanted->location.id, wanted->handleTypes, {}, false}, pool);
}
API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  LOCKED;
  return world.pools.erase(pool) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t) {
  LOCKED;
  pool->access.insert(access->location.id);
  return CUDA_SUCCESS;
}
API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream) {
  LOCKED;
  *address = new_device_memory(Kind::pool, bytes, pool->ordinal, pool, pool->handle_types);
  return CUDA_SUCCESS;
}
API CUresult cuMemPoolExportToShareableHandle(void* handle, CUmemoryPool pool, int type, unsigned long long) {
  LOCKED;
  if ((pool->handle_types & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(handle) = make_memfd(1);
  pool->shared = true;
  return CUDA_SUCCESS;
}
API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void*, int type, unsigned long long) {
  LOCKED;
  return make_pool({0, type, {}, true}, pool);
}
API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  LOCKED;
  const auto* entry = find(address);
  if (entry == nullptr || entry->second.kind != Kind::pool || !entry->second.pool->shared)
    return CUDA_ERROR_INVALID_VALUE;
  const Shared shared = shared_by(entry->second);
  memcpy(data->reserved, &shared, sizeof shared);
  return CUDA_SUCCESS;
}
API CUresult cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  LOCKED;
  Shared shared;
  memcpy(&shared, data->reserved, sizeof shared);
  return open_shared(shared, Kind::pool, pool, address);
}

API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int priority) {
  LOCKED;
  FAIL_IF_ASKED("cuStreamCreateWithPriority");
  *stream = new pw::cuda::CUstream_st{current(), nullptr, fake_cuda::new_late_stream(priority)};
  return CUDA_SUCCESS;
}
API CUresult cuStreamDestroy_v2(CUstream stream) {
  finish(stream);
  delete stream;  // events may still name its late stream, which stays
  return CUDA_SUCCESS;
}
API CUresult cuStreamQuery(CUstream stream) {
  FAIL_IF_ASKED("cuStreamQuery");
  return !is_late(stream) || fake_cuda::is_finished(*stream->late) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
API CUresult cuStreamSynchronize(CUstream stream) {
  FAIL_IF_ASKED("cuStreamSynchronize");
  finish(stream);
  return CUDA_SUCCESS;
}
API CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  LOCKED;
  *context = stream == nullptr ? &world.context[std::max(current(), 0)] : &world.context[stream->ordinal];
  return CUDA_SUCCESS;
}
API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void* user) {
  return in_order(stream, [=] {
    call(user);
    return CUDA_SUCCESS;
  });
}
API CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new fake_cuda::Reached);
  return CUDA_SUCCESS;
}
API CUresult cuEventDestroy_v2(CUevent event) {
  delete reinterpret_cast<fake_cuda::Reached*>(event);
  return CUDA_SUCCESS;
}
// Without late streams an event has always happened.
API CUresult cuEventRecord(CUevent event, CUstream stream) {
  *reinterpret_cast<fake_cuda::Reached*>(event) =
      is_late(stream) ? fake_cuda::reached(*stream->late) : fake_cuda::Reached{};
  return CUDA_SUCCESS;
}
API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  {
    LOCKED;
    COUNT_CALL;
  }
  return in_order(stream, [then = *reinterpret_cast<fake_cuda::Reached*>(event)] {
    fake_cuda::wait(then);
    return CUDA_SUCCESS;
  });
}
API CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned) {
  {
    LOCKED;
    FAIL_IF_ASKED("cuStreamWriteValue64");
    if (!reaches(stream->ordinal, address)) return CUDA_ERROR_INVALID_VALUE;
    world.log += "write\n";
  }
  return in_order(stream, [=] {
    __atomic_store_n(reinterpret_cast<uint64_t*>(address), value, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
  });
}

namespace {

const CUmodule kOwnKernels = reinterpret_cast<CUmodule>(1);
using Launch = void(void** arguments, unsigned x, unsigned y, unsigned z, unsigned threads);
using Keep = void**(void** arguments);
std::map<CUfunction, Keep*> keeps;  // what copies the arguments of a kernel of the fake NVRTC

/// The parameters of a launch, as long as a graph may need them; they are never freed.
void** kept(CUfunction function, void** parameters) {
  if (const auto handler = keeps.find(function); handler != keeps.end()) return handler->second(parameters);
  if (reinterpret_cast<uintptr_t>(function) < kSteps)
    return new void*[1]{new CopyArguments(*static_cast<CopyArguments*>(parameters[0]))};
  if (reinterpret_cast<uintptr_t>(function) == kCondition) {
    auto** words = new void*[4];
    for (int i = 0; i < 4; ++i) words[i] = memcpy(malloc(sizeof(uint64_t)), parameters[i], i < 3 ? 8 : 4);
    return words;
  }
  if (reinterpret_cast<uintptr_t>(function) == kReduce)
    return new void*[1]{new ReduceArguments(*static_cast<ReduceArguments*>(parameters[0]))};
  constexpr size_t kArgumentBytes = std::max(sizeof(SomeSteps), sizeof(SomeMessages));  // of those of a plan
  return new void*[1]{memcpy(malloc(kArgumentBytes), parameters[0], kArgumentBytes)};
}

/// Keeps a pointer to memory that is never freed, so that LeakSanitizer knows that this is meant.
void** reachable(void** memory) {
  static auto& all = *new std::vector<void**>;
  LOCKED;
  all.push_back(memory);
  return memory;
}

thread_local const std::function<void()>* overlapped = nullptr;  // a launch for which a kernel did not wait

/// Runs the launch that a kernel overlaps, when the kernel waits for it. Kernels find this by a pointer.
void run_overlapped() {
  if (const auto* const launch = std::exchange(overlapped, nullptr)) (*launch)();
}

/// Says at the end on standard error how many kernels began while the launch before them was under way, if
/// FAKE_CUDA_SAYS_OVERLAPS is set.
class Overlaps {
 public:
  ~Overlaps() {
    if (std::getenv("FAKE_CUDA_SAYS_OVERLAPS") != nullptr)
      fprintf(stderr, "%d kernels overlapped a reflect\n", count_.load());
  }
  void add() { ++count_; }

 private:
  std::atomic<int> count_{0};
};
Overlaps overlaps;

/// Called by each thread of a kernel: the first of those that find a launch under way counts.
void begin_kernel(bool does_overlap) {
  static thread_local const std::function<void()>* counted = nullptr;
  if (!does_overlap || overlapped == nullptr) {
    counted = nullptr;
  } else if (counted != overlapped) {
    counted = overlapped;
    overlaps.add();
  }
}

/// Loads what the fake NVRTC made of other kernels: "fake module BYTES", then a library of BYTES bytes.
void* loaded_library(const char* image) {
  char* code = nullptr;
  const size_t bytes = std::strtoull(image + strlen("fake module "), &code, 10);
  const int descriptor = memfd_create("fake module", MFD_CLOEXEC);
  if (write(descriptor, code + 1, bytes) != static_cast<ssize_t>(bytes)) return nullptr;
  // It stays open: the loader knows libraries by their names.
  void* const library =
      dlopen(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  if (const auto wait = static_cast<void (**)()>(dlsym(library, "fake_wait"))) *wait = run_overlapped;
  if (const auto begin = static_cast<void (**)(bool)>(dlsym(library, "fake_begin"))) *begin = begin_kernel;
  return library;
}

}  // namespace

API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const char* text = static_cast<const char*>(image);
  if (*text == '\0') return CUDA_ERROR_INVALID_VALUE;
  *module = kOwnKernels;
  if (strncmp(text, "fake module ", strlen("fake module ")) == 0)
    *module = static_cast<CUmodule>(loaded_library(text));
  return *module != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API CUresult cuModuleUnload(CUmodule module) {
  fake_cuda::finish_all();
  if (module != kOwnKernels) dlclose(module);
  return CUDA_SUCCESS;
}
API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int threads, size_t) {
  constexpr int kThreads = 2048;
  *blocks = kThreads / threads;
  return CUDA_SUCCESS;
}
API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const std::string wanted = name;
  if (module != kOwnKernels) {
    *function = static_cast<CUfunction>(dlsym(module, ("fake_launch_" + wanted).c_str()));
    keeps[*function] = reinterpret_cast<Keep*>(dlsym(module, ("fake_keep_" + wanted).c_str()));
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  }
  const uintptr_t number =
      wanted.starts_with("pw_copy_") ? std::stoull(wanted.substr(strlen("pw_copy_"))) : plan_kernel(wanted);
  *function = reinterpret_cast<CUfunction>(number);
  return CUDA_SUCCESS;
}
namespace {

bool reaches_all(int ordinal, const CopyArguments& arguments) {
  LOCKED;
  const auto reached = [&](const void* address) {
    return reaches(ordinal, reinterpret_cast<uint64_t>(address));
  };
  return reached(arguments.copy.to) && reached(arguments.copy.from) &&
         (arguments.signal == nullptr || reached(arguments.signal));
}

/// Runs the launches of a graph. A plan before a kernel that begins early runs as late as the kernel lets it.
void run_all(const std::vector<GraphLaunch>& launches) {
  for (size_t i = 0; i < launches.size(); ++i) {
    const bool overlaps =
        launches[i].lets_next_begin && i + 1 < launches.size() && launches[i + 1].begins_early;
    if (overlaps) overlapped = &launches[i++].run;
    launches[i].run();
    run_overlapped();
  }
}

std::map<uint64_t, unsigned> conditions;  // of conditional nodes, by their handles

/// What the kernel of a loop's condition does: its parameters are handle, state, stop and the wanted state.
void set_condition(void** parameters) {
  const auto state = *static_cast<volatile uint32_t**>(parameters[1]);
  const auto stop = *static_cast<volatile uint32_t**>(parameters[2]);
  const bool met = *state == *static_cast<uint32_t*>(parameters[3]) && *stop == 0;
  LOCKED;
  conditions[*static_cast<uint64_t*>(parameters[0])] = met ? 1 : 0;
}

unsigned condition_of(uint64_t handle) {
  LOCKED;
  return conditions[handle];
}

CUresult run_kernel(CUfunction function, unsigned blocks, unsigned y, unsigned z, unsigned threads,
                    int ordinal, void** parameters) {
  const auto word = reinterpret_cast<uintptr_t>(function);
  if (word > kClock) {  // of a module of the fake NVRTC: a few blocks do all
    const auto few = [](unsigned count) { return std::min(count, 3u); };
    reinterpret_cast<Launch*>(function)(parameters, few(blocks), few(y), few(z), threads);
    return CUDA_SUCCESS;
  }
  if (word == kClock) {  // it talks with the caller
    auto* words = *static_cast<peerway::device::Word**>(parameters[0]);
    std::thread(answer_clock, words, *static_cast<unsigned*>(parameters[1])).detach();
    return CUDA_SUCCESS;
  }
  if (word == kCondition) {
    set_condition(parameters);
    return CUDA_SUCCESS;
  }
  if (word == kReduce) {
    const auto& arguments = *static_cast<const ReduceArguments*>(parameters[0]);
    if (!arguments.condition.is_met()) return CUDA_SUCCESS;
    none_cancelled(arguments, 0, 1) ? reduce(arguments, 0, 1) : cancel_round(arguments, 0, 1);
    return CUDA_SUCCESS;
  }
  if (word >= kSteps) return run_plan(word, parameters[0], blocks);
  LOCKED;
  const CopyArguments& arguments = *static_cast<const CopyArguments*>(parameters[0]);
  const peerway::device::StridedCopy& copy = arguments.copy;
  if (!reaches_all(ordinal, arguments)) return CUDA_ERROR_INVALID_VALUE;
  world.log += "kernel " + std::to_string(word) + " x " + std::to_string(copy.words) +
               (arguments.signal != nullptr ? " and write\n" : "\n");
  switch (word) {
    case 16:
      run<peerway::device::detail::Word16>(copy, blocks * threads);
      break;
    case 8:
      run<uint64_t>(copy, blocks * threads);
      break;
    case 4:
      run<uint32_t>(copy, blocks * threads);
      break;
    case 2:
      run<uint16_t>(copy, blocks * threads);
      break;
    default:
      run<uint8_t>(copy, blocks * threads);
  }
  if (arguments.signal != nullptr) __atomic_store_n(arguments.signal, arguments.value, __ATOMIC_RELEASE);
  return CUDA_SUCCESS;
}

}  // namespace

namespace {

CUresult launch(CUfunction function, unsigned blocks, unsigned y, unsigned z, unsigned threads,
                CUstream stream, void** parameters, bool begins_early) {
  const auto word = reinterpret_cast<uintptr_t>(function);
  const int ordinal = stream != nullptr ? stream->ordinal : std::max(current(), 0);
  const bool captured = stream != nullptr && stream->captured != nullptr;
  if (word == kClock || (!captured && !is_late(stream)))
    return run_kernel(function, blocks, y, z, threads, ordinal, parameters);
  if (word < kSteps && !reaches_all(ordinal, *static_cast<CopyArguments*>(parameters[0])))
    return CUDA_ERROR_INVALID_VALUE;
  const auto run = [=, whole = reachable(kept(function, parameters))] {
    run_kernel(function, blocks, y, z, threads, ordinal, whole);
    return CUDA_SUCCESS;
  };
  if (!captured) return in_order(stream, run);
  const bool is_plan = word >= kSteps && word < kReduce;
  stream->captured->launches.push_back({run, is_plan, begins_early && word > kClock});
  return CUDA_SUCCESS;
}

}  // namespace

API CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned y, unsigned z, unsigned threads,
                            unsigned, unsigned, unsigned, CUstream stream, void** parameters, void**) {
  return launch(function, blocks, y, z, threads, stream, parameters, false);
}

API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  {
    LOCKED;
    COUNT_CALL;
  }
  bool begins_early = false;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      begins_early = config->attrs[i].value[0] != 0;
  return launch(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                config->hStream, parameters, begins_early);
}

// A graph is the launches of one stream, in their order; a conditional node is a launch of its body's.
API CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = new pw::cuda::CUgraph_st;
  return CUDA_SUCCESS;
}
API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode*, const void*,
                                         size_t, int) {
  if (stream->captured != nullptr) return CUDA_ERROR_INVALID_VALUE;
  stream->captured = graph;
  return CUDA_SUCCESS;
}
API CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  return cuStreamBeginCaptureToGraph(stream, new pw::cuda::CUgraph_st, nullptr, nullptr, 0, 0);
}
API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  if (stream->captured == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = std::exchange(stream->captured, nullptr);
  return CUDA_SUCCESS;
}
API CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext,
                                            unsigned value, unsigned) {
  static std::atomic<uint64_t> last{0};
  *handle = ++last;
  graph->conditions.emplace_back(*handle, value);
  return CUDA_SUCCESS;
}
API CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                            CUgraphNodeParams* params) {
  if (params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_INVALID_VALUE;
  auto& conditional = params->conditional;
  auto body = std::make_shared<pw::cuda::CUgraph_st>();
  static std::vector<std::unique_ptr<CUgraph>> lists;  // what phGraph_out points to
  LOCKED;
  lists.push_back(std::make_unique<CUgraph>(body.get()));
  conditional.phGraph_out = lists.back().get();
  graph->launches.push_back({[body, handle = conditional.handle, type = conditional.type] {
    while (condition_of(handle) != 0) {
      run_all(body->launches);
      if (type == CU_GRAPH_COND_TYPE_IF) break;
    }
  }});
  *node = reinterpret_cast<CUgraphNode>(graph->launches.size());
  return CUDA_SUCCESS;
}
API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  *count = std::min(*count, graph->launches.size());
  for (size_t i = 0; i < *count; ++i) nodes[i] = reinterpret_cast<CUgraphNode>(i + 1);
  return CUDA_SUCCESS;
}
API CUresult cuGraphInstantiateWithFlags(CUgraphExec* instance, CUgraph graph, unsigned long long) {
  *instance = new pw::cuda::CUgraphExec_st{*graph};
  return CUDA_SUCCESS;
}
API CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  {
    LOCKED;
    COUNT_CALL;
  }
  return in_order(stream, [whole = *graph] {
    {
      LOCKED;
      for (const auto& [handle, value] : whole.conditions) conditions[handle] = value;
    }
    run_all(whole.launches);
    return CUDA_SUCCESS;
  });
}
API CUresult cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}
API CUresult cuGraphExecDestroy(CUgraphExec graph) {
  delete graph;
  return CUDA_SUCCESS;
}
