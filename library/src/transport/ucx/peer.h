// A connection to one rank, and the operations under way on it.
#pragma once

#include <atomic>
#include <deque>
#include <map>

#include "base/clock.h"
#include "progress/flush_tracker.h"
#include "transport/backlog.h"
#include "transport/ucx/engine.h"

namespace pw::ucx {

/// The limit of operations under way on one connection.
inline constexpr uint64_t kMostUnderWay = 1024;
inline constexpr uint64_t kMostMessages = uint64_t{1} << 16;  ///< the same if operations are messages of at
                                                              ///< most 64 KiB: enough for 4 GiB

/// Whether a status of UCX says that the other end is gone.
inline bool means_lost(ucp_abi::ucs_status_t status) {
  using namespace ucp_abi;
  return status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_NOT_CONNECTED ||
         status == UCS_ERR_UNREACHABLE ||
         (status <= UCS_ERR_FIRST_LINK_FAILURE && status >= UCS_ERR_LAST_ENDPOINT_FAILURE);
}

/// Messages to one rank that it must answer, in the order of their numbers: its puts and words, or its gets.
struct UcxEngine::NumberedMessages {
  std::deque<UcxOperation*> open;
  uint64_t sent = 0;
  std::atomic<uint64_t> done{0};  ///< number of leading messages that are answered
};

struct UcxEngine::UcxPeer {
  UcxPeer(UcxEngine& its_engine, int its_rank) : engine(its_engine), rank(its_rank) {}

  [[nodiscard]] bool failed() const { return failure_seen.load(std::memory_order_acquire); }

  /// Records the failure; returns false if the connection had failed before.
  bool fail(ucp_abi::ucs_status_t status) {
    if (failed()) return false;
    failure = status;
    failure_seen.store(true, std::memory_order_release);
    engine.failures_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  [[nodiscard]] uint64_t most_under_way() const { return by_messages ? kMostMessages : kMostUnderWay; }
  [[nodiscard]] bool has_room() const { return under_way.load(std::memory_order_relaxed) < most_under_way(); }

  [[nodiscard]] bool answered_up_to(uint64_t puts_sent, uint64_t gets_sent) const {
    return puts.done.load(std::memory_order_acquire) >= puts_sent &&
           gets.done.load(std::memory_order_acquire) >= gets_sent;
  }

  /// By force: operations under way fail.
  void close_broken();
  /// Completes operations under way first, if the peer answers.
  void close_orderly();

  UcxEngine& engine;
  const int rank;
  ucp_abi::ucp_ep_h endpoint = nullptr;
  bool connected = false;              ///< set once: a connection that broke is not made again
  std::atomic<uint64_t> under_way{0};  ///< number of operations under way
  std::deque<UcxOperation*> words;     ///< words that wait for what was started before them, in order
  std::atomic<uint64_t> waiting{0};    ///< number of these
  bool unordered = false;              ///< something was started that a later word must wait for
  Backlog backlog;                     ///< operations for which UCX had no room
  FlushTracker flushes;
  struct {                        ///< the flush under way
    bool over = false;            ///< whether UCX has flushed the endpoint
    uint64_t puts = 0, gets = 0;  ///< if operations are messages: numbers of the last that must be answered
  } flush;
  ucp_abi::ucs_status_t flushed = 0;     ///< UCX's status of a flush that failed
  ucp_abi::ucs_status_t unreported = 0;  ///< first failure of a transfer since the last flush
  ucp_abi::ucs_status_t failure = 0;     ///< failure of the connection; set before failure_seen
  std::atomic<bool> failure_seen{false};

  // Used if operations are sent as messages:
  bool by_messages = false;
  NumberedMessages puts, gets;                    ///< to the peer; words are among the puts
  pw_status refused = PW_OK;                      ///< why the peer refused an operation since the last flush
  Order order;                                    ///< order of the messages from the peer
  std::map<uint64_t, MessageHeader> early_words;  ///< by number: words that wait for earlier messages
  std::deque<MessageHeader> pending_gets;         ///< gets of the peer that must be answered
  bool ack_due = false;                           ///< whether an ack must be sent to the peer
  pw_status refusal = PW_OK;                      ///< status to send with the next ack
};

/// An operation that UCX was given and has not completed.
struct UcxEngine::UcxOperation {
  UcxPeer* peer = nullptr;
  Used* local = nullptr;  ///< the memory at both ends; null if there is none
  Used* remote = nullptr;
  uint64_t word = 0;           ///< put_word: the value
  uint64_t address = 0;        ///< put_word: where it is stored
  bool ready = false;          ///< put_word: whether the word may be sent
  std::shared_ptr<void> kept;  ///< kept alive until the end: the target of get_word, or a note
  int open = 1;                ///< number of completions still to come: UCX's, and the peer's answer if any
  // Used if the operation is sent as a message:
  MessageHeader header;
  const std::byte* data = nullptr;  ///< the bytes after the header, which UCX copies
  uint64_t bytes = 0;               ///< number of these bytes
  void* landing = nullptr;          ///< get: where the bytes of the answer go
  bool answered = false;            ///< whether the peer has answered
};

}  // namespace pw::ucx
