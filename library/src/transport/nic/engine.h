// One NIC for one context: its endpoint, and a stream to each rank. All calls of the NIC are made under one
// lock.
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

/// Memory of this rank that the NIC knows. Attached to its region.
struct RegionMemory {
  RegionMemory(std::shared_ptr<NicEngine> of, const pw_nic_span& span);  ///< Throws Error
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  std::shared_ptr<NicEngine> engine;
  std::unique_ptr<Memory> memory;
};

/// A key of a rank, made usable. Attached to its remote.
struct RankMemory {
  RankMemory(std::shared_ptr<NicEngine> of, int rank, const pw_nic_key& key,
             uint64_t base);  ///< Throws Error
  ~RankMemory();
  RankMemory(const RankMemory&) = delete;
  [[nodiscard]] uint64_t offset_of(uint64_t address) const { return address - base; }
  std::shared_ptr<NicEngine> engine;
  std::unique_ptr<RemoteMemory> memory;
  const uint64_t base;  ///< the address in the rank where the memory begins
};

class NicEngine final : public Source, public std::enable_shared_from_this<NicEngine> {
 public:
  /// `spec` with the name. Waits end with PW_CLOSED once `closed` is set. Throws Error.
  NicEngine(std::shared_ptr<const Plugin> plugin, const NicSpec& spec, Team& team,
            const std::atomic<uint32_t>& closed, Progress& progress);
  ~NicEngine() override;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const pw_nic_info& info() const { return endpoint_.info(); }
  [[nodiscard]] const nic::EndpointFacts& facts() const { return endpoint_.facts(); }
  /// Before the first operation; of a rank without one there are no facts.
  void set_peers(std::function<std::optional<nic::EndpointFacts>(int rank)> facts_of);

  /// Whether there is a way to the NIC of the rank, which has one; looked for at the first call.
  bool reaches(int rank);
  std::string why_unreachable(int rank);  ///< empty where there is one

  // The operations below are started in order, as far as the NIC has room; the rest waits for progress.

  /// Moves bytes to or from `offset` of the rank's memory; with a word, stores that after a put.
  pw_status move(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data, RegionMemory& local,
                 uint64_t bytes, const std::optional<WordStore>& word = {});
  /// The same for the blocks of a layout; `offset` and `data` are those of the first.
  pw_status move_blocks(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data,
                        RegionMemory& local, const Layout& layout);
  pw_status put_word(int rank, const WordStore& word);
  /// Gets one word, which is there once a mark is reached. One at a time. Throws Error.
  std::shared_ptr<const uint64_t> get_word(int rank, RankMemory& remote, uint64_t offset);

  /// As those of a Path.
  Mark mark(int rank);
  bool reached(int rank, Mark mark);
  pw_status outcome(int rank, Mark mark);

  bool turn() override;
  Armed arm(bool sleepers) override;

 private:
  friend struct RegionMemory;
  friend struct RankMemory;
  struct NicPeer;
  enum class Reach : uint8_t { unknown, open, none };
  using Lock = std::unique_lock<std::mutex>;

  NicPeer& peer(int rank);                                        ///< with the lock; throws Error
  pw_status failure(Lock& lock, int rank, pw_nic_status status);  ///< gives the lock up
  static bool is_due(NicPeer& peer);  ///< whether its failure, if it has one, is reported now
  void prove(NicPeer& peer);          ///< what is wanted, as far as the NIC has room
  void prove_all();
  template <typename GoOn>
  pw_status in_order(int rank, std::initializer_list<const void*> uses, GoOn&& go_on);
  void resume_all();  ///< what waits for room
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
  std::vector<std::atomic<Reach>> reach_;  ///< by rank

  std::mutex mutex_;                             ///< of what follows
  std::vector<std::unique_ptr<NicPeer>> peers_;  ///< by rank; null before the first use
  std::vector<NicPeer*> unproven_;               ///< those of which something is wanted
  std::vector<NicPeer*> crammed_;                ///< those with a backlog
  Endpoint endpoint_;                            ///< goes before what it may still call
  std::unique_ptr<Memory> scratch_;              ///< where single words are got to
  uint64_t scratch_word_[1] = {};

  std::atomic<uint64_t> idle_{0};  ///< how often in a row the progress thread found nothing to do
};

}  // namespace pw::nic
