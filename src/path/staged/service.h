// The staging service: serves the staging channels that peers announce in this rank's mailboxes. It copies
// between chunks and this rank's regions, on any device. The work is done by whoever is there: a thread of
// this rank that waits for something anyway (StagingHelp), which spares waking another one; else the
// service's own thread, which sleeps on the doorbell while there is nothing to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "memory/importer.h"
#include "memory/region.h"
#include "path/staged/channel.h"
#include "team/team.h"

namespace pw {

class StagingService {
 public:
  StagingService(Team& team, ControlSegment& control, Importer& importer, Registry& registry);
  ~StagingService();

 private:
  friend class StagingHelp;
  struct Served;  ///< one announced channel and how far it is

  void run();  ///< the thread
  void sleep(uint32_t doorbell_seen);
  void watch();
  bool unwatch();  ///< true when nobody watches any more although there is work
  [[nodiscard]] bool has_work() const;
  bool turn();  ///< a round over all channels; true when there may be more to do at once

  void attach();              ///< looks into the mailboxes
  bool step(Served& served);  ///< moves one chunk or takes one request; true when it did something
  bool take_request(Served& served);
  void raise(Served& served);
  void finish_request(Served& served);

  Team& team_;
  ControlSegment& control_;
  Importer& importer_;
  Registry& registry_;
  std::mutex mutex_;                               ///< of what follows
  std::map<int, std::unique_ptr<Served>> served_;  ///< by rank
  std::atomic<uint32_t> seen_{0};                  ///< the doorbell at the last turn
  std::atomic<bool> busy_{false};                  ///< the last turn left something to do
  std::atomic<int> helpers_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// For a loop that waits: does the service's work from one of its looks on until it ends, so that what comes
/// meanwhile finds a thread awake.
class StagingHelp {
 public:
  explicit StagingHelp(StagingService& service)
      : service_(service), sleeps_(service.control_.waiting()->economy()) {}
  ~StagingHelp() {
    if (helping_) leave();
  }
  StagingHelp(const StagingHelp&) = delete;

  /// Called at every look of the loop. What is waited for comes mostly before the first few: they cost
  /// nothing. Who may sleep does not help: the service's thread is woken when there is work.
  void look() {
    constexpr uint32_t kLooks = 32;
    if (!sleeps_ && ++looks_ % kLooks == 0) help();
  }

 private:
  void help();
  void leave();

  StagingService& service_;
  const bool sleeps_;
  uint32_t looks_ = 0;
  bool helping_ = false;
};

/// Tells the service behind `control` that there is work.
void ring(Control& control);

}  // namespace pw
