// The service thread: serves the staging channels that peers announce in this rank's mailboxes. It copies
// between chunks and this rank's regions, on any device. It sleeps on the doorbell while there is nothing to
// do.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "path/staged/channel.h"

namespace pw {

class StagingService {
 public:
  explicit StagingService(Surroundings surroundings);
  ~StagingService();

 private:
  struct Served;  ///< one announced channel and how far it is

  void run();
  bool attach();              ///< looks into the mailboxes; true when it found a new channel
  bool step(Served& served);  ///< moves one chunk or takes one request; true when it did something
  bool take_request(Served& served);
  void raise(Served& served);
  void finish_request(Served& served);
  void sleep(uint32_t doorbell_seen);

  Surroundings surroundings_;
  std::map<int, std::unique_ptr<Served>> served_;  ///< by rank
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Wakes the service thread behind `control`.
void ring(Control& control);

}  // namespace pw
