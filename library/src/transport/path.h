// A path is one way in which a transport moves bytes between two regions. The resolver (context/resolver.h)
// asks each path for its offer: whether it serves a pair of memories. A transfer then goes by the cheapest
// that does.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/shape.h"
#include "memory/importer.h"
#include "memory/region.h"
#include "memory/remote.h"
#include "progress/progress.h"
#include "team/team.h"
#include "transport/marks.h"
#include "transport/signal_turn.h"

namespace pw {

/// The operations that are routed. Paths carry puts and gets. A send belongs to a plan, and goes by a method
/// (plan/negotiation/methods.h).
enum class Op : uint8_t { put, get, send };

/// The facts about a pair of memories that are known before any byte moves, independent of the path.
struct Pair {
  DeviceId local;
  DeviceId remote;
  Handle local_handle = Handle::none;
  Handle remote_handle = Handle::none;
  std::string remote_why_none;  ///< why the remote allocation cannot be exported
  bool same_host = true;
  bool same_process = false;
  bool reachable = true;  ///< the queues of the device that would do the work can reach the remote memory
  std::string why_not_reachable;
  bool kernels = false;  ///< that device can run copy kernels
  std::string why_no_kernels;
};

/// A path's answer for a pair: whether it can carry transfers between the two memories, or why not.
struct Offer {
  bool available = false;
  std::string why_not;  ///< what prevents it and what to do about it; empty when available
  bool suited = true;   ///< false if the path is not meant for such memories, so that no action would help

  static Offer yes() { return {true, {}}; }
  static Offer hindered(std::string why) { return {false, std::move(why)}; }
  static Offer unsuited(std::string why) { return {false, std::move(why), false}; }
};

/// One put or get with everything that a path needs: both sides were checked against their regions, and
/// joined into one layout.
struct Transfer {
  Op op = Op::put;
  Remote* remote = nullptr;
  Region* local = nullptr;
  uint64_t remote_offset = 0;  ///< of the first byte, in the remote region
  uint64_t local_offset = 0;
  Layout layout;  ///< put: `to` is the remote side; get: `to` is the local side
};

/// Returns the device whose queue does the work: a GPU if one of the two memories is on a GPU, preferably the
/// local one.
Device& worker(Region& local, Remote& remote);

/// Waits until all work in the queue is done. The device finishes it whether or not a peer lives.
pw_status drain(Queue& queue);

/// Returns a transfer as one copy, given addresses of both first bytes that one queue or the CPU reaches.
inline Copy copy_between(const Transfer& transfer, std::byte* local, std::byte* remote) {
  const bool put = transfer.op == Op::put;
  return {put ? remote : local, put ? local : remote, transfer.layout};
}

/// A put or get of one contiguous range, already checked. Most small operations are of this form, which is
/// cheap to build.
struct RangeTransfer {
  Op op;
  Remote* remote;
  Region* local;
  uint64_t remote_offset;
  uint64_t local_offset;
  uint64_t bytes;
};

/// Does the transfer as one copy by the CPU between addresses of this process; Completes::at_start_by_cpu
/// guarantees that this is possible.
inline void copy_range(const RangeTransfer& range) {
  std::byte* remote = range.remote->host_address() + range.remote_offset;
  std::byte* local = range.local->address() + range.local_offset;
  const bool put = range.op == Op::put;
  if (range.bytes == sizeof(uint64_t))  // with a size known to the compiler, this is one load and one store
    std::memcpy(put ? remote : local, put ? local : remote, sizeof(uint64_t));
  else
    std::memcpy(put ? remote : local, put ? local : remote, range.bytes);
}

/// Everything that paths are built from; all of it outlives them.
struct Surroundings {
  Team& team;
  ControlSegment& control;
  Importer& importer;
  Registry& registry;
  Progress& progress;
  AttachmentNumbers& attachments;
};

class Path : public Marker {
 public:
  enum class Completes : uint8_t {
    later,            ///< its transfers may still be under way when start() returns
    at_start,         ///< its transfers are complete when start() returns
    at_start_by_cpu,  ///< at_start, and copy_range() does the same as start_range(), so the path need not be
                      ///< called
  };
  explicit Path(Completes completes) : completes_(completes) {}
  [[nodiscard]] virtual std::string_view name() const = 0;  ///< "peer/copy"

  /// Returns whether the path serves the pair. This gathers the path's own facts; a path's offer_for() then
  /// decides by the facts alone, so that tests can check it without the hardware.
  [[nodiscard]] virtual Offer offer(const Pair& pair, Region& local, Remote& remote) = 0;
  /// Whether it works through mappings of the peer's memory, which plans and kernels also use.
  [[nodiscard]] virtual bool uses_mappings() const { return false; }
  /// For paths that cut transfers into chunks: sets the bytes of a chunk, which `tune` has measured.
  virtual void set_chunk_bytes(uint64_t) {}

  /// Makes what the first such transfer would make, so that it need not be made while a GPU waits. Throws
  /// Error.
  virtual void prepare(const Transfer&) {}

  /// Starts the transfer. It may still be under way when this returns, until a mark() is reached.
  virtual pw_status start(const Transfer& transfer) = 0;

  /// The same for one contiguous range. Paths that are fast compared with building a Transfer override it.
  virtual pw_status start_range(const RangeTransfer& range);

  /// Whether start_and_store_word() can do both in one; also prepares that. Throws Error.
  virtual bool can_start_and_store_word(const Transfer&, Remote& /*signal*/) { return false; }
  /// Starts the transfer and, after its data is visible, a store of turn.total() to the signal's word.
  virtual pw_status start_and_store_word(const Transfer&, SignalTurn& turn);

  /// Whether store_word() and fetch_word() reach the words of signals on other hosts, including this one.
  [[nodiscard]] virtual bool can_store_word(const Remote& /*signal*/) const { return false; }
  /// If this path stores some signals but not this one: the reason, with the path's name.
  [[nodiscard]] virtual std::string why_cannot_store_word(const Remote& /*signal*/) const { return {}; }
  /// Starts a store of the signal's word, after everything that this path started towards its owner.
  virtual pw_status store_word(Remote& signal, uint64_t value);
  /// Starts to read the signal's word, which has arrived once a mark is reached. One read at a time. Throws
  /// Error.
  virtual std::shared_ptr<const uint64_t> fetch_word(Remote& signal);

  [[nodiscard]] bool completes_at_start() const { return completes_ != Completes::later; }
  [[nodiscard]] bool copied_by_cpu() const { return completes_ == Completes::at_start_by_cpu; }

  /// Its index among the paths of its context.
  [[nodiscard]] uint32_t number() const { return number_; }
  void set_number(uint32_t number) { number_ = number; }

 private:
  const Completes completes_;
  uint32_t number_ = 0;
};

/// Waits until the marks are reached. A lost rank or a closed context ends the wait, as failures of the
/// marks. The deadline ends it early and changes nothing. The caller must take the outcome.
pw_status wait_for(Marks& marks, Progress& progress, uint64_t deadline_ns);

}  // namespace pw
