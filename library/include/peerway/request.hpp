// Started operations, to be tested and waited for. Part of peerway.hpp.
#ifndef PEERWAY_REQUEST_HPP
#define PEERWAY_REQUEST_HPP

#include <cstddef>
#include <span>
#include <vector>

#include "peerway/status.hpp"

namespace peerway {

/// Stands for one operation, for all operations towards a rank, or for a plan's finish. Destroying it early
/// does not end the operation.
class Request {
 public:
  explicit Request(pw_request* request) : request_(request) {}

  /// Makes progress and returns whether the operation is complete: done at both ends, or failed. wait() then
  /// returns its status.
  [[nodiscard]] bool complete() {
    int complete = 0;
    static_cast<void>(pw_request_test(get(), &complete));
    return complete != 0;
  }
  /// Returns the operation's status once it is complete. After timeout the operation goes on.
  [[gnu::always_inline]] Status wait(Timeout timeout = forever) {
    return static_cast<Status>(pw_request_wait(get(), detail::nanoseconds(timeout)));
  }

  void close() { check(pw_request_free(request_.release())); }
  [[nodiscard]] pw_request* get() const { return request_.get(); }

 private:
  detail::Owner<pw_request, pw_request_free> request_;
};

namespace detail {
inline std::vector<pw_request*> all_of(std::span<const Request> requests) {
  std::vector<pw_request*> all;
  for (const Request& request : requests) all.push_back(request.get());
  return all;
}
}  // namespace detail

/// Returns once one of `requests` is complete, and sets `index` to its place in the list. The status is that
/// of its operation. After a timeout `index` is the number of requests. All must belong to one context.
inline Status wait_any(std::span<const Request> requests, Timeout timeout, size_t& index) {
  const auto all = detail::all_of(requests);
  return static_cast<Status>(
      pw_request_wait_any(all.data(), all.size(), detail::nanoseconds(timeout), &index));
}

/// Returns once all `requests` are complete: ok, or the status of the first in the list that failed. All must
/// belong to one context.
inline Status wait_all(std::span<const Request> requests, Timeout timeout = forever) {
  const auto all = detail::all_of(requests);
  return static_cast<Status>(pw_request_wait_all(all.data(), all.size(), detail::nanoseconds(timeout)));
}

}  // namespace peerway

#endif
