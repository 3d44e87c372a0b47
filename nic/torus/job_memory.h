// How the processes of a job on one host share memory that no file system names: it is a memfd, and a socket
// in the abstract namespace hands the memfd and the socket itself to each process that asks. Both are gone
// with the last process that has them, however it ended.
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
  /// That of the name, which this process has, or gets from another one, or makes: then `make(address)`,
  /// given zeros, is called before anybody else sees them. The first `held` bytes can be touched without a
  /// fear; for the rest there is hold(). Throws Failure.
  static std::shared_ptr<JobMemory> at(const std::string& name, uint64_t bytes, uint64_t held,
                                       const std::function<void(std::byte*)>& make);
  ~JobMemory();
  JobMemory(const JobMemory&) = delete;

  [[nodiscard]] std::byte* address() const { return address_; }
  /// Whether there is memory for these bytes, from now on.
  [[nodiscard]] bool hold(uint64_t offset, uint64_t bytes) const;

  /// Readable when a process asks for the memory, or rings; then call hand_out().
  [[nodiscard]] int listener() const { return listener_.get(); }
  void hand_out() const;
  /// Makes listener() readable for all.
  void ring() const;

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
