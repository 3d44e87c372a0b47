// Memory and `done` structs that a NIC may still use while a test runs.
#pragma once

#include <exception>
#include <memory>
#include <utility>

namespace pw::nic::check {

/// A T that is freed at the end of its scope, unless there was a finding: then operations are under way, and
/// a plugin's threads may use the memory until the process ends.
template <typename T>
class Stays {
 public:
  template <typename... From>
  explicit Stays(From&&... from) : it_(std::make_unique<T>(std::forward<From>(from)...)) {}
  ~Stays() {
    if (std::uncaught_exceptions() > before_) (void)it_.release();
  }
  Stays(const Stays&) = delete;
  T& operator*() { return *it_; }
  T* operator->() { return it_.get(); }

 private:
  const int before_ = std::uncaught_exceptions();
  std::unique_ptr<T> it_;
};

}  // namespace pw::nic::check
