// Rank 1 is killed in the middle: what waits for it in streams and kernels of rank 0 ends, and says why.
#pragma once

#include <csignal>

#include "refusals.cuh"

namespace check {

inline double seconds_of(const std::function<void()>& body) {
  const auto began = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

inline void die() { std::raise(SIGKILL); }

inline void say_lost(Rank& rank, const std::string& name, Status status, double seconds) {
  const bool reported =
      status == Status::peer_lost && peerway::error_message().find("rank 1") != std::string::npos;
  rank.say(name, reported,
           std::string(peerway::to_string(status)) + " after " + std::to_string(seconds) +
               " s: " + peerway::error_message());
}

/// 1,000 iterations are enqueued; rank 1 dies after some of them.
inline void lost_on_streams(Rank& rank) {
  Exchange small(rank, {1024, 1, 1024}), large(rank, {1 << 20, 1, 1 << 20});
  rank.meet();
  for (auto* it : {&small, &large}) it->plan().set_timeout(60s);
  const double seconds = seconds_of([&] {
    for (unsigned turn = 0; turn < 1000; ++turn) {
      if (rank.rank == 1 && turn == 300) {
        rank.drain();
        die();
      }
      small.make_ready();
      const Status started = small.plan().run(rank.queue());
      large.make_ready();
      const Status also = large.plan().run(rank.queue());
      if (started != Status::ok || also != Status::ok) break;  // cancelled already
    }
    rank.drain();
  });
  say_lost(rank, "a stream of 1,000 exchanges of 1 KiB is released", small.plan().status(), seconds);
  say_lost(rank, "a stream of 1,000 exchanges of 1 MiB is released", large.plan().status(), seconds);
}

inline void lost_in_kernels(Rank& rank) {
  Exchange it(rank, {4096, 1, 4096});
  auto signal = signal_in(rank, true);
  auto far_signal = rank.theirs(signal);
  it.plan().set_timeout(60s);
  rank.meet();
  if (rank.rank == 1) {
    it.by_grid(20, 2);
    rank.drain();
    die();
  }
  const Words others(1);
  double seconds = seconds_of([&] {
    it.by_grid(1000, 2);
    rank.drain();
  });
  say_lost(rank, "an exchange inside a kernel is released", it.plan().status(), seconds);
  seconds = seconds_of([&] {
    wait_for<<<1, 64, 0, rank.stream>>>(signal.handle(rank.device, 60s), 1, Result::cancelled, others.get());
    rank.drain();
  });
  say_lost(rank, "a wait for a signal inside a kernel is released", signal.status(), seconds);
  rank.say("and tells the kernel that it was cancelled", others[0] == 0);
}

}  // namespace check
