// A device is where memory lives and work runs. Above this folder nobody knows which kinds there are: a new
// kind (HIP) is a new folder here and one line in kinds.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/cpu_mapping.h"
#include "device/shape.h"
#include "peerway/peerway.h"

namespace pw {

struct Program;
class Runner;

struct DeviceId {
  pw_device_kind kind = PW_HOST;
  int32_t index = 0;
  bool operator==(const DeviceId&) const = default;
};

/// "host" or "cuda:1".
std::string to_string(DeviceId id);

/// How an allocation can be shown to another process. What follows `memfd` each kind of device numbers for
/// itself, and tells apart by the device that a key names.
enum class Handle : uint8_t {
  none,       ///< it cannot; the allocation says why
  process,    ///< by process id and address: cross-memory attach (host)
  memfd,      ///< a file descriptor of the owner, which peers open and map (host)
  of_device,  ///< the first that the kinds of device number
};
constexpr Handle handle_of_device(uint8_t number) {
  return static_cast<Handle>(static_cast<uint8_t>(Handle::of_device) + number);
}

/// The facts that a peer needs to map an allocation. Plain bytes, part of a key.
struct Export {
  Handle handle = Handle::none;
  uint64_t allocation = 0;  ///< id of the allocation, never used twice by one process; importers cache by it
  uint64_t bytes = 0;       ///< of the whole allocation
  uint64_t offset = 0;      ///< of the region in it
  int32_t process = 0;      ///< process id of the owner
  int32_t descriptor = -1;  ///< of the handle, where it is one: the number in the owner
  uint64_t address = 0;     ///< the region's address in the owner
  std::array<std::byte, 16> device_uuid{};   ///< which GPU (zeros: host)
  std::array<std::byte, 64> handle_bytes{};  ///< of the handle, where it is more than a number
  bool operator==(const Export&) const = default;
};

/// What a device knows about the allocation around an address.
struct Allocation {
  DeviceId device;
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  uint64_t id = 0;  ///< another one when the address is reused after a free; 0 where the system has none
  Handle handle = Handle::none;
  std::string why_none;  ///< for Handle::none: why, and what to do
};

/// One block-strided copy between addresses that one queue can reach.
struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Layout layout;
};

/// Which unit copies: `engine` is the DMA engine (cuda) or the CPU's copy loop (host), `kernel` an SM kernel
/// (cuda only).
enum class Method : uint8_t { engine, kernel };

/// An ordered queue of copies on one device. Safe to use from several threads; each call is enqueued whole.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual pw_status copy(const Copy& copy, Method method) = 0;
  /// Stores `value` to `*word`, after all earlier copies of this queue are visible to every device and
  /// process. `word` must be reachable by the device: host memory pinned with Device::pin, or device memory.
  virtual pw_status write(uint64_t* word, uint64_t value) = 0;
  /// As write(), but copies enqueued later need not wait for it: for words that tell of progress, between
  /// copies that follow one another closely. Such writes stay in order among themselves.
  virtual pw_status write_aside(uint64_t* word, uint64_t value) { return write(word, value); }
  /// copy() and then write(), as one piece of work where the device can.
  virtual pw_status copy_and_write(const Copy& copied, Method method, uint64_t* word, uint64_t value) {
    const pw_status status = copy(copied, method);
    return status == PW_OK ? write(word, value) : status;
  }
  /// True once all that was enqueued is done. An error of the device is returned through `status`.
  virtual bool idle(pw_status& status) = 0;
};

/// A mapping of a peer's allocation, unmapped when the last user lets go.
class Mapping {
 public:
  virtual ~Mapping() = default;
  [[nodiscard]] std::byte* address() const { return address_; }  ///< of the whole allocation's first byte

 protected:
  std::byte* address_ = nullptr;
};

/// Memory of this very process, which needs no mapping.
class OwnMemory final : public Mapping {
 public:
  explicit OwnMemory(const Export& exported) {
    address_ = reinterpret_cast<std::byte*>(exported.address - exported.offset);
  }
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual DeviceId id() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "NVIDIA H200", the CPU's model
  [[nodiscard]] virtual std::array<std::byte, 16> uuid() const = 0;

  /// The allocation around the `bytes` bytes at `address`, or nothing when the address is not this device's.
  /// The host knows every address. An allocation that ends before the span does is returned as it is.
  virtual std::optional<Allocation> find(const void* address, uint64_t bytes) = 0;

  /// The id that find() would give, in well under a microsecond: what a cached registration is checked
  /// against.
  virtual uint64_t allocation_id(const void* address) = 0;

  /// New memory with the best handle this device can export. Throws Error.
  virtual Allocation allocate(uint64_t bytes) = 0;
  virtual void release(const Allocation& allocation) noexcept = 0;

  /// What a peer needs to map the allocation, for a region at `address` in it. Throws Error. Kept until
  /// `forget`.
  virtual Export export_allocation(const Allocation& allocation, const void* address) = 0;
  virtual void forget(const Export& exported) noexcept = 0;

  /// Maps a peer's allocation so that this device's queues can reach it. Throws Error with the reason when it
  /// cannot.
  virtual std::shared_ptr<Mapping> import(const Export& exported) = 0;

  virtual std::unique_ptr<Queue> make_queue() = 0;

  /// A stream of the program's own work (a CUDA stream, or a thread with a queue). Throws Error.
  virtual void* make_stream() = 0;
  /// Waits for all that was enqueued.
  virtual void free_stream(void* stream) noexcept = 0;
  /// Whether `stream` is one of this device, and if not, why.
  virtual bool owns_stream(void* stream, std::string& why_not) = 0;
  /// Calls `call(user)` on some thread of the host, in the stream's order.
  virtual pw_status call(void* stream, void (*call)(void*), void* user) = 0;
  /// True once all that was enqueued is done. An error of the device is returned through `status`.
  virtual bool stream_idle(void* stream, pw_status& status) = 0;

  /// Makes a program ready to run here. Everything that the program refers to must outlive the runner. Throws
  /// Error.
  virtual std::unique_ptr<Runner> make_runner(const Program& program) = 0;

  /// Sets memory that allocate() gave to zeros; returns when it is done. Throws Error.
  virtual void clear(void* address, uint64_t bytes) = 0;

  /// A dma-buf descriptor of the allocation, by which the CPU or a NIC maps device memory; the caller
  /// closes it. Throws Error with the reason.
  virtual int dma_buf(const Allocation&) { throw Error(PW_UNSUPPORTED, "" + name() + " has no dma-buf"); }

  /// Maps memory of this device for the CPU. Throws Error with the reason and what to do.
  virtual std::unique_ptr<CpuMapping> map_for_cpu(const Allocation&) {
    throw Error(PW_UNSUPPORTED, "the CPU cannot map the memory of " + name());
  }

  /// Makes this device the current one of the calling thread, where none is: libraries that use it themselves
  /// (UCX) work with the current one.
  virtual void enter() {}

  /// Lets this device reach host memory at full speed and write words in it. Throws Error.
  virtual void pin(void* address, uint64_t bytes) = 0;
  virtual void unpin(void* address) noexcept = 0;

  /// This device's address for an address of the process, of pinned host memory or of its own.
  [[nodiscard]] virtual void* as_seen(void* address) { return address; }

  /// Whether this device's queues can reach memory of `other` (a device of any process of this host)
  /// directly, and if not, why. Pure.
  [[nodiscard]] virtual bool reaches(const Export& exported, std::string& why_not) const = 0;

  /// Whether Method::kernel works here, and if not, why. May compile device code at the first call.
  virtual bool has_kernels(std::string& why_not) = 0;

  /// How this device is joined to that memory: "nvlink", "pcie", "same" (one GPU), "time-sliced" (one GPU,
  /// whose processes take turns), "" where there is only one way. Part of the pair class that route tables
  /// are keyed by.
  [[nodiscard]] virtual std::string link(const Export& exported) const = 0;

  /// Whether 128 bytes that kernels of this device store there at once arrive as a whole
  /// (peerway/device/line.cuh).
  [[nodiscard]] virtual bool carries_lines(const Export& exported) const {
    static_cast<void>(exported);
    return false;
  }

 protected:
  /// The part of an Export that every kind of handle has, for a region at `address` in the allocation.
  static Export describe(const Allocation& allocation, const void* address);
};

/// The devices of this process: host first. Found once; of a kind whose driver is missing there is none, and
/// why_none() says why.
std::span<Device* const> devices();
Device& host_device();
/// Throws Error(PW_UNAVAILABLE) naming the devices there are.
Device& device(DeviceId id);
/// Why this process has no device of that kind; empty where it has.
const std::string& why_none(pw_device_kind kind);

}  // namespace pw
