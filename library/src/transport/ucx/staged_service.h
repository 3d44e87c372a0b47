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
  /// `answered` gets the answers to this rank's own questions.
  StagedService(Surroundings surroundings, Ucx& ucx, std::function<void(RingNote)> answered);
  ~StagedService() override;
  StagedService(const StagedService&) = delete;

  bool turn() override;
  Armed arm(bool) override { return has_work() ? Armed{-1, 0} : Armed{}; }

 private:
  struct Served;  ///< a peer that has opened its rings, and how far its requests are

  void receive(ByteView note);  ///< quick: called by UCX
  [[nodiscard]] bool has_work() const override { return work_.load(std::memory_order_acquire); }
  void handle(const Bytes& bytes);
  void open(const RingNote& note);
  bool step(Served& served);  ///< true while there is work
  bool take_request(Served& served);
  void finish_request(Served& served);

  Surroundings surroundings_;
  const Secret secret_;  ///< of notes
  Ucx& ucx_;
  std::function<void(RingNote)> answered_;
  std::mutex serving_;
  std::map<int, std::unique_ptr<Served>> served_;  ///< by rank; with `serving_`
  std::atomic<bool> work_{false};                  ///< notes have come, or a request is under way
  std::mutex mutex_;                               ///< of the notes
  std::deque<Bytes> notes_;
};

}  // namespace pw::ucx
