// UCX for a context: whether it is in use, why not, and what each rank has. The exchange of addresses is
// collective, so every rank of a context calls open().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/rank_facts.h"
#include "transport/transport.h"
#include "transport/ucx/engine.h"

namespace pw::ucx {

/// The facts that another rank sent about its UCX.
struct RankUcx {
  bool running = false;
  uint32_t memory_kinds = 0;  ///< see UcxEngine::memory_kinds
  std::string text;           ///< why it is not running; if it runs, its version and file
};

/// Facts that decide whether UCX can serve a pair.
struct Facts {
  bool running = false;  ///< UCX runs at both ends
  bool memory = false;   ///< UCX at both ends can access the memory there
  std::string why_no_memory;
  bool key = false;  ///< the key of the remote region includes one of UCX
  std::string why_not;
};

/// Returns the answer for a pair if UCX does not run. It is meant for other hosts.
Offer without_ucx(const Pair& pair, const Facts& facts);

class Ucx final : public Transport {
 public:
  explicit Ucx(const Surroundings& surroundings);

  std::vector<std::unique_ptr<Path>> paths() override;
  /// Whether this rank wants UCX. UCX runs on every rank that can, if one rank wants it or there are several
  /// hosts.
  [[nodiscard]] bool wanted(bool named) const override;
  Bytes open(const TransportAssumptions& assumptions) override;
  void receive_facts(const std::vector<Bytes>& ranks) override;
  void attach(Key& key, Region& region) override;
  void attach_signals(Key& key) override;

  [[nodiscard]] UcxEngine* engine() const { return engine_.get(); }
  [[nodiscard]] const std::shared_ptr<UcxEngine>& shared_engine() const { return engine_; }

  [[nodiscard]] Facts facts(const Pair& pair, const Remote& remote) const;

  /// Whether UCX reaches the words of the signal.
  [[nodiscard]] bool can_store_word(const Remote& signal) const {
    return engine_ != nullptr && signal.key.attachment("ucx") != nullptr;
  }

  /// Calls `receiver` with the messages of peers (UcxEngine::receive), once UCX runs. Null ends that.
  void receive(std::function<void(ByteView)> receiver);

  /// Return the region's registration and the remote's imported key, made at the first call. Throw Error.
  UcxMemory& memory_of(Region& region) const;
  UcxRemoteMemory& memory_of(Remote& remote) const;

 private:
  [[nodiscard]] RankUcx rank_of(int rank) const;
  [[nodiscard]] std::string why_no_memory(const Pair& pair, int rank) const;

  /// Returns what peers need to reach the region; empty if UCX does not run or cannot register it. `room`:
  /// bytes that are left in the key.
  Bytes key_of(Region& region, size_t room) const;

  const Surroundings surroundings_;
  const size_t attachment_;  ///< its attachment number
  std::function<void(ByteView)> receiver_;
  std::shared_ptr<UcxEngine> engine_;
  std::string why_not_ = "this context has not started UCX";
  std::shared_ptr<const RankFacts> rank_facts_ = std::make_shared<RankFacts>();
  std::shared_ptr<UcxMemory> signals_;
};

}  // namespace pw::ucx
