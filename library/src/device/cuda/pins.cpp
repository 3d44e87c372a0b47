#include "device/cuda/pins.h"

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/pointer.h"

namespace pw::cuda {

// One range registered with the driver, until its last user releases it. Ranges that the program itself
// registered are left for the program to unregister.
struct Pins::Registration {
  const Driver& driver;
  uint64_t address;
  uint64_t bytes;
  uint64_t device_address;
  bool ours;
  ~Registration() {
    if (ours) driver.cuMemHostUnregister(reinterpret_cast<void*>(address));
  }
};

std::shared_ptr<Pins::Registration> Pins::around(uint64_t address, uint64_t bytes) {
  auto next = registrations_.upper_bound(address);
  if (next == registrations_.begin()) return nullptr;
  auto pin = std::prev(next)->second.lock();
  return pin && address + bytes <= pin->address + pin->bytes ? pin : nullptr;
}

void Pins::pin(void* pointer, uint64_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  std::lock_guard lock(mutex_);
  auto registration = around(address, bytes);
  if (registration == nullptr) {
    CUresult result =
        driver_.cuMemHostRegister(pointer, bytes, kHostRegisterPortable | kHostRegisterDeviceMap);
    const bool ours = result == CUDA_SUCCESS;
    if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED && describe_pointer(driver_, address).is_host() &&
        describe_pointer(driver_, address + bytes - 1).is_host())
      result = CUDA_SUCCESS;  // the program has registered it
    if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
      throw Error(PW_DEVICE, format("{} bytes of host memory at {} overlap a span that is registered with {} "
                                    "and not as large; register the larger span first",
                                    bytes, pointer, driver_.vendor.api));
    driver_.check(result, format("registering {} bytes of host memory at {} with {}", bytes, pointer,
                                 driver_.vendor.api));
    CUdeviceptr device = address;
    if (driver_.cuMemHostGetDevicePointer(&device, pointer, 0) != CUDA_SUCCESS) device = address;
    registration.reset(new Registration{driver_, address, bytes, device, ours});
    registrations_[address] = registration;
  }
  users_[address].push_back(std::move(registration));
}

void Pins::unpin(void* pointer) noexcept {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  std::lock_guard lock(mutex_);
  const auto user = users_.find(address);
  if (user == users_.end()) return;
  user->second.pop_back();
  if (user->second.empty()) users_.erase(user);
  std::erase_if(registrations_, [](const auto& entry) { return entry.second.expired(); });
}

uint64_t Pins::device_address(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto registration = around(address, 1);
  return registration == nullptr ? address : registration->device_address + (address - registration->address);
}

}  // namespace pw::cuda
