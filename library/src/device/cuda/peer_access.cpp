#include "device/cuda/peer_access.h"

#include <cstring>

#include "base/format.h"
#include "base/setting.h"
#include "device/cuda/nvml.h"

namespace pw::settings {

const PathSetting nvml_library{
    "nvml_library", "",
    "The NVML library, which knows the GPUs that CUDA_VISIBLE_DEVICES hides. Empty: libnvidia-ml.so.1 of the "
    "system."};

}  // namespace pw::settings

namespace pw::cuda {

std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += format("{:02x}", static_cast<unsigned>(uuid[i]));
  }
  return text;
}

Uuid uuid_of(const Driver& driver, int ordinal) {
  CUuuid uuid{};
  driver.check(driver.cuDeviceGetUuid(&uuid, ordinal),
               format("asking for the UUID of {}", driver.device_name(ordinal)));
  Uuid bytes;
  std::memcpy(bytes.data(), uuid.bytes, sizeof uuid.bytes);
  return bytes;
}

PeerAccesses::PeerAccesses(const Driver& driver, int ordinal)
    : driver_(driver), ordinal_(ordinal), own_(uuid_of(driver, ordinal)) {}

const PeerAccess& PeerAccesses::to(const Uuid& gpu) const {
  const std::lock_guard lock(mutex_);
  const auto entry = known_.find(gpu);
  return entry != known_.end() ? entry->second : known_.emplace(gpu, find(gpu)).first->second;
}

PeerAccess PeerAccesses::find(const Uuid& gpu) const {
  if (gpu == own_) return {ordinal_, true, {}, {}};
  int count = 0;
  driver_.cuDeviceGetCount(&count);
  for (int ordinal = 0; ordinal < count; ++ordinal)
    if (uuid_of(driver_, ordinal) == gpu) return between(ordinal);
  if (driver_.vendor.why_no_hidden.empty()) return access_to_hidden(settings::nvml_library.text(), own_, gpu);
  return {-1, false, {}, std::string(driver_.vendor.why_no_hidden)};
}

PeerAccess PeerAccesses::between(int other) const {
  int can = 0;
  if (driver_.cuDeviceCanAccessPeer(&can, ordinal_, other) != CUDA_SUCCESS || can == 0)
    return {other,
            false,
            {},
            format("{} has no peer access to {}: {}", driver_.device_name(ordinal_),
                   driver_.device_name(other), driver_.vendor.why_no_access)};
  // CUDA does not name the link. Among today's links only NVLink supports atomic operations.
  int atomics = 0;
  driver_.cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, ordinal_, other);
  return {other, true, std::string(atomics != 0 ? driver_.vendor.fast_link : "pcie"), {}};
}

}  // namespace pw::cuda
