// The NICs of a context: those that the setting `nic` names, why some are not in use, and what each rank has.
// The exchange of addresses is collective, so every rank of a context calls open().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "nic/nic_spec.h"
#include "transport/nic/engine.h"
#include "transport/rank_facts.h"
#include "transport/transport.h"

namespace pw::nic {

/// The state of another rank's NIC, as that rank reports it.
struct RankNic {
  bool running = false;
  std::string text;  ///< why it is not running
};

/// One NIC and its peers.
class Nic {
 public:
  /// `number` is the index among the NICs, for what is attached to regions and remotes.
  Nic(NicSpec spec, size_t number);

  [[nodiscard]] const std::string& name() const { return name_; }    ///< "nic:torus"
  [[nodiscard]] NicEngine* engine() const { return engine_.get(); }  ///< null if it does not run
  [[nodiscard]] const std::string& why_not_loaded() const { return why_not_loaded_; }

  /// Returns why the NIC cannot serve the pair; empty if it can.
  [[nodiscard]] std::string why_not(const Pair& pair, const Remote& remote) const;
  /// Returns what peers need to reach the memory; empty if the NIC does not run or cannot register it.
  Bytes key_of(Region& region) const;
  Bytes key_of(ControlSegment& control);

  /// Returns whether the NIC reaches the words of the signal.
  [[nodiscard]] bool can_store_word(const Remote& signal) const;

  /// Return the region's registration and the remote's imported key, made at the first call. Throw Error.
  RegionMemory& memory_of(Region& region) const;
  RankMemory& memory_of(Remote& remote) const;

 private:
  friend class Nics;

  NicSpec spec_;
  std::string name_;
  size_t number_;
  std::shared_ptr<const Plugin> plugin_;
  std::string why_not_loaded_;
  std::shared_ptr<NicEngine> engine_;
  std::string why_not_ = "this context has not opened it";
  int rank_ = 0;
  std::shared_ptr<const RankFacts> rank_facts_ = std::make_shared<RankFacts>();
  std::shared_ptr<RegionMemory> signals_;
};

/// The paths "nic:NAME" of the NICs that a setting lists.
PathFamily path_family();

class Nics final : public Transport {
 public:
  /// Loads the plugins that the setting names. Throws Error if the setting is invalid.
  explicit Nics(const Surroundings& surroundings);

  std::vector<std::unique_ptr<Path>> paths() override;
  /// Throws Error if a file that the setting names is not a plugin or, with the setting `strict`, if a NIC
  /// cannot run.
  Bytes open(const TransportAssumptions&) override;
  void receive_facts(const std::vector<Bytes>& ranks) override;
  [[nodiscard]] std::vector<uint32_t> coordinates() const override;
  void attach(Key& key, Region& region) override { attach_object(key, region); }
  void attach_signals(Key& key) override { attach_object(key, surroundings_.control); }

 private:
  template <typename Object>
  void attach_object(Key& key, Object& object) const {
    for (const auto& nic : all_)
      if (Bytes bytes = nic->key_of(object); !bytes.empty())
        key.attached.emplace_back(nic->name(), std::move(bytes));
  }

  const Surroundings surroundings_;
  std::vector<std::unique_ptr<Nic>> all_;
};

}  // namespace pw::nic
