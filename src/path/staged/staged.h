// staged: through bounce buffers in shared host memory, pipelined. The initiator copies chunk after chunk
// into (or out of) a ring, the target's staging service does the other half. It needs nothing of either
// memory, so it serves every pair on one host, also memory that cannot be exported; and it moves a share of
// large transfers over PCIe while another path moves the rest over NVLink.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "path/staged/channel.h"

namespace pw {

class Staged final : public Path {
 public:
  explicit Staged(Surroundings surroundings);
  ~Staged() override;
  [[nodiscard]] std::string_view name() const override { return "staged"; }
  [[nodiscard]] Offer probe(const Pair& pair) const override;
  void prepare(const Transfer& transfer) override;
  pw_status start(const Transfer& transfer) override { return start(transfer, nullptr); }
  bool joins(const Transfer& transfer, Remote& signal) override;
  pw_status start_and_store(const Transfer& transfer, RaiseTurn& turn) override {
    return start(transfer, &turn);
  }
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override;
  pw_status outcome(int rank, Mark mark) override;
  [[nodiscard]] Wakes wakes(int rank) override;

  /// Bytes of a chunk for the channels used from now on; a multiple of 4096, at most kLargestChunk. Measured
  /// by tune.
  void set_chunk_bytes(uint64_t bytes);
  static constexpr uint64_t kLargestChunk = kRingBytes / 4;

 private:
  struct Channel;
  struct Line {  ///< towards one rank: its channel is made at the first transfer
    std::mutex making;
    std::unique_ptr<Channel> channel;
    std::atomic<Channel*> ready{nullptr};
  };

  Channel& channel_to(int rank);
  std::unique_ptr<Channel> make_channel(int rank);
  void announce(Channel& channel);
  [[nodiscard]] bool closed(const Channel& channel) const;  ///< this context, or the target's
  pw_status fail_closed(const Channel& channel, const char* what) const;
  template <typename Done>
  pw_status wait(const Channel& channel, uint64_t deadline_ns, const char* what, Done&& done) const;
  pw_status cut_ring(Channel& channel, const Transfer& transfer);
  pw_status start(const Transfer& transfer, RaiseTurn* turn);
  pw_status post(Channel& channel, const Transfer& transfer, RaiseTurn* turn);
  pw_status move_chunks(Channel& channel, const Transfer& transfer);

  Surroundings surroundings_;
  std::atomic<uint64_t> chunk_bytes_;
  std::unique_ptr<Line[]> lines_;  ///< one a rank
};

}  // namespace pw
