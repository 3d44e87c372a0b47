// An accepted operation of the NIC, until its end was reported to the caller that started it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nic/endpoint.h"

namespace pw::uct {

class Domain;
class Peer;

/// A piece of registered memory through which data is copied.
struct Bounce {
  void* data;
  nic::Memory* memory;
};

class EndedOperations;
class RegisteredMemory;

struct Operation : pw_nic_done {
  enum class Kind : uint8_t { put, get, flush };

  Domain* domain = nullptr;
  Peer* peer = nullptr;
  EndedOperations* report_to = nullptr;  ///< the list to which it is added when it has ended; null: none
  Operation* next = nullptr;
  Kind kind = Kind::put;
  pw_nic_status status = PW_NIC_OK;
  Bounce bounce{};
  RegisteredMemory* memory = nullptr;  ///< must stay registered until the operation has ended
  // For the interface; this layer only stores them.
  void* completion = nullptr;
  void (*unpack)(void* arg, const void* data, size_t bytes) = nullptr;
  void* unpack_arg = nullptr;
  size_t bytes = 0;
};

/// Ended operations that an interface must report, in order. Protected by the domain's lock, except for
/// any().
class EndedOperations {
 public:
  [[nodiscard]] bool any() const { return first_.load(std::memory_order_relaxed) != nullptr; }
  void push(Operation* operation) {
    operation->next = nullptr;
    if (last_ == nullptr)
      first_.store(operation, std::memory_order_relaxed);
    else
      last_->next = operation;
    last_ = operation;
  }
  /// Returns all of them, linked by `next`, and empties the list.
  Operation* take() {
    last_ = nullptr;
    return first_.exchange(nullptr, std::memory_order_relaxed);
  }

 private:
  std::atomic<Operation*> first_{nullptr};
  Operation* last_ = nullptr;
};

}  // namespace pw::uct
