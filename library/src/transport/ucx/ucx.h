// UCX as a context sees it: whether it is in use, why not, and what each rank has. The exchange of addresses
// is collective, so every rank of a context calls start().
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
  uint32_t memory_kinds = 0;  ///< UcxEngine::memory_kinds
  std::string text;           ///< why it is not running; else its version and file
};

/// How UCX can serve a pair.
struct Facts {
  bool running = false;  ///< at both ends
  bool memory = false;   ///< UCX at both ends sees the memory there
  std::string why_no_memory;
  bool key = false;  ///< the remote region came with a key of UCX
  std::string why_not;
};

/// The answer for a pair where UCX does not run: it is made for other hosts.
Offer without_ucx(const Pair& pair, const Facts& facts);

class Ucx final : public Transport {
 public:
  explicit Ucx(const Surroundings& surroundings);

  std::vector<std::unique_ptr<Path>> paths() override;
  /// UCX runs as soon as one rank wants it, or there are several hosts, and on every rank that can.
  [[nodiscard]] bool wanted(bool named) const override;
  Bytes open(const Together& together) override;
  void meet(const std::vector<Bytes>& ranks) override;
  void attach(Key& key, Region& region) override;
  void attach_signals(Key& key) override;

  [[nodiscard]] UcxEngine* engine() const { return engine_.get(); }
  [[nodiscard]] const std::shared_ptr<UcxEngine>& shared_engine() const { return engine_; }

  [[nodiscard]] Facts facts(const Pair& pair, const Remote& remote) const;

  /// Whether it reaches the words of the signal.
  [[nodiscard]] bool can_store(const Remote& signal) const {
    return engine_ != nullptr && signal.key.attachment("ucx") != nullptr;
  }

  /// Calls `receiver` with the messages of peers (UcxEngine::receive), once UCX runs; null ends that.
  void receive(std::function<void(ByteView)> receiver);

  /// The region's registration and the remote's key, made at the first call. Throw Error.
  UcxMemory& memory_of(Region& region) const;
  UcxRemoteMemory& memory_of(Remote& remote) const;

 private:
  [[nodiscard]] RankUcx rank_of(int rank) const;
  [[nodiscard]] std::string why_no_memory(const Pair& pair, int rank) const;

  /// What peers need to reach the region; empty where UCX does not run or cannot register it. `room`: bytes
  /// that may be left in a key.
  Bytes key_of(Region& region, size_t room) const;

  const Surroundings surroundings_;
  const size_t attachment_;  ///< its number
  std::function<void(ByteView)> receiver_;
  std::shared_ptr<UcxEngine> engine_;
  std::string why_not_ = "this context has not started UCX";
  std::shared_ptr<const RankFacts> rank_facts_ = std::make_shared<RankFacts>();
  std::shared_ptr<UcxMemory> signals_;
};

}  // namespace pw::ucx
