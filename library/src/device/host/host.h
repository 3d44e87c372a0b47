// The host device: the CPU and its memory. It always exists; every test runs on it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "device/device.h"
#include "device/host/stream.h"

namespace pw {

class HostDevice final : public Device {
 public:
  HostDevice();
  ~HostDevice() override;
  [[nodiscard]] DeviceId id() const override { return {}; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::array<std::byte, 16> uuid() const override { return {}; }
  std::optional<Allocation> find(const void* address, uint64_t bytes) override;
  uint64_t allocation_id(const void* address) override;
  Allocation allocate(uint64_t bytes) override;
  void release(const Allocation& allocation) noexcept override;
  Export export_allocation(const Allocation& allocation, const void* address) override;
  void forget(const Export&) noexcept override {}
  std::shared_ptr<Mapping> import(const Export& exported) override;
  std::unique_ptr<Queue> make_queue() override;
  void pin(void*, uint64_t) override {}
  void unpin(void*) noexcept override {}
  void* make_stream() override;
  void free_stream(void* stream) noexcept override;
  bool owns_stream(void* stream, std::string& why_not) override;
  pw_status call(void* stream, void (*call)(void*), void* user) override;
  pw_status copy_on(void* stream, const FlatCopy& copy) override;
  bool stream_idle(void* stream, pw_status& status) override;
  std::unique_ptr<Runner> make_runner(const Program& program) override;
  void clear(void* address, uint64_t bytes) override;
  [[nodiscard]] bool reaches(const Export& exported, std::string& why_not) const override;
  bool has_kernels(std::string& why_not) override {
    why_not = "the host has no copy kernels";
    return false;
  }
  [[nodiscard]] std::string link(const Export&) const override { return {}; }

 private:
  const Allocation* shared_at(const void* address) const;  ///< call with the lock held

  struct Shared {  ///< one memfd allocation of this process
    Allocation allocation;
    Descriptor descriptor;
  };
  std::string name_;
  std::mutex mutex_;
  std::map<const std::byte*, Shared> shared_;
  std::map<void*, std::unique_ptr<HostStream>> streams_;
  uint64_t next_id_ = 1;
};

/// Returns the one device of the host.
std::vector<std::unique_ptr<Device>> find_host(std::string& why_none);

/// Makes shared memory without a name, so that nothing remains when its processes die. Throws Error.
Descriptor make_memfd(const char* purpose, uint64_t bytes, uint64_t held = 0);

/// Returns a number that distinguishes this memfd from any other file that later gets the same descriptor
/// number.
uint64_t memfd_identity(int descriptor);

/// Opens a memfd of another process of the same user by its number in that process, and maps it if it still
/// has this identity and at least `bytes` bytes. `whose` is for messages. Throws Error; PW_STALE_KEY if the
/// memfd was closed.
std::byte* map_memfd_of(int process, int descriptor, uint64_t identity, uint64_t bytes, const char* whose);

}  // namespace pw
