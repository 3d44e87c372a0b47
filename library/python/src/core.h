// Code that the parts of the binding share: the closable owners behind Python's objects, and the conversion
// of timeouts.
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

/// Throws if a signal handler has raised an exception; Python then receives that exception.
inline void throw_if_interrupted() {
  if (interrupted()) throw peerway::Error(peerway::Status::interrupted, "peerway: interrupted");
}
/// Runs the signal handlers that are due, and then does the same.
inline void run_handlers() {
  run_signal_handlers();
  throw_if_interrupted();
}

/// Releases the GIL if this thread holds it, because what is destroyed here may wait for a thread that needs
/// the GIL.
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

/// A C++ owner that Python may close before it is collected; later use raises Closed. Closing waits for calls
/// that other threads are in (Context.close ends their waits first), so that none uses freed objects.
template <typename Owner>
class Closable {
 public:
  /// `name` identifies the object in errors.
  Closable(Owner&& owner, std::string name)
      : state_(std::make_unique<State>(std::move(owner))), name_(std::move(name)) {}
  Closable(Closable&&) noexcept = default;
  ~Closable() {
    if (state_ == nullptr) return;
    const Unlocked unlocked;
    state_.reset();
  }

  /// Keeps the owner open as long as the pointer exists. Throws Closed with the name of the operation, `by`.
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
  /// Call it without the GIL, because the calls that it waits for may need the GIL.
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
      run_handlers();  // if interrupted, the last of those calls frees the owner
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

/// Converts seconds from Python; None waits for ever.
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

/// Waits without the GIL, and throws afterwards, with the GIL held.
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

/// `kind` is "host" or "cuda"; index -1 is the device bound to this rank.
pw_device parse_device(const std::string& kind, int32_t index);
/// Returns "host" or "cuda:1".
std::string device_name(pw_device device);
/// Returns the repr() of a plain value: "Block(counts=(2, 3), ...)".
std::string shown(const std::string& kind, std::initializer_list<std::pair<const char*, nb::object>> fields);

void bind_core(nb::module_& module);
void bind_team(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_context(nb::module_& module);
void bind_bench(nb::module_& module);
void bind_bench_plans(nb::module_& module);
void bind_config(nb::module_& module);
void bind_exchange(nb::module_& module);
void bind_collective(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_requests(nb::module_& module);
void bind_routes(nb::module_& module);
void bind_nic(nb::module_& module);
void bind_trace(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_jax(nb::module_& module);  ///< only where the build had jaxlib

}  // namespace pwpy
