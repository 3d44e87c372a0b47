// What the parts of the binding share: the closable owners behind Python's objects and the conversion of
// timeouts.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "calling.h"
#include "interrupts.h"
#include "peerway/peerway.hpp"

namespace pwpy {

namespace nb = nanobind;

/// Throws when a signal handler has raised something; Python then gets that.
inline void throw_if_interrupted() {
  if (interrupted()) throw peerway::Error(peerway::Status::interrupted, "peerway: interrupted");
}
/// The same, having run the signal handlers that are due.
inline void run_handlers() {
  run_signal_handlers();
  throw_if_interrupted();
}

/// Lets go of the interpreter's lock where this thread has it: what ends here may wait for a thread that
/// needs it.
class Unlocked {
 public:
  Unlocked() : state_(PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// A C++ owner that Python may close before it is collected; use after that raises Closed. Closing waits for
/// the calls that other threads are in (Context.close ends their waits first), so that none uses what is
/// freed.
template <typename Owner>
class Closable {
 public:
  /// `name` is its name in errors, with what tells it from others.
  Closable(Owner&& owner, std::string name)
      : state_(std::make_unique<State>(std::move(owner))), name_(std::move(name)) {}
  Closable(Closable&&) noexcept = default;
  ~Closable() {
    if (state_ == nullptr) return;
    const Unlocked unlocked;
    state_.reset();
  }

  /// The owner stays open as long as the pointer lives. Throws Closed, which names the operation `by`.
  std::shared_ptr<Owner> hold(std::string_view by = {}) const {
    const std::lock_guard lock(state_->mutex);
    if (state_->owner == nullptr) {
      throw peerway::Error(peerway::Status::closed,
                           std::string("peerway: ").append(by).append(by.empty() ? "this " : ": this ") +
                               name_ + " was closed before; keep it open while it is used.");
    }
    return state_->owner;
  }
  std::shared_ptr<Owner> operator->() const { return hold(); }
  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(state_->mutex);
    return state_->owner == nullptr;
  }
  /// To be called without the interpreter's lock, which the calls to wait for may need.
  void close() {
    std::shared_ptr<Owner> last;
    {
      const std::lock_guard lock(state_->mutex);
      last = std::move(state_->owner);
    }
    for (auto looked = std::chrono::steady_clock::now(); last.use_count() > 1;) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      const auto now = std::chrono::steady_clock::now();
      if (now - looked < std::chrono::milliseconds(20)) continue;
      looked = now;
      run_handlers();  // interrupted, the last of those calls frees it
    }
    last.reset();
    throw_if_interrupted();
  }

 private:
  struct State {
    explicit State(Owner&& outgoing) : owner(std::make_shared<Owner>(std::move(outgoing))) {}
    std::mutex mutex;
    std::shared_ptr<Owner> owner;
  };
  std::unique_ptr<State> state_;
  std::string name_;
};

using Team = Closable<peerway::Team>;
using Context = Closable<peerway::Context>;
using Region = Closable<peerway::Region>;
using Remote = Closable<peerway::Remote>;
using Request = Closable<peerway::Request>;
using Signal = Closable<peerway::Signal>;
using Stream = Closable<peerway::Stream>;
using PlanBuilder = Closable<peerway::PlanBuilder>;
using Plan = Closable<peerway::Plan>;
using Fifo = Closable<peerway::Fifo>;

/// Seconds as Python gives them; None waits for ever.
inline peerway::Timeout timeout(std::optional<double> seconds) {
  if (!seconds || *seconds > 9e9) return peerway::forever;
  if (!(*seconds >= 0)) {
    throw peerway::Error(peerway::Status::invalid_argument,
                         "peerway: a timeout of " + std::to_string(*seconds) +
                             " s; give seconds, 0 or more, or None to wait for ever.");
  }
  return std::chrono::duration_cast<peerway::Timeout>(std::chrono::duration<double>(*seconds));
}

inline uint64_t pw_timeout(std::optional<double> seconds) {
  return peerway::detail::nanoseconds(timeout(seconds));
}

/// Waits with the lock released and throws afterwards, with it held.
template <typename Body>
void released(Body body) {
  peerway::Status status;
  std::string message;
  {
    const Calling calling;
    status = body();
    if (status != peerway::Status::ok) message = peerway::error_message();
  }
  if (status != peerway::Status::ok) throw peerway::Error(status, message);
  throw_if_interrupted();
}

/// "host" or "cuda" and an index, -1 for the one bound to this rank.
pw_device parse_device(const std::string& kind, int32_t index);
/// "host" or "cuda:1".
std::string device_name(pw_device device);
/// What repr() gives of a plain value: "Block(counts=(2, 3), ...)".
std::string shown(const std::string& kind, std::initializer_list<std::pair<const char*, nb::object>> fields);

void bind_core(nb::module_& module);
void bind_bench(nb::module_& module);
void bind_bench_plans(nb::module_& module);
void bind_config(nb::module_& module);
void bind_exchange(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_requests(nb::module_& module);
void bind_routes(nb::module_& module);
void bind_nic(nb::module_& module);
void bind_trace(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_jax(nb::module_& module);  ///< only where the build had jaxlib

}  // namespace pwpy
