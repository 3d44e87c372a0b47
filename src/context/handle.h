// What the handles of the C interface hold, and the checks of those that functions are given.
#pragma once

#include <memory>

#include "context/context.h"
#include "context/signal.h"

struct pw_context {
  explicit pw_context(pw::Team& team) : context(team) {}
  pw::Context context;
};

struct pw_region {
  std::shared_ptr<pw::Region> region;
  pw::Context* context;
};

struct pw_remote {
  std::unique_ptr<pw::Remote> remote;
  pw::Context* context;
  std::shared_ptr<void> in_kernels;  ///< what kernels that raise it need (plan/in_kernel.h)
};

struct pw_signal {
  pw_signal(pw::Context& in, int sender, pw::Device& device) : signal(in, sender, device), context(&in) {}
  pw::Signal signal;
  pw::Context* context;
  std::shared_ptr<void> in_kernels;  ///< what kernels that wait for it need (plan/in_kernel.h)
};

namespace pw {

/// The raise as the inside knows it; null stays null. Throws Error for one that cannot be.
struct CheckedRaise {
  explicit CheckedRaise(const pw_raise* raise) {
    if (raise == nullptr) return;
    if (raise->signal == nullptr) throw Error(PW_INVALID_ARGUMENT, "peerway: a raise without a signal");
    if (raise->signal->remote->key.type != KeyType::signal)
      throw Error(PW_INVALID_ARGUMENT, "peerway: a raise of a region; import the key of a signal instead");
    if (raise->by == 0)
      throw Error(PW_INVALID_ARGUMENT, "peerway: a raise by 0; a signal only grows, by at least 1");
    value = {raise->signal->remote.get(), raise->by};
    given = true;
  }
  [[nodiscard]] const Raise* get() const { return given ? &value : nullptr; }
  Raise value;
  bool given = false;
};

inline Remote& region_of(const pw_remote* remote) {
  if (remote->remote->key.type != KeyType::region)
    throw Error(PW_INVALID_ARGUMENT,
                "peerway: data cannot be moved to or from a signal; import the key of a region");
  return *remote->remote;
}

}  // namespace pw
