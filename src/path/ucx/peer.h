// A connection to one rank, and what is under way on it.
#pragma once

#include <atomic>
#include <deque>

#include "base/clock.h"
#include "path/ucx/engine.h"

namespace pw::ucx {

/// Operations that may be under way on one connection at a time.
inline constexpr uint64_t kFlights = 1024;

/// Whether a status of UCX says that the other end is gone.
inline bool means_lost(ucp_abi::ucs_status_t status) {
  using namespace ucp_abi;
  return status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_NOT_CONNECTED ||
         status == UCS_ERR_UNREACHABLE ||
         (status <= UCS_ERR_FIRST_LINK_FAILURE && status >= UCS_ERR_LAST_ENDPOINT_FAILURE);
}

struct Engine::Peer {
  Peer(Engine& of, int to) : engine(of), rank(to) {}

  [[nodiscard]] bool failed() const { return failure_seen.load(std::memory_order_acquire); }

  /// True when this is news.
  bool fail(ucp_abi::ucs_status_t status) {
    if (failed()) return false;
    failure = status;
    failure_seen.store(true, std::memory_order_release);
    engine.failures_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  /// By force: what is under way is given back as failed.
  void close_broken();
  /// What is under way is completed first, as far as the peer answers.
  void close_orderly();

  Engine& engine;
  const int rank;
  ucp_abi::ucp_ep_h endpoint = nullptr;
  std::atomic<uint64_t> flights{0};
  std::deque<Flight*> words;             ///< waiting for what was started before them, in order
  std::atomic<uint64_t> waiting{0};      ///< how many those are
  bool unordered = false;                ///< a later word must wait for something
  uint64_t started = 0;                  ///< operations
  uint64_t complete = 0;                 ///< the first so many are, at both ends
  ucp_abi::ucs_status_t unreported = 0;  ///< first failure of a transfer since the last flush
  ucp_abi::ucs_status_t failure = 0;     ///< of the connection; set before failure_seen
  std::atomic<bool> failure_seen{false};
};

/// What UCX hands back when an operation is done.
struct Engine::Flight {
  Peer* peer = nullptr;
  Used* local = nullptr;
  Used* remote = nullptr;
  uint64_t word = 0;           ///< source of put_word
  uint64_t address = 0;        ///< where that goes
  bool ready = false;          ///< nothing is in its way any more
  std::shared_ptr<void> kept;  ///< target of get_word, or a message
};

}  // namespace pw::ucx
