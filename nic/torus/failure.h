// Failures inside the NIC: set-up throws, operations return a status. At the C boundary both become a status
// and one line of text.
#pragma once

#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include "base/status.h"
#include "peerway/nic.h"

namespace pw::torus {

class Failure : public std::exception {
 public:
  Failure(pw_nic_status status, std::string message) : status_(status), message_(std::move(message)) {}
  [[nodiscard]] pw_nic_status status() const noexcept { return status_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  pw_nic_status status_;
  std::string message_;
};

/// Returns why there is no further descriptor or thread, and what to do about it.
inline std::string lacking(int error) {
  const char* remedy = "";
  if (error == EMFILE)
    remedy =
        "; an endpoint takes 4, and one for each process of its peers: raise the limit of a process (ulimit "
        "-n)";
  if (error == EAGAIN)
    remedy = "; an endpoint takes one: raise the limit of threads (ulimit -u, or the cgroup's pids.max)";
  return errno_text(error) + remedy;
}

}  // namespace pw::torus
