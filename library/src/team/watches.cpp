#include "team/watches.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"

namespace pw {
namespace {

/// ns: delay before the end of a process is reported. A rank that leaves ends its process soon, and its
/// goodbye, which comes through the server, may arrive later.
constexpr uint64_t kGrace = 200'000'000;

}  // namespace

void Watches::begin(std::vector<int> ranks_of_host, bool server_is_here) {
  ranks_of_host_ = std::move(ranks_of_host);
  if (server_is_here) watch(0);
  watch_next();
}

void Watches::watch(int rank) {
  const wire::Identity peer = identity_of_(rank);
  if (peer.process == ::getpid() ||
      std::ranges::any_of(watches_, [&](const Watch& watch) { return watch.rank == rank; }))
    return;
  Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, peer.process, 0)));
  if (process)
    watches_.push_back({rank, std::move(process)});
  else if (errno == ESRCH)
    watches_.push_back({rank, {}, now_ns() + kGrace});
  else  // no descriptor left, or an old kernel: only broken connections will report a death
    log(LogLevel::debug,
        format("rank {} cannot watch the process of rank {}{}", rank_, rank, errno_text(errno)));
}

void Watches::watch_next() {
  if (next_ >= 0 && !losses_.lost(next_)) return;
  const auto next = std::ranges::find_if(ranks_of_host_, [&](int mate) { return !losses_.lost(mate); });
  next_ = next == ranks_of_host_.end() ? -1 : *next;
  if (next_ >= 0) watch(next_);
}

void Watches::add_descriptors(std::vector<pollfd>& polled) const {
  for (const Watch& watch : watches_)
    polled.push_back({watch.report_at_ns ? -1 : watch.process.get(), POLLIN, 0});
}

void Watches::note_ended(std::span<const pollfd> polled) {
  for (size_t i = 0; i < polled.size(); ++i)
    if (polled[i].revents) watches_[i].report_at_ns = now_ns() + kGrace;
}

uint64_t Watches::next_report_ns() const {
  uint64_t due = kNever;
  for (const Watch& watch : watches_)
    if (watch.report_at_ns) due = std::min(due, watch.report_at_ns);
  return due;
}

// Rank 0's process is watched even after it has left, because its server may still be working.
std::optional<int> Watches::take_ended(bool server_alive) {
  const auto ended_watch = std::ranges::find_if(watches_, [&](const Watch& watch) {
    const bool ended = watch.report_at_ns && (!server_alive || now_ns() >= watch.report_at_ns);
    return ended || (watch.rank != 0 && losses_.lost(watch.rank));
  });
  if (ended_watch == watches_.end()) return std::nullopt;
  const int rank = ended_watch->rank;
  watches_.erase(ended_watch);
  return rank;
}

}  // namespace pw
