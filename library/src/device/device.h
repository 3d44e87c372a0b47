// A device is where memory lives and work runs. Code above this folder does not know which kinds of devices
// there are: a new kind is a new folder here and one line in kinds.cpp.
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
#include "peerway/device/element.cuh"
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

/// How an allocation can be shared with another process. Each kind of device numbers its own handles after
/// `memfd`; a key's device says which kind a number belongs to.
enum class Handle : uint8_t {
  none,       ///< it cannot be shared; the allocation says why
  process,    ///< by process id and address: cross-memory attach (host)
  memfd,      ///< a file descriptor of the owner, which peers open and map (host)
  of_device,  ///< the first number for handles of kinds of devices
};
constexpr Handle handle_of_device(uint8_t number) {
  return static_cast<Handle>(static_cast<uint8_t>(Handle::of_device) + number);
}

/// The description of an allocation that its owner sends so that a peer can map it. Plain bytes, part of a
/// key.
struct Export {
  Handle handle = Handle::none;
  uint64_t allocation = 0;  ///< id of the allocation, never reused within a process; importers cache by it
  uint64_t bytes = 0;       ///< of the whole allocation
  uint64_t offset = 0;      ///< of the region in the allocation
  int32_t process = 0;      ///< process id of the owner
  int32_t descriptor = -1;  ///< if the handle is a descriptor: its number in the owner
  uint64_t address = 0;     ///< the region's address in the owner
  std::array<std::byte, 16> device_uuid{};   ///< which GPU (zeros: host)
  std::array<std::byte, 64> handle_bytes{};  ///< if the handle is more than a number: its bytes
  bool operator==(const Export&) const = default;
};

/// A device's information about the allocation around an address.
struct Allocation {
  DeviceId device;
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  uint64_t id = 0;  ///< changes if the address is reused after a free; 0 if the system has no such id
  Handle handle = Handle::none;
  std::string why_none;  ///< for Handle::none: the reason, and what to do
};

/// One block-strided copy between addresses that one queue can access.
struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Layout layout;
};

/// A copy of contiguous memory.
struct FlatCopy {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
};

/// The unit that does a copy: `engine` is the DMA engine (cuda) or the CPU's copy loop (host), `kernel` an SM
/// kernel (cuda only).
enum class CopyBy : uint8_t { engine, kernel };

/// An ordered queue of copies on one device. Several threads may use it at once; each call is enqueued as a
/// whole.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual pw_status copy(const Copy& copy, CopyBy by) = 0;
  /// Stores `value` to `*word` after all earlier copies of this queue are visible to every device and
  /// process. `word` must be accessible to the device: host memory pinned with Device::pin, or device memory.
  virtual pw_status write(uint64_t* word, uint64_t value) = 0;
  /// Like write(), but copies enqueued later need not wait for it: for words that report progress between
  /// copies that follow one another closely. Such writes stay in order among themselves.
  virtual pw_status write_aside(uint64_t* word, uint64_t value) { return write(word, value); }
  /// copy() and then write(), as one piece of work if the device supports it.
  virtual pw_status copy_and_write(const Copy& copied, CopyBy by, uint64_t* word, uint64_t value) {
    const pw_status status = copy(copied, by);
    return status == PW_OK ? write(word, value) : status;
  }
  /// Returns true once all enqueued work is done. `status` receives an error of the device.
  virtual bool idle(pw_status& status) = 0;
};

/// A mapping of a peer's allocation, undone when the last user releases it.
class Mapping {
 public:
  virtual ~Mapping() = default;
  [[nodiscard]] std::byte* address() const {
    return address_;
  }  ///< address of the first byte of the whole
     ///< allocation

 protected:
  std::byte* address_ = nullptr;
};

/// Memory of this process, which needs no mapping.
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
  /// Bytes that a GPU reads and writes in its memory in a microsecond, by its clock and its bus; 0 if these
  /// are not known. Memory that transfers more than twice a clock is faster.
  [[nodiscard]] virtual double memory_bytes_per_us() const { return 0; }

  /// Returns the allocation around the `bytes` bytes at `address`, or nothing if the address is not this
  /// device's. The host accepts every address. The returned allocation may end before the range does.
  virtual std::optional<Allocation> find(const void* address, uint64_t bytes) = 0;

  /// Returns the id that find() would return, in well under a microsecond; used to check a cached
  /// registration.
  virtual uint64_t allocation_id(const void* address) = 0;

  /// Allocates memory with the best handle that this device can export. Throws Error.
  virtual Allocation allocate(uint64_t bytes) = 0;
  virtual void release(const Allocation& allocation) noexcept = 0;

  /// Returns what a peer needs to map the allocation, for a region at `address` in it. Valid until `forget`.
  /// Throws Error.
  virtual Export export_allocation(const Allocation& allocation, const void* address) = 0;
  virtual void forget(const Export& exported) noexcept = 0;

  /// Maps a peer's allocation so that this device's queues can access it. Throws Error with the reason if
  /// that fails.
  virtual std::shared_ptr<Mapping> import(const Export& exported) = 0;

  virtual std::unique_ptr<Queue> make_queue() = 0;

  /// Makes a stream for the program's own work (a CUDA stream, or a thread with a queue). Throws Error.
  virtual void* make_stream() = 0;
  /// Waits for all enqueued work, then frees the stream.
  virtual void free_stream(void* stream) noexcept = 0;
  /// Whether `stream` is a stream of this device; if not, why.
  virtual bool owns_stream(void* stream, std::string& why_not) = 0;
  /// Calls `call(user)` on some thread of the host, in the stream's order.
  virtual pw_status call(void* stream, void (*call)(void*), void* user) = 0;
  /// Copies between memory of this device in the stream's order; the host returns at once.
  virtual pw_status copy_on(void* stream, const FlatCopy& copy) = 0;
  /// Returns true once all enqueued work is done. `status` receives an error of the device.
  virtual bool stream_idle(void* stream, pw_status& status) = 0;

  /// Compiles and loads what combines such elements; that can take a second. Call it before other ranks can
  /// wait for this one. Throws Error.
  virtual void load_reduction(peerway::device::Element, peerway::device::Combine) {}
  /// Prepares a program to run here. Everything that the program refers to must outlive the runner. Throws
  /// Error.
  virtual std::unique_ptr<Runner> make_runner(const Program& program) = 0;

  /// Sets memory from allocate() to zeros; returns when that is done. Throws Error.
  virtual void clear(void* address, uint64_t bytes) = 0;

  /// Returns a dma-buf descriptor of the allocation, with which the CPU or a NIC can map device memory; the
  /// caller closes it. Throws Error with the reason.
  virtual int dma_buf(const Allocation&) { throw Error(PW_UNSUPPORTED, "" + name() + " has no dma-buf"); }

  /// Maps memory of this device for the CPU. Throws Error with the reason and what to do.
  virtual std::unique_ptr<CpuMapping> map_for_cpu(const Allocation&) {
    throw Error(PW_UNSUPPORTED, "the CPU cannot map the memory of " + name());
  }

  /// Makes this device current in the calling thread if no device is: libraries that use devices themselves
  /// (UCX) use the current one.
  virtual void enter() {}

  /// Lets this device access host memory at full speed and write words in it. Throws Error.
  virtual void pin(void* address, uint64_t bytes) = 0;
  virtual void unpin(void* address) noexcept = 0;

  /// Returns this device's address for an address of the process: pinned host memory, or its own memory.
  [[nodiscard]] virtual void* as_seen(void* address) { return address; }

  /// Whether this device's queues can directly access memory of another device (of any process of this host);
  /// if not, why. Pure.
  [[nodiscard]] virtual bool reaches(const Export& exported, std::string& why_not) const = 0;

  /// Whether CopyBy::kernel works here; if not, why. May compile device code at the first call.
  virtual bool has_kernels(std::string& why_not) = 0;

  /// Returns the link between this device and that memory: "nvlink", "pcie", "same" (one GPU), "time-sliced"
  /// (one GPU, whose processes take turns), or "" if there is only one kind of link. It is part of the pair
  /// class by which route tables keep costs.
  [[nodiscard]] virtual std::string link(const Export& exported) const = 0;

  /// Whether 128 bytes that kernels of this device store there at once arrive as a whole
  /// (peerway/device/line.cuh).
  [[nodiscard]] virtual bool carries_lines(const Export& exported) const {
    static_cast<void>(exported);
    return false;
  }

 protected:
  /// Returns the part of an Export that is the same for every kind of handle, for a region at `address` in
  /// the allocation.
  static Export describe(const Allocation& allocation, const void* address);
};

/// Returns the devices of this process, the host first. They are found once. If the driver of a kind is
/// missing there are none of that kind, and why_none() says why.
std::span<Device* const> devices();
Device& host_device();
/// Throws Error(PW_UNAVAILABLE) with the existing devices if there is no such device.
Device& device(DeviceId id);
/// Returns why this process has no device of that kind; empty if it has one.
const std::string& why_none(pw_device_kind kind);

}  // namespace pw
