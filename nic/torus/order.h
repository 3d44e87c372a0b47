// Decides which operations may overtake others on the way from one endpoint to one peer. An operation has a
// time at which it would arrive, and a put may be held back beyond it; `due` is when it takes effect at the
// peer. Operations with the same due time take effect in the order in which they were posted.
//
//   a get never comes before an earlier get;
//   a put comes before an earlier put only without PW_NIC_PUTS_IN_ORDER;
//   a get comes before an earlier put only without PW_NIC_GETS_BEHIND_PUTS;
//   a put may come before a get that waits for a held put: there is no guarantee about that.
#pragma once

#include <algorithm>
#include <cstdint>

#include "peerway/nic.h"

namespace pw::torus {

class Order {
 public:
  explicit Order(uint32_t guarantees) : guarantees_(guarantees) {}

  uint64_t put(uint64_t arrival, uint64_t held) {
    latest_arrival_ = std::max(latest_arrival_, arrival);
    uint64_t due = latest_arrival_ + held;
    if ((guarantees_ & PW_NIC_PUTS_IN_ORDER) != 0) due = std::max(due, last_put_);
    last_put_ = std::max(last_put_, due);
    return due;
  }

  uint64_t get(uint64_t arrival) {
    latest_arrival_ = std::max(latest_arrival_, arrival);
    uint64_t due = std::max(latest_arrival_, last_get_);
    if ((guarantees_ & PW_NIC_GETS_BEHIND_PUTS) != 0) due = std::max(due, last_put_);
    last_get_ = due;
    return due;
  }

 private:
  uint32_t guarantees_;
  uint64_t latest_arrival_ = 0;  ///< of all operations so far, not counting the time that puts were held
                                 ///< back; later operations arrive no earlier, as in a pipe
  uint64_t last_put_ = 0, last_get_ = 0;
};

}  // namespace pw::torus
