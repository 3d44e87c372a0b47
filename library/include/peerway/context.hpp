// Devices, routes and connections of one team, and the operations. Part of peerway.hpp.
#ifndef PEERWAY_CONTEXT_HPP
#define PEERWAY_CONTEXT_HPP

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "peerway/memory.hpp"
#include "peerway/request.hpp"
#include "peerway/team.hpp"

namespace peerway {

class Stream;
class PlanBuilder;
class Plan;
class Fifo;
class Grid;
class Array;
enum class Element : int;
enum class Combine : int;
enum class Order : int;

class Context {
 public:
  using Local = Span<pw_region>;
  using Far = Span<pw_remote>;
  using LocalBlock = Block<pw_region>;
  using FarBlock = Block<pw_remote>;

  /// Collective over `team`. The context keeps the team: this rank leaves it after its last context was
  /// freed.
  explicit Context(Team& team) {
    pw_context* context = nullptr;
    check(pw_context_create(team.get(), &context));
    context_.reset(context, [](pw_context* last) { static_cast<void>(pw_context_free(last)); });
  }
  Context(Context&&) noexcept = default;
  Context& operator=(Context&& other) noexcept {
    end();
    context_ = std::move(other.context_);
    return *this;
  }
  ~Context() { end(); }

  /// Ends communication: waits of other threads in this context and all later operations return
  /// Status::closed.
  void close() { check(pw_context_close(get())); }

  /// Restricts later operations to these paths, separated by commas; "route" lets the route table choose
  /// again.
  void use(const std::string& paths) { check(pw_context_use(get(), paths.c_str())); }

  /// Applies to waits that begin after the call. Until the first call the setting `wait` applies.
  void set_wait_policy(WaitPolicy policy) {
    check(pw_context_set_wait_policy(get(), static_cast<pw_wait_policy>(policy)));
  }
  [[nodiscard]] WaitPolicy wait_policy() const {
    return static_cast<WaitPolicy>(pw_context_wait_policy(get()));
  }

  /// Allocates and registers memory that peers on this host can map.
  Region allocate(pw_device device, uint64_t bytes) {
    pw_region* region = nullptr;
    check(pw_region_allocate(get(), device, bytes, &region));
    return Region(region);
  }
  /// Registers memory that the caller owns. It must stay allocated until the region is closed.
  Region register_memory(void* address, uint64_t bytes) {
    pw_region* region = nullptr;
    check(pw_region_register(get(), address, bytes, &region));
    return Region(region);
  }
  /// The same for memory that may not be written: a source only.
  Region register_memory(const void* address, uint64_t bytes) {
    pw_region* region = nullptr;
    check(pw_region_register_read_only(get(), address, bytes, &region));
    return Region(region);
  }
  Remote import(std::span<const std::byte> key) {
    pw_remote* remote = nullptr;
    check(pw_remote_import(get(), key.data(), key.size(), &remote));
    return Remote(remote);
  }
  /// `sender` is the only rank that will notify the signal, or any_rank. A signal in the memory of a GPU can
  /// be waited for by that GPU's kernels and plans without leaving GPU memory; only kernels and plans of GPUs
  /// can notify it.
  Signal signal(int sender = any_rank, pw_device device = host) {
    pw_signal* signal = nullptr;
    check(pw_signal_create(get(), sender, device, &signal));
    return Signal(signal);
  }

  // The target comes first, as in memcpy. The types keep a region and a remote from being swapped. Spans of
  // different sizes are refused (Status::invalid_argument). These calls are always inlined so
  // that `peerway trace` can attribute them to the caller's line.
  [[gnu::always_inline]] Status put(Far to, Local from) { return put_spans(to, from, nullptr); }
  [[gnu::always_inline]] Status put(Far to, Local from, pw_notification notification) {
    return put_spans(to, from, &notification);
  }
  [[gnu::always_inline]] Status put(const FarBlock& to, const LocalBlock& from) {
    return put_blocks(to, from, nullptr);
  }
  [[gnu::always_inline]] Status put(const FarBlock& to, const LocalBlock& from,
                                    pw_notification notification) {
    return put_blocks(to, from, &notification);
  }
  [[gnu::always_inline]] Status get(Local to, Far from) {
    if (to.bytes != from.bytes) return get(detail::whole(to), detail::whole(from));
    return static_cast<Status>(pw_get(get(), to.of, to.offset, from.of, from.offset, to.bytes));
  }
  [[gnu::always_inline]] Status get(const LocalBlock& to, const FarBlock& from) {
    return static_cast<Status>(pw_get_block(get(), to.of, &to.block, from.of, &from.block));
  }
  [[gnu::always_inline]] Status notify(pw_notification notification) {
    return static_cast<Status>(pw_notify(get(), &notification));
  }

  /// Returns once all operations started towards `rank` are complete at both ends.
  [[gnu::always_inline]] Status flush(int rank = any_rank, Timeout timeout = forever) {
    return static_cast<Status>(pw_flush(get(), rank, detail::nanoseconds(timeout)));
  }

  // Like put() and get(), with a request that stands for the operation and its notification. Throws Error if
  // nothing was started. The request may complete only after earlier operations on the same paths to the same
  // rank.
  Request start_put(Far to, Local from) { return start_put(detail::whole(to), detail::whole(from)); }
  Request start_put(Far to, Local from, pw_notification notification) {
    return start_put(detail::whole(to), detail::whole(from), notification);
  }
  Request start_put(const FarBlock& to, const LocalBlock& from) { return started_put(to, from, nullptr); }
  Request start_put(const FarBlock& to, const LocalBlock& from, pw_notification notification) {
    return started_put(to, from, &notification);
  }
  Request start_get(Local to, Far from) { return start_get(detail::whole(to), detail::whole(from)); }
  Request start_get(const LocalBlock& to, const FarBlock& from) {
    return requested([&](pw_request** request) {
      return pw_start_get(get(), to.of, &to.block, from.of, &from.block, request);
    });
  }
  Request start_notify(pw_notification notification) {
    return requested([&](pw_request** request) { return pw_start_notify(get(), &notification, request); });
  }
  /// A flush that does not wait: the request stands for all operations started towards `rank` so far.
  Request start_flush(int rank = any_rank) {
    return requested([&](pw_request** request) { return pw_start_flush(get(), rank, request); });
  }

  /// Makes a stream of a device (peerway/plan.hpp).
  Stream stream(pw_device device);

  /// Begins a plan that runs on `device`. The local regions of its operations must lie in memory of that
  /// device.
  PlanBuilder plan(pw_device device = host);

  /// Kernels of `device` post puts into the FIFO (peerway/device/fifo.cuh), and the context's proxy carries
  /// them out. They name targets and signals by their index in `remotes`, sources by their index in
  /// `regions`. At most `entries` puts, a power of two, can be under way at once.
  Fifo fifo(const std::vector<std::reference_wrapper<const Remote>>& remotes,
            const std::vector<std::reference_wrapper<const Region>>& regions, pw_device device = cuda(),
            uint32_t entries = 256);

  /// Collective. Makes a prepared plan that refreshes the halos of all these arrays at once
  /// (peerway/halo.hpp), with HaloParts::corners edges and corners, too.
  Plan halo(std::span<const Array> arrays, const Grid& grid, HaloParts parts = HaloParts::faces);
  Plan halo(std::initializer_list<Array> arrays, const Grid& grid, HaloParts parts = HaloParts::faces);

  // Collectives (peerway/collective.hpp): each makes a prepared plan, and all ranks of the group call it.
  // `ranks` is the group, in the same order at all of them; empty: all ranks. `to` and `from` may be the same
  // memory (all_reduce), or the smaller one this rank's part of the larger one; otherwise they must not
  // overlap. Elements are combined in the order of the group (Order::of_group), or, with Order::any, as the
  // fastest method does it.

  /// `to` gets the elements of all ranks combined.
  Plan all_reduce(Element element, Local to, Local from, Combine combine, std::span<const int> ranks = {},
                  Order order = Order{});
  /// `to` gets this rank's part of the elements of all ranks combined. `counts` has the elements of each
  /// part; empty: all parts are as long as `to`.
  Plan reduce_scatter(Element element, Local to, Local from, Combine combine,
                      std::span<const uint64_t> counts = {}, std::span<const int> ranks = {},
                      Order order = Order{});
  /// `to` gets `from` of all ranks, in the order of the group. `counts` has the elements of each rank; empty:
  /// all ranks have as many.
  Plan all_gather(Element element, Local to, Local from, std::span<const uint64_t> counts = {},
                  std::span<const int> ranks = {});
  /// `memory` gets what it has at rank `root`.
  Plan broadcast(Element element, Local memory, int root, std::span<const int> ranks = {});
  /// `to` gets a part from each rank, in the order of the group. `counts` has the elements that this rank
  /// sends to each rank, `receive_counts` those that it gets.
  Plan all_to_all(Element element, Local to, Local from, std::span<const uint64_t> counts,
                  std::span<const uint64_t> receive_counts, std::span<const int> ranks = {});
  /// A finish returns when all ranks have started.
  Plan barrier(pw_device device = host, std::span<const int> ranks = {});

  [[nodiscard]] pw_context* get() const { return context_.get(); }

 private:
  template <typename Start>
  static Request requested(Start&& start) {
    pw_request* request = nullptr;
    check(start(&request));
    return Request(request);
  }
  Request started_put(const FarBlock& to, const LocalBlock& from, const pw_notification* notification) {
    return requested([&](pw_request** request) {
      return pw_start_put(get(), to.of, &to.block, from.of, &from.block, notification, request);
    });
  }
  [[gnu::always_inline]] Status put_spans(Far to, Local from, const pw_notification* notification) {
    if (to.bytes != from.bytes) return put_blocks(detail::whole(to), detail::whole(from), notification);
    return static_cast<Status>(pw_put(get(), to.of, to.offset, from.of, from.offset, to.bytes, notification));
  }
  [[gnu::always_inline]] Status put_blocks(const FarBlock& to, const LocalBlock& from,
                                           const pw_notification* notification) {
    return static_cast<Status>(pw_put_block(get(), to.of, &to.block, from.of, &from.block, notification));
  }

  void end() {
    if (context_ != nullptr) static_cast<void>(pw_context_close(context_.get()));
    context_.reset();
  }

  std::shared_ptr<pw_context> context_;  // shared with its streams, which may outlive this object
};

}  // namespace peerway

#endif
