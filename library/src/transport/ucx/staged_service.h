// The target's half of ucx/staged: a source of progress that answers the notes of peers and copies between
// rings and this rank's regions.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "transport/ucx/note.h"
#include "transport/ucx/ring.h"
#include "transport/ucx/ucx.h"

namespace pw::ucx {

class StagedService final : public Source {
 public:
  /// Passes answers to this rank's own questions to `answered`.
  StagedService(Surroundings surroundings, Ucx& ucx, std::function<void(RingNote)> answered);
  ~StagedService() override;
  StagedService(const StagedService&) = delete;

  bool poll() override;
  Armed arm(bool) override { return has_work() ? Armed{-1, 0} : Armed{}; }

 private:
  struct Served;  ///< a peer that has opened its rings, and the state of its requests

  void receive(ByteView note);  ///< must be quick, because UCX calls it
  [[nodiscard]] bool has_work() const override { return work_.load(std::memory_order_acquire); }
  void handle(const Bytes& bytes);
  void open(const RingNote& note);
  bool step(Served& served);  ///< returns true while there is work
  bool take_request(Served& served);
  void finish_request(Served& served);

  Surroundings surroundings_;
  const Secret secret_;  ///< authenticates notes
  Ucx& ucx_;
  std::function<void(RingNote)> answered_;
  std::mutex serving_;
  std::map<int, std::unique_ptr<Served>> served_;  ///< indexed by rank; protected by `serving_`
  std::atomic<bool> work_{false};                  ///< notes have come, or a request is under way
  std::mutex mutex_;                               ///< protects the notes
  std::deque<Bytes> notes_;
};

}  // namespace pw::ucx
