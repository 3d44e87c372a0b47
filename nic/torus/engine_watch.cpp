// How an engine notices that nodes die and processes end.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "torus/engine.h"

namespace pw::torus {
namespace {

constexpr size_t kMostWatched = 256;
constexpr uint64_t kCheckEvery = 100'000'000;

}  // namespace

void Engine::find_routes(TorusPeer& peer) const {
  peer.route_to = grid_.route(around_.node, peer.node);
  peer.route_from = grid_.route(peer.node, around_.node);
  if (!peer.route_to.exists) peer.lost = true;
}

// Kills nodes whose time of death has come. Returns the time of the next death.
uint64_t Engine::apply_deaths(uint64_t now) {
  uint64_t next = UINT64_MAX;
  bool died = false;
  for (const Death& death : around_.file.dead) {
    if (grid_.dead(death.node)) continue;
    const uint64_t time = shared_.begun.load(std::memory_order_relaxed) + death.after_ns;
    if (time > now) {
      next = std::min(next, time);
      continue;
    }
    grid_.kill(death.node);
    died = true;
  }
  if (!died) return next;
  node_dead_ = grid_.dead(around_.node);
  for (const auto& peer : std::vector(peers_)) {
    find_routes(*peer);
    if (node_dead_ || peer->lost) lose(peer);
  }
  return next;
}

void Engine::lose(const std::shared_ptr<TorusPeer>& peer) {
  peer->lost = true;
  exchange_.lose(peer->place.session);
}

// A pidfd reports the end of a process at once, even if nobody has reaped it.
void Engine::watch(const TorusPeer& peer) {
  const int process = peer.place.process;
  if (peer.entry == nullptr || process == getpid() || watched_.count(process) != 0) return;
  // The number of descriptors is limited, because the program needs some, too; without one, the process is
  // checked now and then.
  Descriptor descriptor;
  if (watched_.size() < kMostWatched)
    descriptor = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (descriptor) poll_for(poll_.get(), descriptor.get(), static_cast<uint64_t>(process));
  watched_[process] = std::move(descriptor);
}

void Engine::check_processes(uint64_t now) {
  process_ended_ = false;
  next_check_ = now + kCheckEvery;
  around_.directory.job_memory().hand_out();  // even if the engine is always busy
  for (auto it = watched_.begin(); it != watched_.end();) {
    pollfd ended{it->second.get(), POLLIN, 0};
    const bool dead = it->second ? poll(&ended, 1, 0) > 0 : birth_of(it->first) == 0;
    if (!dead) {
      ++it;
      continue;
    }
    for (const auto& peer : std::vector(peers_))
      if (peer->entry != nullptr && peer->place.process == it->first) lose(peer);
    it = watched_.erase(it);
  }
}

}  // namespace pw::torus
