// Devices that are none, for tests of what is above them: MadeUpDevice, whose queues a test makes;
// HeldDevice, whose copies end when the test says so.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/host/copy.h"
#include "device/program.h"

namespace pw::testing {

/// Counts as a GPU. Its memory is the CPU's, and nobody can map it.
class MadeUpDevice : public Device {
 public:
  [[nodiscard]] DeviceId id() const override { return {PW_CUDA, 0}; }
  [[nodiscard]] std::string name() const override { return "made up"; }
  [[nodiscard]] std::array<std::byte, 16> uuid() const override { return {}; }
  std::optional<Allocation> find(const void*, uint64_t) override { return {}; }
  uint64_t allocation_id(const void*) override { return 0; }
  Allocation allocate(uint64_t bytes) override {
    Allocation allocation;
    allocation.device = id();
    allocation.base = new std::byte[bytes]{};
    allocation.bytes = bytes;
    return allocation;
  }
  void release(const Allocation& allocation) noexcept override { delete[] allocation.base; }
  Export export_allocation(const Allocation&, const void*) override { return {}; }
  void forget(const Export&) noexcept override {}
  std::shared_ptr<Mapping> import(const Export&) override { return nullptr; }
  void* make_stream() override { throw Error(PW_INTERNAL, "not used"); }
  void free_stream(void*) noexcept override {}
  bool owns_stream(void*, std::string&) override { return false; }
  pw_status call(void*, void (*)(void*), void*) override { return PW_INTERNAL; }
  pw_status copy_on(void*, const FlatCopy&) override { return PW_INTERNAL; }
  bool stream_idle(void*, pw_status&) override { return true; }
  std::unique_ptr<Runner> make_runner(const Program&) override { return nullptr; }
  void clear(void*, uint64_t) override {}
  void pin(void*, uint64_t) override {}
  void unpin(void*) noexcept override {}
  [[nodiscard]] bool reaches(const Export&, std::string&) const override { return false; }
  bool has_kernels(std::string&) override { return false; }
  [[nodiscard]] std::string link(const Export&) const override { return {}; }
};

/// Does nothing that its queues are given before `until` says so. Whoever polls one of them many times over
/// waits for it: that is noted, and ends the wait, so that a test of it fails and does not hang.
class HeldDevice final : public MadeUpDevice {
 public:
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<HeldQueue>(*this); }

  /// Work done meanwhile is a poll of its own, so the count begins again.
  void next_turn() { polls_ = 0; }

  std::function<bool()> until = [] { return false; };
  bool waited_for = false;
  uint64_t given = 0;  ///< copies

 private:
  class HeldQueue final : public Queue {
   public:
    explicit HeldQueue(HeldDevice& device) : device_(device) {}
    pw_status copy(const Copy& copy, CopyBy) override {
      ++device_.given;
      return give([copy] { host_copy(copy); });
    }
    pw_status write(uint64_t* word, uint64_t value) override {
      return give([=] { std::atomic_ref(*word).store(value, std::memory_order_release); });
    }
    bool idle(pw_status& status) override {
      status = PW_OK;
      if (!device_.goes_on()) return held_.empty();
      for (const auto& each : held_) each();
      held_.clear();
      return true;
    }

   private:
    pw_status give(std::function<void()> work) {
      if (device_.free_ && held_.empty())
        work();
      else
        held_.push_back(std::move(work));
      return PW_OK;
    }

    HeldDevice& device_;
    std::vector<std::function<void()>> held_;
  };

  bool goes_on() {
    constexpr int kWait = 1000;
    if (!free_ && until()) free_ = true;
    if (!free_ && ++polls_ == kWait) free_ = waited_for = true;
    return free_;
  }

  bool free_ = false;
  int polls_ = 0;
};

}  // namespace pw::testing
