// The staging service: serves the staging channels that peers announce in this rank's mailboxes. It copies
// between chunks and this rank's regions, on any device. Peers increment this rank's work counter
// (Control::work_count) when they have work, and also write to its wakeup pipe if no thread polls the
// counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "memory/importer.h"
#include "memory/region.h"
#include "progress/source.h"
#include "team/team.h"
#include "transport/staged/channel.h"

namespace pw {

class StagingService final : public Source {
 public:
  StagingService(Team& team, ControlSegment& control, Importer& importer, Registry& registry);
  ~StagingService() override;
  StagingService(const StagingService&) = delete;

  bool poll() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool work_is_announced() const override { return true; }
  [[nodiscard]] bool has_work() const override {
    return busy_.load(std::memory_order_relaxed) || has_new_work();
  }

 private:
  struct Served;  ///< one announced channel and its state

  [[nodiscard]] bool has_new_work() const;
  bool serve_all();           ///< one round over all channels; returns whether something moved
  void attach();              ///< serves channels that were announced in the mailboxes
  bool step(Served& served);  ///< moves one chunk or takes one request; returns whether it did something
  bool take_request(Served& served);
  static void tell(Served& served);
  void notify(Served& served);
  void finish_request(Served& served);

  Team& team_;
  ControlSegment& control_;
  Importer& importer_;
  Registry& registry_;
  std::mutex mutex_;                               ///< protects the members below
  std::map<int, std::unique_ptr<Served>> served_;  ///< indexed by rank
  std::atomic<uint32_t> seen_{0};                  ///< the work counter at the last poll
  uint64_t moved_ns_ = 0;                          ///< when something last moved
  std::atomic<bool> busy_{false};                  ///< whether the last poll left work to do
};

/// Tells the service behind `control` that there is work; `wakeup_pipe` is that of the service's rank.
void announce_work(Control& control, const WakeupPipe& wakeup_pipe);

}  // namespace pw
