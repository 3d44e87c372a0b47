// A plan: operations of one rank, fixed once and started many times, from the host, on a stream, or inside a
// kernel. Adding an operation only records it; prepare() decides everything.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "context/context.h"
#include "context/signal.h"
#include "device/program.h"
#include "plan/lanes.h"
#include "plan/posted.h"
#include "plan/proxy.h"
#include "team/agreement.h"

namespace pw {

class Plan {
 public:
  Plan(Context& context, Device& device);
  ~Plan();
  Plan(const Plan&) = delete;

  [[nodiscard]] Device& device() const { return device_; }

  // The operations that a plan holds. All throw Error, also once it is prepared.
  void put(Remote& to, const pw_block& to_block, std::shared_ptr<Region> from, const pw_block& from_block,
           const Notification* notification);
  void get(Remote& from, const pw_block& from_block, std::shared_ptr<Region> to, const pw_block& to_block);
  void notify(const Notification& notification);
  void after(Signal& signal, uint64_t lead, uint64_t by);
  void wait(Signal& signal, uint64_t by);
  void send(int rank, int tag, std::shared_ptr<Region> from, const pw_block& block);
  void receive(int rank, int tag, std::shared_ptr<Region> to, const pw_block& block);

  /// Collective unless `alone`. Throws Error, at every rank when one of them cannot (team/agreement.h,
  /// run_exchange()).
  void prepare(bool alone);
  /// The same, collective over these ranks alone.
  void prepare_among(std::span<const int> ranks);
  /// The two steps of prepare(), for callers that have exchanged more with the partners before.
  void prepare_in(Exchange& exchange);
  void keep_exchange(std::unique_ptr<Exchange> exchange);
  void set_timeout(uint64_t timeout_ns);

  // Data paths.
  pw_status start(uint64_t* number = nullptr);  ///< `number`: of this start, from 1
  pw_status finish(uint64_t timeout_ns);
  /// Finishes start `number` if that can be done without waiting, or was done: then `ended` is how.
  bool finished(uint64_t number, pw_status& ended);
  /// The source that brings the end nearer while somebody waits for it.
  [[nodiscard]] Source* source() const { return proxy_.get(); }
  pw_status enqueue(void* stream, PlanPart part);
  [[nodiscard]] pw_status status() const;
  pw_status handle(pw_plan_handle& handle);
  pw_status lane(bool sends, int rank, int tag, pw_lane_handle& handle);

  /// A line for each put and get, then for each send, then for each receive: what it moves, by which method.
  [[nodiscard]] const std::string& describe() const { return description_; }

 private:
  struct Move {  ///< a put or get
    Transfer transfer;
    std::shared_ptr<Region> keep;
    std::optional<Notification> notification;
  };
  struct Owned {  ///< a signal that only this plan notifies while it is
    Notification notification;
    bool by_device;  ///< else by the proxy, which counts the notifications itself
  };
  struct Watch {  ///< an after or a wait
    Signal* signal;
    uint64_t by;
    uint64_t lead;
  };
  struct Lane {  ///< a send or receive of this rank
    LaneOffer offer;
    std::shared_ptr<Region> region;
    pw_block block;
    Layout
        layout;  ///< between the block and dense bytes: `from` is the block of a send, `to` that of a receive
    // Once its other end is known:
    LaneOffer theirs;
    size_t place = 0;  ///< its index among the other rank's sends and receives with this one
    Remote* mailbox = nullptr;
    Remote* target = nullptr;  ///< send: the region it goes to
    LaneReach reach;
    Signal* signal = nullptr;      ///< posted: a receive's arrivals here, or that its target is ready
    Remote* far_signal = nullptr;  ///< posted: the one of the other end
    LaneKind kind = LaneKind::posted;
    uint32_t pieces = 1;
    uint64_t slot_bytes = 0;
    uint64_t slots_at = 0;    ///< offset of the two slots in those of the receiver's rank
    Remote* slots = nullptr;  ///< send: the receiver's

    [[nodiscard]] uint32_t unit() const { return std::min(offer.unit, theirs.unit); }  ///< for both ends
  };

  void require_unprepared();
  [[nodiscard]] uint64_t sent_bytes() const;  ///< by a start
  void add_dependency(int rank);
  Lane make_lane(int rank, int tag, std::shared_ptr<Region> region, const pw_block& block, bool sends);
  [[nodiscard]] uint8_t device_kind() const;
  [[nodiscard]] bool is_own(const Lane& lane) const { return lane.offer.rank == context_.team().rank(); }
  [[nodiscard]] LaneKind routed(const Lane& lane, uint64_t bytes) const;  ///< of a send
  [[nodiscard]] static uint32_t pieces_of(const Lane& lane, uint64_t of_all);
  std::shared_ptr<Region> cleared(uint64_t bytes);
  void open_mailbox();
  void open_slots();
  [[nodiscard]] std::set<int> partners() const;
  PlanOffer offer_to(int rank);
  void begin_program();
  void end_program();
  PeerMessages exchange_with_partners(Exchange& exchange, const std::function<Bytes(int rank)>& write);
  void join_lanes(Exchange& exchange);
  Remote* import_of(int rank, KeyType type, ByteView key);
  void find_partners(const PeerMessages& offered);
  void choose_methods();
  [[nodiscard]] Bytes report_lanes_to(int rank) const;
  void settle_kinds(const PeerMessages& reported);
  void open_signals();
  [[nodiscard]] Bytes opened_for(int rank) const;
  void meet_opened(const PeerMessages& opened);
  [[nodiscard]] Layout straight_layout(const Lane& lane) const;
  void describe_lane(const Lane& lane, bool sends);
  void add_description(const std::string& line);
  /// How a step moves bytes, for a trace. Steps that are copies by the CPU have each a time of its own, and
  /// the path that copies alike is measured: it is named, too. The steps of a GPU are known by the time of
  /// their whole start alone.
  std::string_view way_of(std::string_view step);
  [[nodiscard]] uint64_t* own_words(const Lane& lane) const;
  [[nodiscard]] uint64_t* their_words(const Lane& lane) const;
  void add_send(const Lane& lane);
  void add_receive(const Lane& lane);
  void post_send(const Lane& lane);
  void post_receive(const Lane& lane);
  void post(const PostedOperation& operation);
  void add_trigger();
  void serve();
  void reserve_signal(const Notification& notification, bool by_device);
  Notification posted(const Notification& notification);
  GrowingWords words_of(const Notification& notification);
  GrowingWords words_of(const Watch& watch);
  GrowingWords wait_of(const Move& move, std::vector<bool>& used);
  void add_move(const Move& move, const GrowingWords& wait, uint64_t of_all);
  void add_moves();
  void add_signals();
  void add_wakes();
  void guard_losses();
  pw_status refuse_unprepared(const char* action) const;
  Wakes ask_for(const std::shared_ptr<Notice>& notice);  ///< before finish() sleeps
  pw_status record_part(PlanPart part, std::optional<void*> stream);
  pw_status begin_finish();
  [[nodiscard]] bool in_step_with(int rank) const;

  Context& context_;
  Device& device_;
  std::vector<Move> moves_;
  std::vector<Notification> notifications_;
  std::vector<Watch> afters_, waits_;
  std::vector<Lane> sends_, receives_;
  std::vector<Owned> owned_;
  std::set<int> dependencies_;  ///< on these ranks; with PW_ANY_RANK on all

  uint64_t timeout_ns_;
  std::set<std::string, std::less<>> ways_;  ///< what way_of() made
  Program program_;
  std::shared_ptr<Region> mailbox_;               ///< words of lanes
  std::shared_ptr<Region> slots_;                 ///< of receives
  std::vector<std::shared_ptr<Remote>> remotes_;  ///< what lanes write to
  std::vector<std::unique_ptr<Signal>> signals_;  ///< of posted lanes
  std::vector<PostedOperation> posted_;
  std::shared_ptr<Proxy> proxy_;
  std::shared_ptr<PostedPlan> served_;  ///< by the proxy; null where nothing is posted
  std::unique_ptr<Runner> runner_;
  std::string description_;
  std::shared_ptr<void> on_loss_, on_close_;
  std::unique_ptr<Exchange> exchange_;  ///< in which it was prepared; null if it was prepared alone
  std::mutex mutex_;                    ///< what follows
  bool started_ = false;                ///< from the host or on a stream, and not finished there
  bool finishing_ = false;              ///< the host's finish has begun
  uint64_t number_ = 0;                 ///< of the last start from the host
  bool in_kernels_ = false;             ///< kernels may finish what was started on a stream
  std::optional<void*> stream_{};       ///< of the start; none: from the host
};

}  // namespace pw
