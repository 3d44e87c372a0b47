// What all of peerway._core shares: names of devices, and arrays that speak DLPack. The other files here bind
// a class each, thinly: one method a call of peerway.hpp. The interpreter's lock is released wherever a call
// may wait or move bytes. library/python/peerway adds the convenience.
#include "core.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>
#include <vector>

#include "device/kinds.h"

namespace pwpy {

pw_device parse_device(const std::string& kind, int32_t index) {
  std::string known;
  const auto kinds = pw::device_kinds();
  for (size_t number = 0; number < kinds.size(); ++number) {
    const std::string name(kinds[number].name);
    if (name == kind) return {static_cast<pw_device_kind>(number), number == PW_HOST ? 0 : index};
    known.append(number == PW_HOST ? "'" : ", '").append(name).append("'");
    if (number != PW_HOST) known.append(" and '").append(name).append(":N'");
  }
  throw peerway::Error(peerway::Status::invalid_argument,
                       "peerway: unknown device '" + kind + "'; there are " + known + ".");
}

std::string shown(const std::string& kind, std::initializer_list<std::pair<const char*, nb::object>> fields) {
  std::string text;
  for (const auto& [name, value] : fields)
    text += (text.empty() ? "" : ", ") + (name + ("=" + std::string(nb::repr(value).c_str())));
  return kind + "(" + text + ")";
}

std::string device_name(pw_device device) { return pw::to_string({device.kind, device.index}); }

namespace {

/// Returns the address, shape, strides in bytes and element size of an array that supports only DLPack. An
/// Array of nb::ro also takes arrays that may not be written.
template <typename Array>
std::tuple<uintptr_t, std::vector<int64_t>, std::vector<int64_t>, int64_t> dlpack_layout(const Array& array) {
  const int64_t item = (array.dtype().bits * array.dtype().lanes + 7) / 8;
  std::vector<int64_t> shape, strides;
  for (size_t d = 0; d < array.ndim(); ++d) {
    shape.push_back(static_cast<int64_t>(array.shape(d)));
    strides.push_back(array.stride(d) * item);
  }
  return {reinterpret_cast<uintptr_t>(array.data()), shape, strides, item};
}

/// Returns a DLPack view of CUDA memory as bytes; the view keeps `owner` alive.
nb::ndarray<nb::array_api, uint8_t> cuda_bytes(uintptr_t address, uint64_t bytes, int32_t device,
                                               nb::object owner, bool rocm) {
  return {reinterpret_cast<uint8_t*>(address),
          {static_cast<size_t>(bytes)},
          std::move(owner),
          {},
          nb::dtype<uint8_t>(),
          rocm ? nb::device::rocm::value : nb::device::cuda::value,
          device};
}

}  // namespace

void bind_core(nb::module_& module) {
  module.attr("ANY_RANK") = PW_ANY_RANK;
  module.attr("MAX_DIMS") = PW_MAX_DIMS;
  module.def("version", &pw_version);
  module.def("dlpack_layout", &dlpack_layout<nb::ndarray<>>, nb::arg("array"));
  module.def("dlpack_read_only_layout", &dlpack_layout<nb::ndarray<nb::ro>>, nb::arg("array"));
  module.def("cuda_bytes", &cuda_bytes, nb::arg("address"), nb::arg("bytes"), nb::arg("device"),
             nb::arg("owner"), nb::arg("rocm") = false);
}

}  // namespace pwpy
