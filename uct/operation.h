// An operation that the card has accepted, from then until its end was told to whoever started it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/endpoint.h"

namespace pw::uct {

class Domain;
class Peer;

/// A piece of registered memory that data is copied through.
struct Bounce {
  void* data;
  nic::Memory* memory;
};

/// What an interface has to tell about an ended operation. Filled under the domain's lock, emptied without.
struct Ended;

struct Operation : pw_nic_done {
  enum class Kind : uint8_t { put, get, flush };

  Domain* domain = nullptr;
  Peer* peer = nullptr;
  Ended* teller = nullptr;  ///< null: nobody has to be told
  Operation* next = nullptr;
  Kind kind = Kind::put;
  pw_nic_status status = PW_NIC_OK;
  Bounce bounce{};
  uint64_t mark = 0;  ///< of a flush: the puts that it proves
  // For the interface; this layer only keeps them.
  void* completion = nullptr;
  void (*unpack)(void* arg, const void* data, size_t bytes) = nullptr;
  void* unpack_arg = nullptr;
  size_t bytes = 0;
};

struct Ended {
  Operation* first = nullptr;
  Operation* last = nullptr;

  void push(Operation* operation) {
    operation->next = nullptr;
    (last == nullptr ? first : last->next) = operation;
    last = operation;
  }
};

}  // namespace pw::uct
