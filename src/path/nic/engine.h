// One card for one context: its endpoint, a stream to each rank, and a thread for what must go on when nobody
// waits. All calls of the card are made under one lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "nic/card_spec.h"
#include "nic/endpoint.h"
#include "nic/stream.h"
#include "path/path.h"
#include "path/polled.h"

namespace pw::nic {

class Engine;

/// Memory of this rank that the card knows. Attached to its region.
struct RegionMemory {
  RegionMemory(std::shared_ptr<Engine> of, const pw_nic_span& span);  ///< Throws Error
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<Memory> memory;
};

/// A key of a rank, made usable. Attached to its remote.
struct RankMemory {
  RankMemory(std::shared_ptr<Engine> of, int rank, const pw_nic_key& key, uint64_t base);  ///< Throws Error
  ~RankMemory();
  RankMemory(const RankMemory&) = delete;
  [[nodiscard]] uint64_t offset_of(uint64_t address) const { return address - base; }
  std::shared_ptr<Engine> engine;
  std::unique_ptr<RemoteMemory> memory;
  const uint64_t base;  ///< the address in the rank where the memory begins
};

class Engine final : public Polled, public std::enable_shared_from_this<Engine> {
 public:
  /// `spec` with the name. Waits end with PW_CLOSED once `closed` is set, and wait as `waiting` says. Throws
  /// Error.
  Engine(std::shared_ptr<const Plugin> plugin, const CardSpec& spec, Team& team,
         const std::atomic<uint32_t>& closed, const Waiting& waiting);
  ~Engine() override;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const pw_nic_info& info() const { return endpoint_.info(); }
  [[nodiscard]] const nic::Card& card() const { return endpoint_.card(); }
  [[nodiscard]] bool puts_strided(int rank);
  /// By rank, before the first operation; a rank without one is never asked for.
  void set_cards(std::vector<std::optional<nic::Card>> cards);

  /// Whether there is a way to the card of the rank, which has one; looked for at the first call.
  bool reaches(int rank);
  std::string why_no_way(int rank);  ///< empty where there is one

  /// Moves a run of bytes to or from `offset` of the rank's memory; with `word`, stores that after a put.
  /// Returns once all was started.
  pw_status move(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data, RegionMemory& local,
                 uint64_t bytes, const Word* word);
  pw_status put_strided(int rank, RankMemory& remote, uint64_t offset, const std::byte* data,
                        RegionMemory& local, const Blocks& blocks);
  pw_status put_word(int rank, const Word& word);
  /// Gets one word and waits for it.
  pw_status get_word(int rank, RankMemory& remote, uint64_t offset, uint64_t& value);

  /// Completes everything started towards the rank, at both ends.
  pw_status flush(int rank, uint64_t deadline_ns);

  void poll() override;

 private:
  friend struct RegionMemory;
  friend struct RankMemory;
  struct Peer;
  struct Fence;
  enum class Way : uint8_t { unknown, open, none };
  using Lock = std::unique_lock<std::mutex>;

  void run();  ///< the thread
  void rouse() const;
  Peer& peer(int rank);                                           ///< with the lock; throws Error
  pw_status failure(Lock& lock, int rank, pw_nic_status status);  ///< gives the lock up
  template <typename Start>
  pw_status start(int rank, Start&& start);
  template <typename Done>
  pw_status wait_for(int rank, uint64_t deadline_ns, const char* what, Done&& done);

  const std::string name_;
  Team& team_;
  const std::atomic<uint32_t>& closed_;
  const Waiting& waiting_;
  std::vector<std::optional<nic::Card>> cards_;
  std::vector<std::atomic<Way>> ways_;  ///< by rank

  std::mutex mutex_;                          ///< of what follows
  std::vector<std::unique_ptr<Peer>> peers_;  ///< by rank; null before the first use
  Endpoint endpoint_;                         ///< goes before what it may still call
  std::unique_ptr<Memory> scratch_;           ///< where single words are got to
  uint64_t scratch_word_[1] = {};

  std::atomic<int> sleepers_{0};  ///< waits that leave the looking to the thread
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stop_{false};
  Descriptor wake_;  ///< eventfd
  std::thread thread_;
};

}  // namespace pw::nic
