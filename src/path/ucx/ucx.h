// UCX as a context sees it: whether it is in use, why not, and what each rank has. The exchange of addresses
// is collective, so every rank of a context calls start().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "path/path.h"
#include "path/ucx/engine.h"

namespace pw::ucx {

/// What another rank said of its UCX.
struct RankUcx {
  bool running = false;
  bool device_memory = false;  ///< its UCX sees the memory of GPUs
  std::string text;            ///< why it is not running; else its version and file
};

/// The answer for a pair where UCX does not run: it is made for other hosts.
Offer without_ucx(const Pair& pair);

class Ucx {
 public:
  /// Collective. `wanted` is this rank's wish; UCX runs as soon as one rank wants it and on every rank that
  /// can. Waits are those of `control`, and end once it is closed. Throws Error when this rank cannot and was
  /// told which library to use, or is strict.
  void start(Team& team, ControlSegment& control, Progress& progress, bool wanted);

  [[nodiscard]] Engine* engine() const { return engine_.get(); }
  [[nodiscard]] const std::shared_ptr<Engine>& shared_engine() const { return engine_; }

  /// Fills in the pair's facts about UCX.
  void facts(Pair& pair, const Remote& remote) const;

  /// What peers need to reach the region by UCX; empty when UCX is not running or cannot register it.
  /// `room`: bytes that may be left in a key.
  Bytes key_of(Region& region, size_t room) const;
  /// The same for all signal words of this rank.
  Bytes key_of(ControlSegment& control);

  /// Whether it reaches the words of the signal.
  [[nodiscard]] bool stores(const Remote& signal) const {
    return engine_ != nullptr && signal.key.attachment("ucx") != nullptr;
  }

  /// Calls `receiver` with the messages of peers (Engine::receive), once UCX runs; null ends that.
  void receive(std::function<void(ByteView)> receiver);

  /// The region's registration and the remote's key, made at the first call. Throw Error.
  Memory& memory_of(Region& region) const;
  RemoteMemory& memory_of(Remote& remote) const;

 private:
  static size_t at(int rank) { return static_cast<size_t>(rank); }
  [[nodiscard]] std::string why_no_device_memory(int rank) const;

  pw_status learn(Remote& signal) const;

  mutable std::mutex learning_;
  int rank_ = 0;
  std::function<void(ByteView)> receiver_;
  std::shared_ptr<Engine> engine_;
  std::string why_not_ = "this context has not started UCX";
  std::vector<RankUcx> ranks_;
  std::shared_ptr<Memory> signals_;
};

}  // namespace pw::ucx
