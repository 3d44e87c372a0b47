// Registers host memory with CUDA, for all CUDA devices of the process. Registering a range twice is an error
// of the driver, so this counts the users of each registration.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/driver.h"

namespace pw::cuda {

class Pins {
 public:
  explicit Pins(const Driver& driver) : driver_(driver) {}

  /// Registers the range, or counts one more user if it lies in a range registered before (here or by the
  /// program). A context must be current. Throws Error.
  void pin(void* address, uint64_t bytes);
  void unpin(void* address) noexcept;

  /// Returns the device's address of host memory pinned here; `address` itself if it is not pinned here.
  [[nodiscard]] uint64_t device_address(uint64_t address);

 private:
  struct Registration;
  std::shared_ptr<Registration> around(uint64_t address, uint64_t bytes);

  const Driver& driver_;
  std::mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Registration>> registrations_;  ///< by address of the first byte
  std::map<uint64_t, std::vector<std::shared_ptr<Registration>>>
      users_;  ///< by address; one entry for each pin()
};

}  // namespace pw::cuda
