// The staging service: serves the staging channels that peers announce in this rank's mailboxes. It copies
// between chunks and this rank's regions, on any device. Peers count up this rank's doorbell when they have
// work, and write to its wakeup pipe when no thread of it watches that.
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
#include "transport/transport.h"

namespace pw {

class StagingService final : public Source {
 public:
  StagingService(Team& team, ControlSegment& control, Importer& importer, Registry& registry);
  ~StagingService() override;
  StagingService(const StagingService&) = delete;

  bool turn() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool rings() const override { return true; }
  [[nodiscard]] bool has_work() const override { return busy_.load(std::memory_order_relaxed) || rung(); }

 private:
  struct Served;  ///< one announced channel and how far it is

  [[nodiscard]] bool rung() const;
  bool serve_all();           ///< a round over all channels; true when something moved
  void attach();              ///< looks into the mailboxes
  bool step(Served& served);  ///< moves one chunk or takes one request; true when it did something
  bool take_request(Served& served);
  static void tell(Served& served);
  void notify(Served& served);
  void finish_request(Served& served);

  Team& team_;
  ControlSegment& control_;
  Importer& importer_;
  Registry& registry_;
  std::mutex mutex_;                               ///< of what follows
  std::map<int, std::unique_ptr<Served>> served_;  ///< by rank
  std::atomic<uint32_t> seen_{0};                  ///< the doorbell at the last turn
  uint64_t moved_ns_ = 0;                          ///< when something moved last
  std::atomic<bool> busy_{false};                  ///< the last turn left something to do
};

/// Tells the service behind `control` that there is work; `wakeup_pipe` is that of its rank.
void ring(Control& control, const WakeupPipe& wakeup_pipe);

/// The paths over it, and this rank's service of the channels of peers.
class StagedTransport final : public Transport {
 public:
  explicit StagedTransport(const Surroundings& surroundings);
  std::vector<std::unique_ptr<Path>> paths() override;

 private:
  const Surroundings surroundings_;
  StagingService service_;
};

}  // namespace pw
