// The processes that communicate. Part of peerway.hpp.
#ifndef PEERWAY_TEAM_HPP
#define PEERWAY_TEAM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>
#include <vector>

#include "peerway/status.hpp"

namespace peerway {

class Team {
 public:
  /// The team that `peerway run`, mpirun or srun started this process in; a team of one when none did.
  static Team from_launcher() {
    pw_team* team = nullptr;
    check(pw_team_from_launcher(&team));
    return Team(team);
  }

  /// Collective. `broadcast(data, bytes)` copies the `bytes` bytes that rank 0 has in `data` to every other
  /// rank, by any means (an MPI_Bcast, a file). If it throws, this function throws the same exception.
  template <typename Broadcast>
  static Team create(int rank, int size, Broadcast&& broadcast) {
    struct Call {
      std::remove_reference_t<Broadcast>* body;
      std::exception_ptr failure;
    } call{&broadcast, nullptr};
    const pw_broadcast forward = [](void* user, void* data, size_t bytes) -> int {
      auto* self = static_cast<Call*>(user);
      try {
        (*self->body)(data, bytes);
        return 0;
      } catch (...) {
        self->failure = std::current_exception();
        return 1;
      }
    };
    pw_team* team = nullptr;
    const pw_status status = pw_team_create(rank, size, forward, &call, &team);
    if (call.failure) std::rethrow_exception(call.failure);
    check(status);
    return Team(team);
  }

  [[nodiscard]] int rank() const { return pw_team_rank(get()); }
  [[nodiscard]] int size() const { return pw_team_size(get()); }
  /// Whether the rank is known to have died or left. Throws Error if the team has no such rank.
  [[nodiscard]] bool lost(int rank) const {
    int lost = 0;
    check(pw_team_lost(get(), rank, &lost));
    return lost != 0;
  }

  /// Collective. Returns what every rank passed, in rank order. Ranks may pass different numbers of bytes.
  /// One that ended with a timeout is still under way: the same call, repeated, waits for its end.
  std::vector<Key> all_gather(std::span<const std::byte> mine, Timeout timeout = forever) {
    struct Parts {
      std::vector<Key> taken;
      std::exception_ptr failure;
    } parts;
    const auto take = [](void* user, int, const void* part, size_t bytes) {
      auto* all = static_cast<Parts*>(user);
      try {
        const auto* first = static_cast<const std::byte*>(part);
        if (!all->failure) all->taken.emplace_back(first, first + bytes);
      } catch (...) {
        all->failure = std::current_exception();
      }
    };
    check(pw_team_all_gather_parts(get(), mine.data(), mine.size(), take, &parts,
                                   detail::nanoseconds(timeout)));
    if (parts.failure) std::rethrow_exception(parts.failure);
    return std::move(parts.taken);
  }
  [[gnu::always_inline]] void barrier(Timeout timeout = forever) {
    check(pw_team_barrier(get(), detail::nanoseconds(timeout)));
  }

  [[nodiscard]] pw_team* get() const { return team_.get(); }

 private:
  explicit Team(pw_team* team) : team_(team) {}
  detail::Owner<pw_team, pw_team_free> team_;
};

}  // namespace peerway

#endif
