// How things fail inside the card: set-up throws, operations return a status. At the C boundary both become a
// status and a line for people.
#pragma once

#include <exception>
#include <string>
#include <utility>

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

}  // namespace pw::torus
