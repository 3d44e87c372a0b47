// Watches processes of this host: that of the next rank and, on its host, that of rank 0, which runs the
// bootstrap server. So each process that shares its host is watched, and its death reported to all.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "team/losses.h"
#include "team/message.h"

namespace pw {

/// Used only by the thread that serves the team.
class Watches {
 public:
  Watches(int rank, const Losses& losses, std::function<wire::Identity(int)> identity_of)
      : rank_(rank), losses_(losses), identity_of_(std::move(identity_of)) {}

  /// Begins. `ranks_of_host`: the other ranks of this host, in ring order after this one.
  void begin(std::vector<int> ranks_of_host, bool server_is_here);

  /// Watches the next rank of the host; after its loss, the one after it.
  void watch_next();

  void add_descriptors(std::vector<pollfd>& polled) const;
  /// Notes which of the processes that add_descriptors() added have ended, after poll().
  void note_ended(std::span<const pollfd> polled);
  /// When take_ended() must be called again even if no descriptor is readable.
  [[nodiscard]] uint64_t next_report_ns() const;

  /// Returns a rank that needs no watch any more, because its process has ended or it is known to be lost.
  /// Call it until there is none. While there is a server, a rank whose process ended counts as lost only
  /// after a delay.
  std::optional<int> take_ended(bool server_alive);

 private:
  struct Watch {
    int rank = 0;
    Descriptor process;         ///< a pidfd, readable once the process has ended
    uint64_t report_at_ns = 0;  ///< once the process has ended: when to report it unless the server has; 0
                                ///< before
  };
  void watch(int rank);

  const int rank_;
  const Losses& losses_;
  const std::function<wire::Identity(int)> identity_of_;
  std::vector<Watch> watches_;
  std::vector<int> ranks_of_host_;
  int next_ = -1;  ///< the rank that is watched
};

}  // namespace pw
