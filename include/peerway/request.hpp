// What was started, to be tested and waited for. Part of peerway.hpp.
#ifndef PEERWAY_REQUEST_HPP
#define PEERWAY_REQUEST_HPP

#include <cstddef>
#include <span>
#include <vector>

#include "peerway/status.hpp"

namespace peerway {

/// Stands for one operation, or for all towards a rank: to be tested and waited for, alone or with others. An
/// operation does not need its request: destroyed early, it goes on.
class Request {
 public:
  explicit Request(pw_request* request) : request_(request) {}

  /// Moves things on and says whether it is complete: done at both ends, or failed; then wait() says how.
  [[nodiscard]] bool complete() {
    int complete = 0;
    static_cast<void>(pw_request_test(get(), &complete));
    return complete != 0;
  }
  /// How it ended; or timeout, and it goes on.
  Status wait(Timeout timeout = forever) {
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

/// Returns once one of these requests of one context is complete: `index` is its place, the status is how it
/// ended. After a timeout `index` is the number of requests.
inline Status wait_any(std::span<const Request> requests, size_t& index, Timeout timeout = forever) {
  const auto all = detail::all_of(requests);
  return static_cast<Status>(
      pw_request_wait_any(all.data(), all.size(), detail::nanoseconds(timeout), &index));
}

/// Returns once all of them are complete: ok, or how the first in the list that failed has ended.
inline Status wait_all(std::span<const Request> requests, Timeout timeout = forever) {
  const auto all = detail::all_of(requests);
  return static_cast<Status>(pw_request_wait_all(all.data(), all.size(), detail::nanoseconds(timeout)));
}

}  // namespace peerway

#endif
