// Drives one NIC for one context: an endpoint, and a stream to each rank. All calls of the NIC are made under
// one lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "nic/endpoint.h"
#include "nic/nic_spec.h"
#include "nic/stream.h"
#include "progress/mark.h"
#include "progress/progress.h"
#include "transport/path.h"

namespace pw::nic {

class NicEngine;

/// Memory of this rank, registered with the NIC. Attached to its region.
struct RegionMemory {
  RegionMemory(std::shared_ptr<NicEngine> of, const pw_nic_span& span);  ///< Throws Error
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  std::shared_ptr<NicEngine> engine;
  std::unique_ptr<Memory> memory;
};

/// A key of another rank, imported into the NIC. Attached to its remote.
struct RankMemory {
  RankMemory(std::shared_ptr<NicEngine> of, int rank, const pw_nic_key& key,
             uint64_t base);  ///< Throws Error
  ~RankMemory();
  RankMemory(const RankMemory&) = delete;
  [[nodiscard]] uint64_t offset_of(uint64_t address) const { return address - base; }
  std::shared_ptr<NicEngine> engine;
  std::unique_ptr<RemoteMemory> memory;
  const uint64_t base;  ///< address at which the memory begins in that rank
};

class NicEngine final : public Source, public std::enable_shared_from_this<NicEngine> {
 public:
  /// `spec` includes the name. Waits end with PW_CLOSED once `closed` is set. Throws Error.
  NicEngine(std::shared_ptr<const Plugin> plugin, const NicSpec& spec, Team& team,
            const std::atomic<uint32_t>& closed, Progress& progress);
  ~NicEngine() override;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const pw_nic_info& info() const { return endpoint_.info(); }
  [[nodiscard]] const nic::EndpointFacts& facts() const { return endpoint_.facts(); }
  /// Call it before the first operation. `facts_of` returns nothing for a rank without this NIC.
  void set_peers(std::function<std::optional<nic::EndpointFacts>(int rank)> facts_of);

  /// Returns whether this NIC can reach that of the rank, which must have one; tries to connect at the first
  /// call.
  bool reaches(int rank);
  std::string why_unreachable(int rank);  ///< empty if the rank can be reached

  // Operations are started in order, as far as the NIC has room; progress starts the rest later.

  /// Moves bytes to or from `offset` of the rank's memory; after a put it stores `word`, if given.
  pw_status move(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data, RegionMemory& local,
                 uint64_t bytes, const std::optional<WordStore>& word = {});
  /// The same for the blocks of a layout; `offset` and `data` are those of the first block.
  pw_status move_blocks(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data,
                        RegionMemory& local, const Layout& layout);
  pw_status put_word(int rank, const WordStore& word);
  /// Starts to read one word, which has arrived once a mark is reached. One read at a time. Throws Error.
  std::shared_ptr<const uint64_t> get_word(int rank, RankMemory& remote, uint64_t offset);

  /// Like those of a Path.
  Mark mark(int rank);
  bool reached(int rank, Mark mark);
  pw_status outcome(int rank, Mark mark);

  bool poll() override;
  Armed arm(bool sleepers) override;

 private:
  friend struct RegionMemory;
  friend struct RankMemory;
  struct NicPeer;
  enum class Reachability : uint8_t { unknown, reachable, unreachable };
  using Lock = std::unique_lock<std::mutex>;

  NicPeer& peer(int rank);                                        ///< call with the lock held; throws Error
  pw_status failure(Lock& lock, int rank, pw_nic_status status);  ///< releases the lock
  static bool is_due(NicPeer& peer);  ///< whether a failure of the peer may be reported now
  void advance_flush(NicPeer& peer);  ///< ends the peer's flush if it is back, and starts one if it is due
  void advance_flushes();
  template <typename GoOn>
  pw_status in_order(int rank, std::initializer_list<const void*> uses, GoOn&& go_on);
  void resume_all();  ///< continues the operations that wait for room
  bool puts_strided(int rank);
  static pw_nic_status start_piece(NicPeer& peer, Op op, nic::RemoteMemory& remote, uint64_t offset,
                                   std::byte* data, nic::Memory& local, uint64_t bytes,
                                   const WordStore* word);
  static pw_nic_status start_row(NicPeer& peer, nic::RemoteMemory& remote, uint64_t offset,
                                 const std::byte* data, nic::Memory& local, const Blocks& blocks);
  void drop(const void* memory);

  const std::string name_;
  Team& team_;
  const std::atomic<uint32_t>& closed_;
  Progress& progress_;
  std::function<std::optional<nic::EndpointFacts>(int rank)> facts_of_;
  std::vector<std::atomic<Reachability>> reachability_;  ///< indexed by rank

  std::mutex mutex_;                             ///< protects the members below
  std::vector<std::unique_ptr<NicPeer>> peers_;  ///< indexed by rank; null before the first use
  std::vector<NicPeer*> awaiting_flush_;         ///< peers that have a mark to reach by a flush
  std::vector<NicPeer*> backlogged_;             ///< peers with a backlog
  Endpoint endpoint_;                            ///< destroyed before the objects that it may still call
  std::unique_ptr<Memory> scratch_;              ///< landing place of single words
  uint64_t scratch_word_[1] = {};

  std::atomic<uint64_t> idle_{0};  ///< how many times in a row the progress thread found nothing to do
};

}  // namespace pw::nic
