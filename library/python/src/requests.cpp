// Requests for Python: started operations, to be tested and waited for. library/python/peerway/request.py
// adds the convenience.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "core.h"

namespace pwpy {
namespace {

using Seconds = std::optional<double>;
using Release = nb::call_guard<Calling>;

/// Returns the requests in the form of the C interface; `held` keeps them open.
std::vector<pw_request*> pointers(const std::vector<Request*>& requests,
                                  std::vector<std::shared_ptr<peerway::Request>>& held) {
  std::vector<pw_request*> all;
  for (const Request* request : requests) all.push_back(held.emplace_back(request->hold())->get());
  return all;
}

/// Returns the index of the first complete request; None after the timeout. The request's own wait() reports
/// how it ended.
std::optional<size_t> wait_any(const std::vector<Request*>& requests, Seconds seconds) {
  std::vector<std::shared_ptr<peerway::Request>> held;
  const auto all = pointers(requests, held);
  size_t index = all.size();
  released([&, limit = pw_timeout(seconds)] {
    const auto ended =
        static_cast<peerway::Status>(pw_request_wait_any(all.data(), all.size(), limit, &index));
    const bool complete = index < all.size() || ended == peerway::Status::timeout;
    return complete ? peerway::Status::ok : ended;
  });
  return index < all.size() ? std::optional(index) : std::nullopt;
}

void wait_all(const std::vector<Request*>& requests, Seconds seconds) {
  std::vector<std::shared_ptr<peerway::Request>> held;
  const auto all = pointers(requests, held);
  released([&, limit = pw_timeout(seconds)] {
    return static_cast<peerway::Status>(pw_request_wait_all(all.data(), all.size(), limit));
  });
}

}  // namespace

void bind_requests(nb::module_& module) {
  nb::class_<Request>(module, "Request")
      .def_prop_ro("closed", &Request::closed)
      .def(
          "complete", [](Request& request) { return request->complete(); }, Release())
      .def(
          "wait",
          [](Request& request, Seconds seconds) {
            released([&, limit = timeout(seconds)] { return request->wait(limit); });
          },
          nb::arg("timeout") = nb::none())
      .def("close", &Request::close, Release());
  module.def("wait_any", &wait_any, nb::arg("requests"), nb::arg("timeout") = nb::none());
  module.def("wait_all", &wait_all, nb::arg("requests"), nb::arg("timeout") = nb::none());
}

}  // namespace pwpy
