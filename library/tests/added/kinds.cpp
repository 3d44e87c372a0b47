// The list of kinds of device with one more.
#define device_kinds those_of_the_library
#include "device/kinds.cpp"
#undef device_kinds

namespace pw {

std::vector<std::unique_ptr<Device>> find_mock(std::string& why_none);  // mock.cpp

std::span<const DeviceKind> device_kinds();
std::span<const DeviceKind> device_kinds() {
  static const std::vector<DeviceKind> all = [] {
    const auto own = those_of_the_library();
    std::vector<DeviceKind> kinds(own.begin(), own.end());
    kinds.push_back({"mock", find_mock});
    return kinds;
  }();
  return all;
}

}  // namespace pw
