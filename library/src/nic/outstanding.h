// Operations that a stream itself waits for. They live on the heap: if a stream ends before the NIC has
// called their `done`, the endpoint keeps them.
#pragma once

#include "nic/stream.h"

namespace pw::nic {

/// One such operation.
template <typename Owner>
struct Outstanding : pw_nic_done {
  Owner* owner = nullptr;  ///< null once the owner was destroyed
  bool under_way = false;
};

/// Calls (owner->*Method)(operation, status) when the NIC has completed the operation.
template <typename Owner, typename Kind, auto Method>
void on_done(pw_nic_done* done, pw_nic_status status) {
  auto* operation = static_cast<Kind*>(done);
  operation->under_way = false;
  if (operation->owner != nullptr) (operation->owner->*Method)(*operation, status);
}

}  // namespace pw::nic
