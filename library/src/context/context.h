// A context ties one team to this process's devices, memory and paths. Several can live in one process.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "context/failures.h"
#include "context/notifications.h"
#include "context/resolver.h"
#include "memory/control.h"
#include "memory/importer.h"
#include "memory/pinned.h"
#include "memory/region.h"
#include "memory/remote.h"
#include "memory/words.h"
#include "progress/progress.h"
#include "team/team.h"
#include "trace/operation.h"
#include "transport/transport.h"

namespace pw {

/// The context itself. peerway::Context of the C++ interface (peerway/context.hpp) owns a handle of it.
class Context {
 public:
  /// Collective over the team.
  explicit Context(Team& team);
  ~Context();

  /// Ends the waits of all threads, here and of peers towards this rank, with PW_CLOSED, and refuses
  /// operations from here on.
  void close();
  [[nodiscard]] bool closed() const noexcept {
    return control_.control().closed.load(std::memory_order_relaxed) != 0;
  }

  /// Calls `callback` once when the context is closed, from the thread that closes it, until the handle is
  /// dropped.
  [[nodiscard]] std::shared_ptr<void> on_close(std::function<void()> callback);

  /// The wait policy of the threads of this context, and where they sleep.
  [[nodiscard]] const std::shared_ptr<Waiting>& waiting() const { return control_.waiting(); }

  [[nodiscard]] Team& team() const { return team_; }
  [[nodiscard]] ControlSegment& control() { return control_; }
  [[nodiscard]] Resolver& resolver() { return *resolver_; }
  [[nodiscard]] Importer& importer() { return importer_; }

  /// The device that `where` names; index -1 is the one bound to this rank (context/binding.h). Throws Error.
  [[nodiscard]] Device& device_named(pw_device where) const;

  std::shared_ptr<Region> allocate(pw_device where, uint64_t bytes);
  /// The same for the memory of a plan or the like: Registry::allocate_part.
  std::shared_ptr<Region> allocate_part(pw_device where, uint64_t bytes);
  std::shared_ptr<Region> register_memory(void* address, uint64_t bytes, Access access = Access::read_write);
  std::vector<std::byte> key_of(Region& region);
  std::shared_ptr<Remote> import(std::span<const std::byte> key);

  /// The secret that seals the keys of this team.
  [[nodiscard]] const KeySeal& seal() const { return seal_; }

  /// The pool of 8-byte words in that device's memory, for signals and for counters of kernels that notify.
  WordPool& words(Device& device);
  /// The pool of host memory that is pinned for that device, for guards.
  PinnedPool& pinned(Device& device);

  /// Adds to the key of a signal what peers on other hosts need to notify it.
  void attach_signals(Key& key);

  /// Sets the chunk size of paths that cut transfers into chunks; applies to operations started after the
  /// call.
  void set_chunk_bytes(uint64_t bytes);

  /// The progress engine that its waiting threads drive.
  [[nodiscard]] Progress& progress() { return progress_; }
  [[nodiscard]] Notifications& notifications() { return notifications_; }

  /// Data paths. Both sides are checked against their regions and joined into one layout.
  pw_status put_blocks(Remote& to, const pw_block& to_block, Region& from, const pw_block& from_block,
                       const Notification* notification, Marks* marks = nullptr) {
    return transfer_blocks(Op::put, to, to_block, from, from_block, notification, marks);
  }
  pw_status get_blocks(Remote& from, const pw_block& from_block, Region& to, const pw_block& to_block,
                       Marks* marks = nullptr) {
    return transfer_blocks(Op::get, from, from_block, to, to_block, nullptr, marks);
  }
  /// Checks and starts a transfer of a contiguous range. A small transfer that is only a copy by the CPU is
  /// done here, inline, while its arguments are still in registers.
  pw_status transfer_range(const RangeTransfer& range) {
    if (trace::recording()) [[unlikely]]
      return transfer_traced(range, nullptr);
    return transfer_untraced(range);
  }
  pw_status transfer_range(const RangeTransfer& range, const Notification& notification) {
    if (trace::recording()) [[unlikely]]
      return transfer_traced(range, &notification);
    return transfer_untraced(range, notification);
  }
  /// Starts a transfer that was checked against its regions and joined. If `marks` is not null, adds to it
  /// the marks with which the transfer is complete.
  pw_status start(const Transfer& transfer, const Notification* notification, Marks* marks = nullptr);
  /// Notifies the signal after all that was started towards its owner before, on any path.
  pw_status notify(const Notification& notification);
  /// Notifies the signal after nothing but earlier notifications of the same signal.
  pw_status notify_at_once(const Notification& notification);
  pw_status flush(int rank, uint64_t timeout_ns);
  /// Adds marks for what was started towards the rank so far, on every path; PW_ANY_RANK: towards all ranks.
  /// add_marks_of() also refuses a rank that the team does not have.
  void add_marks(int rank, Marks& marks);
  pw_status add_marks_of(int rank, Marks& marks);
  /// Fails with PW_PEER_LOST if the rank was lost, since data that had arrived there may be lost with it.
  /// PW_ANY_RANK: if any rank was lost towards which something was started or attempted.
  pw_status check_not_lost(int rank) const;
  [[nodiscard]] Failures& failures() { return failures_; }

  /// Maps the remote's memory for the device and returns whether that succeeded. Returns false for memory of
  /// other ranks if the program allows no path that uses mapped memory.
  bool reaches(Device& device, Remote& remote);

  /// Returns the coordinates of this rank's node in the first network that has a topology; none without one.
  [[nodiscard]] std::vector<uint32_t> coordinates() const;

  /// Chooses the path of a transfer and makes what the path needs for it. Throws Error if there is no path.
  void prepare(const Transfer& transfer);

  /// Returns the one object that a layer above keeps in the context: the proxy of plans. `make` makes it at
  /// the first call; it is destroyed after close() and before everything else.
  std::shared_ptr<void> object_of_upper_layer(const std::function<std::shared_ptr<void>()>& make);

 private:
  void exchange_facts();
  void check_own(const Key& key);
  void prepare_for_transfers(Remote& remote);
  static bool is_inside(const RangeTransfer& range) {
    const bool put = range.op == Op::put;
    const uint64_t remote_bytes = put ? range.remote->writable_bytes() : range.remote->bytes();
    const uint64_t local_bytes = put ? range.local->bytes() : range.local->writable_bytes();
    return range.remote_offset <= remote_bytes && range.bytes <= remote_bytes - range.remote_offset &&
           range.local_offset <= local_bytes && range.bytes <= local_bytes - range.local_offset;
  }
  /// A quick check: whether the remote is current, no rank is lost and the context is open.
  bool is_usable(const Remote& remote) const { return remote.current() && team_.none_lost() && !closed(); }
  pw_status check(const Remote& remote) { return is_usable(remote) ? PW_OK : status_of(remote); }
  pw_status status_of(const Remote& remote);  ///< the whole check; PW_OK if the lost rank is another one
  pw_status check_notification(const Remote& signal);
  pw_status transfer_blocks(Op op, Remote& remote, const pw_block& remote_block, Region& local,
                            const pw_block& local_block, const Notification* notification, Marks* marks);
  pw_status check(const Remote& remote, const Notification* notification) {
    const pw_status status = check(remote);
    return status != PW_OK || notification == nullptr ? status : check_notification(*notification->signal);
  }
  /// Fails with a message that says which side is out of range or may not be written.
  static pw_status refuse(const RangeTransfer& range);
  pw_status transfer_untraced(const RangeTransfer& range) {
    if (!is_inside(range)) return refuse(range);
    if (is_usable(*range.remote)) {
      const Resolved* known =
          resolver_->find(range.op, route::ShapeClass::contiguous, *range.local, *range.remote);
      if (known != nullptr && range.bytes <= known->cpu_copied_bytes) {
        record_start(range.remote->rank(), kAtStart);
        copy_range(range);
        return PW_OK;
      }
    }
    return transfer_in_bounds(range, nullptr);
  }
  pw_status transfer_untraced(const RangeTransfer& range, const Notification& notification) {
    return is_inside(range) ? transfer_in_bounds(range, &notification) : refuse(range);
  }
  // The same operations, with an event for `peerway trace` recorded around each.
  pw_status transfer_traced(const RangeTransfer& range, const Notification* notification);
  pw_status start_traced(const Transfer& transfer, const Notification* notification, Marks* marks);
  pw_status start_untraced(const Transfer& transfer, const Notification* notification, Marks* marks);
  pw_status notify_untraced(const Notification& notification);
  pw_status notify_behind(uint64_t paths, const Notification& notification);
  pw_status flush_untraced(int rank, uint64_t timeout_ns);
  std::string_view path_taken(Op op, route::ShapeClass shape, Region& local, Remote& remote, uint64_t bytes);
  pw_status transfer_in_bounds(const RangeTransfer& range, const Notification* notification);
  /// Records that something was started towards the rank, so that a flush knows which marks to take. `bits`
  /// are those of the paths, kNotified for a notification, or kAtStart for what is complete already.
  void record_start(int rank, uint64_t bits) {
    auto& started = started_towards_[static_cast<size_t>(rank)];
    if ((started.load(std::memory_order_relaxed) & bits) != bits)
      started.fetch_or(bits, std::memory_order_relaxed);
  }
  /// The same for a notification; a notification on another host may go by any path.
  void record_notification(const Remote& signal) {
    record_start(signal.rank(), signal.same_host() ? kNotified : kNotified | later_paths_);
  }
  static uint64_t bit_of(const Path& path) {
    return path.completes_at_start() ? kAtStart : uint64_t{1} << path.number();
  }
  pw_status start_with_notification(Path& path, const Transfer& transfer, const Notification& notification);
  pw_status start_split(const Resolved& resolved, const route::ReadySplit& split, const Transfer& transfer,
                        const Notification* notification);

  struct CloseCallbacks {  ///< callbacks for the close of the context; outlives the context while a handle is
                           ///< held
    std::mutex mutex;
    std::list<std::function<void()>> callbacks;
  };

  Team& team_;
  const KeySeal seal_;
  std::shared_ptr<CloseCallbacks> close_callbacks_ = std::make_shared<CloseCallbacks>();
  ControlSegment control_;
  Progress progress_{team_, control_};
  Registry registry_{control_};
  std::mutex pools_mutex_;
  std::map<Device*, std::unique_ptr<WordPool>> words_;
  std::map<Device*, std::unique_ptr<PinnedPool>> pinned_;
  Importer importer_;
  AttachmentNumbers attachment_numbers_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::unique_ptr<Resolver> resolver_;
  Notifications notifications_{
      team_, progress_, [this](const Remote& signal) -> Path& { return resolver_->far_notifier(signal); }};
  Failures failures_;
  static constexpr uint64_t kAtStart = uint64_t{1} << 63, kNotified = uint64_t{1} << 62;
  static constexpr size_t kMostPaths = 62;
  uint64_t later_paths_ = 0;  ///< the bits of all paths whose transfers do not complete at the start
  std::vector<std::atomic<uint64_t>>
      started_towards_;  ///< for each rank: bits of the paths by which something was started towards it
  std::shared_ptr<void> on_loss_;  ///< wakes sleeping threads when a rank is lost
  std::mutex upper_layer_mutex_;
  std::shared_ptr<void> object_of_upper_layer_;  ///< last, because it uses all of the above
};

}  // namespace pw
