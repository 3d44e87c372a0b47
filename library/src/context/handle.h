// The contents of the C interface's handles, and the checks of handles that a program passes.
//
// Each handle keeps what it was made from: a context its team, everything else its context. So handles may be
// freed in any order. pw_context_free closes the context; its threads and connections end with the last
// handle.
#pragma once

#include <memory>
#include <vector>

#include "context/context.h"
#include "context/signal.h"
#include "context/sized.h"

struct pw_context {
  explicit pw_context(std::shared_ptr<pw::Team> team);
  ~pw_context() { context->close(); }
  pw_context(const pw_context&) = delete;

  /// Returns the context for a call that makes an object from it. Throws Error(PW_CLOSED).
  [[nodiscard]] const std::shared_ptr<pw::Context>& open() const;

  std::shared_ptr<pw::Context> context;
};

struct pw_region {
  std::shared_ptr<pw::Context> context;
  std::shared_ptr<pw::Region> region;
};

struct pw_remote {
  std::shared_ptr<pw::Context> context;
  std::shared_ptr<pw::Remote> remote;  ///< shared with the plans and FIFOs that use it
  std::shared_ptr<void> in_kernels;    ///< state for kernels that notify it (plan/in_kernel.h)
};

struct pw_signal {
  std::shared_ptr<pw::Context> context;
  std::shared_ptr<pw::Signal> signal;  ///< shared with the plans that use it
  std::shared_ptr<void> in_kernels;    ///< state for kernels that wait for it (plan/in_kernel.h)
};

namespace pw {

/// Objects other than regions that a plan or FIFO uses; it keeps them alive.
using Uses = std::vector<std::shared_ptr<const void>>;

/// A checked copy of a program's notification; null stays null. Throws Error if it is invalid.
class CheckedNotification {
 public:
  explicit CheckedNotification(const pw_notification* notification) {
    if (notification != nullptr) take(*notification);
  }
  [[nodiscard]] const Notification* get() const { return given_ ? &value_ : nullptr; }
  [[nodiscard]] const Notification& value() const { return value_; }

 private:
  void take(const pw_notification& given) {
    std::optional<pw_notification> room;
    const pw_notification& notification = *sized(&given, room, "pw_notification");
    if (notification.signal == nullptr) throw Error(PW_INVALID_ARGUMENT, "a notification without a signal");
    if (notification.signal->remote->key.type != KeyType::signal)
      throw Error(PW_INVALID_ARGUMENT, "a notification of a region; import the key of a signal instead");
    if (notification.by == 0)
      throw Error(PW_INVALID_ARGUMENT, "a notification by 0; a signal grows by at least 1");
    value_ = {notification.signal->remote.get(), notification.by};
    given_ = true;
  }

  Notification value_;
  bool given_ = false;
};

/// A checked block that a program passed to a C function. Throws Error if it is invalid.
class CheckedBlock {
 public:
  explicit CheckedBlock(const pw_block* given) : block_(sized(given, room_, "pw_block")) {}
  CheckedBlock(const CheckedBlock&) = delete;
  const pw_block& operator*() const { return *block_; }

 private:
  std::optional<pw_block> room_;
  const pw_block* block_;
};

inline Remote& region_of(const pw_remote* remote) {
  if (remote->remote->key.type != KeyType::region)
    throw Error(PW_INVALID_ARGUMENT, "data cannot be moved to or from a signal; import the key of a region");
  return *remote->remote;
}

}  // namespace pw
