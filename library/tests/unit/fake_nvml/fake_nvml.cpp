// A test double of NVML: GPUs whose UUID is one byte sixteen times, which says what becomes of them. 0x1n are
// the GPUs of fake_cuda, joined by NVLink; 0x20 is joined to them by PCIe; 0x30 + s has the peer status s;
// 0x4n is a MIG slice; 0x50 may not be opened; no other exists. With FAKE_NVML_APART, no GPU but the first
// may be opened: a control group.
#include <cstdlib>
#include <cstring>

#define API extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kNotFound = 6, kNoPermission = 4;
constexpr int kNvlink = 2, kNotSupported = 5;

unsigned byte_of(const char* uuid) {
  return static_cast<unsigned>(std::strtoul(std::strchr(uuid, '-') + 1, nullptr, 16) >> 24);
}

}  // namespace

API int nvmlInit_v2() { return kSuccess; }
API const char* nvmlErrorString(int error) {
  return error == kNotFound ? "Not Found" : "Insufficient Permissions";
}

API int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const unsigned byte = byte_of(uuid);
  const bool is_slice = std::strncmp(uuid, "MIG-", 4) == 0;
  if (byte == 0x50 || (byte == 0x11 && std::getenv("FAKE_NVML_APART") != nullptr)) return kNoPermission;
  if (is_slice != (byte / 16 == 4) || byte < 0x10 || byte >= 0x50) return kNotFound;
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(byte));
  return kSuccess;
}

// The list has the two GPUs of fake_cuda, as many as may be opened.
API int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index == 1 && std::getenv("FAKE_NVML_APART") != nullptr) return kNoPermission;
  *device = reinterpret_cast<void*>(0x10ul + index);
  return kSuccess;
}
API int nvmlDeviceGetName(void*, char* name, unsigned bytes) {
  std::strncpy(name, "Fake GPU", bytes);
  return kSuccess;
}
API int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = std::getenv("FAKE_NVML_SLICES") != nullptr ? 1 : 0;
  return kSuccess;
}

API int nvmlDeviceGetP2PStatus(void* first, void* second, int capability, int* status) {
  const auto larger = reinterpret_cast<unsigned long>(first) > reinterpret_cast<unsigned long>(second)
                          ? reinterpret_cast<unsigned long>(first)
                          : reinterpret_cast<unsigned long>(second);
  if (larger / 16 == 3)
    *status = static_cast<int>(larger % 16);
  else
    *status = larger == 0x20 && capability == kNvlink ? kNotSupported : 0;
  return kSuccess;
}
