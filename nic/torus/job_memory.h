// Memory that the processes of a job on one host share, without a name in a file system. It is a memfd, and a
// socket in the abstract namespace passes the memfd and the socket itself to each process that asks. Both are
// gone with the last process that has them, however it ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/descriptor.h"

namespace pw::torus {

class JobMemory {
 public:
  /// Returns the memory of that name: this process has it already, gets it from another process, or makes it.
  /// In the last case it first calls `make(address)` with zeroed memory. The first `held` bytes are allocated
  /// and may be accessed; for the rest call hold(). Throws Failure.
  static std::shared_ptr<JobMemory> at(const std::string& name, uint64_t bytes, uint64_t held,
                                       const std::function<void(std::byte*)>& make);
  ~JobMemory();
  JobMemory(const JobMemory&) = delete;

  [[nodiscard]] std::byte* address() const { return address_; }
  /// Allocates memory for these bytes; returns false if there is none.
  [[nodiscard]] bool hold(uint64_t offset, uint64_t bytes) const;

  /// Readable when a process asks for the memory or calls wake_all(); then call hand_out().
  [[nodiscard]] int listener() const { return listener_.get(); }
  void hand_out() const;
  /// Makes listener() readable in all processes, so that their engines look at the shared state.
  void wake_all() const;

 private:
  JobMemory(std::string name, uint64_t bytes) : name_(std::move(name)), bytes_(bytes) {}
  bool join(uint64_t deadline);
  bool create(uint64_t held, const std::function<void(std::byte*)>& make);
  void map();

  std::string name_;
  uint64_t bytes_;
  Descriptor memory_, listener_;
  std::byte* address_ = nullptr;
};

}  // namespace pw::torus
