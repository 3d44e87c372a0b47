// The processes of this host that a rank watches: that of rank 0, because the hub is a thread of it, and that
// of the next rank. So each is watched by one rank alone, which tells all of its death.
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

/// Of the one thread that serves the team.
class Watches {
 public:
  Watches(int rank, const Losses& losses, std::function<wire::Identity(int)> identity_of)
      : rank_(rank), losses_(losses), identity_of_(std::move(identity_of)) {}

  /// Begins. `mates`: the other ranks of this host, from the next one on.
  void begin(std::vector<int> mates, bool hub_is_here);

  /// Once begun. The next of the host is another one when that is lost.
  void watch_next();

  void add_to(std::vector<pollfd>& polled) const;
  /// What add_to() added, after poll().
  void hear(std::span<const pollfd> polled);
  /// When ended() may say more though nothing was heard.
  [[nodiscard]] uint64_t due() const;

  /// A rank that needs no watch any more, because its process has ended or it is known to be lost; ask until
  /// there is none. While there is a hub, a process that ended is not believed lost at once.
  std::optional<int> ended(bool hub_alive);

 private:
  struct Watch {
    int rank = 0;
    Descriptor process;      ///< a pidfd, readable once the process has ended
    uint64_t report_at = 0;  ///< once it is: when to believe it, if the hub has said nothing; 0 before
  };
  void watch(int rank);

  const int rank_;
  const Losses& losses_;
  const std::function<wire::Identity(int)> identity_of_;
  std::vector<Watch> watches_;
  std::vector<int> mates_;
  int next_ = -1;  ///< of those the one that is watched
};

}  // namespace pw
