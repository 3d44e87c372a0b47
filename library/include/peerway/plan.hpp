// Streams and plans for C++20: communication that is prepared once and started many times. Part of
// peerway.hpp.
//
//   auto plan = ctx.plan(peerway::host)
//                   .put(remote.span(0, n), region.span(n, n), peerway::notify(right_arrived))
//                   .wait(arrived)
//                   .prepare_alone();
//   check(plan.start());        check(plan.finish(2s));        // from the host,
//   check(plan.start(stream));  check(plan.finish(stream));    // in the order of a stream,
//   kernel<<<grid, block, 0, queue>>>(plan.handle());          // or inside a kernel (peerway/device.cuh)
#ifndef PEERWAY_PLAN_HPP
#define PEERWAY_PLAN_HPP

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "peerway/context.hpp"
#include "peerway/handles.h"

namespace peerway {

// ---- stream

/// A CUDA stream that the program already has, for the calls that take a stream.
inline pw_stream cuda_stream(void* queue, int32_t index = -1) { return {cuda(index), queue}; }

/// An ordered queue of work on a device, made by Context::stream. The destructor waits until all enqueued
/// work is done.
class Stream {
 public:
  Stream(std::shared_ptr<pw_context> context, pw_stream stream)
      : context_(std::move(context)), stream_(stream) {}
  Stream(Stream&& other) noexcept : context_(std::move(other.context_)), stream_(other.stream_) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() { static_cast<void>(free()); }

  /// Enqueues `body`, which runs on a host thread in the stream's order. It must not throw and must not call
  /// CUDA.
  Status call(std::function<void()> body) {
    auto owned = std::make_unique<std::function<void()>>(std::move(body));
    const auto run = [](void* user) {
      const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(user));
      (*mine)();
    };
    const auto status = static_cast<Status>(pw_stream_call(context_.get(), stream_, run, owned.get()));
    if (status == Status::ok) static_cast<void>(owned.release());
    return status;
  }

  /// Returns once all enqueued work is done. Plan::status() reports whether a plan in it was cancelled.
  Status wait(Timeout timeout = forever) {
    return static_cast<Status>(pw_stream_wait(context_.get(), stream_, detail::nanoseconds(timeout)));
  }

  /// Waits like the destructor. Throws Error if work in the stream failed; the stream is closed all the same.
  void close() { check(free()); }
  [[nodiscard]] pw_device device() const { return stream_.device; }
  [[nodiscard]] pw_stream get() const { return stream_; }
  operator pw_stream() const { return stream_; }  ///< for the calls that take any stream

 private:
  pw_status free() {
    const std::shared_ptr<pw_context> context = std::move(context_);
    return context == nullptr ? PW_OK : pw_stream_free(context.get(), stream_);
  }

  std::shared_ptr<pw_context> context_;
  pw_stream stream_;
};

// ---- plan

/// A prepared communication. A start issues all its operations as one batch; a finish waits for the plan's
/// waits and receives. The n-th finish belongs to the n-th start. Between the two the sources must not change
/// and the targets must not be used.
class Plan {
 public:
  explicit Plan(pw_plan* plan) : plan_(plan) {}

  /// From the host. A start while an earlier one is not finished returns invalid_argument.
  [[gnu::always_inline]] Status start() { return static_cast<Status>(pw_plan_start(get(), nullptr)); }
  [[gnu::always_inline]] Status finish(Timeout timeout = forever) {
    return static_cast<Status>(pw_plan_finish(get(), detail::nanoseconds(timeout)));
  }

  /// Starts from the host and returns a request that stands for the finish: testing it or waiting for it
  /// finishes the plan unless finish() already did. Throws Error if the plan was not started.
  [[gnu::always_inline]] Request start_request() {
    pw_request* request = nullptr;
    check(pw_plan_start(get(), &request));
    return Request(request);
  }

  /// In the order of a stream of the plan's device; the host returns at once. A stream that is being captured
  /// into a CUDA graph captures the call.
  [[gnu::always_inline]] Status start(pw_stream stream) {
    return static_cast<Status>(pw_plan_start_on(get(), stream));
  }
  [[gnu::always_inline]] Status finish(pw_stream stream) {
    return static_cast<Status>(pw_plan_finish_on(get(), stream));
  }

  /// A start and the finish that belongs to it as one piece of work.
  [[gnu::always_inline]] Status run(pw_stream stream) {
    return static_cast<Status>(pw_plan_run_on(get(), stream));
  }
  /// The same, but if `*word` is not `value` when the stream comes to the call, nothing is done. The plan's
  /// device reads `word` by this address, nothing may write it until the run is done, and all ranks must
  /// decide alike.
  [[gnu::always_inline]] Status run_if(pw_stream stream, const int* word, int value) {
    return static_cast<Status>(pw_plan_run_on_if(get(), stream, word, value));
  }

  /// Limits each wait of the plan in streams and kernels.
  void set_timeout(Timeout timeout) { check(pw_plan_set_timeout(get(), detail::nanoseconds(timeout))); }

  /// Tells a plan of a GPU whether kernels run beside it. If they do, launches of a plan that sends 2 MiB or
  /// more take three eighths of the multiprocessors and not all; alone such a plan takes up to 1.4 times as
  /// long. Not while another thread launches the plan.
  void leave_room(bool yes = true) { check(pw_plan_leave_room(get(), yes ? 1 : 0)); }

  /// ok, or why the plan was cancelled: peer_lost, timeout, closed or device.
  [[nodiscard]] Status status() const { return static_cast<Status>(pw_plan_status(get())); }

  /// Describes what the plan moves and by which method: of a collective first a line with its name and
  /// method; a line for each put and get, then for each send, then for each receive, with no line break after
  /// the last.
  [[nodiscard]] std::string describe() const {
    const char* text = nullptr;
    check(pw_plan_describe(get(), &text));
    return text;
  }

  /// Returns the struct with which a kernel starts and finishes the plan; pass it by value.
  [[nodiscard]] pw_plan_handle handle() const {
    pw_plan_handle handle{};
    check(pw_plan_get_handle(get(), &handle));
    return handle;
  }

  /// This rank's end of one send or receive, for a kernel that moves the packets itself. Throws Error if this
  /// send or receive goes by neither packets nor lines. Such a plan is used only through its lanes or only by
  /// start and finish.
  [[nodiscard]] pw_lane_handle send_lane(int rank, int tag) const { return lane(PW_SEND, rank, tag); }
  [[nodiscard]] pw_lane_handle receive_lane(int rank, int tag) const { return lane(PW_RECEIVE, rank, tag); }

  /// The lanes of an all-reduce, for a kernel that combines elements itself (peerway/device/all_reduce.cuh).
  /// Throws Error if the plan is no all-reduce that is one-shot by packets or lines. Such a plan is used only
  /// through this handle or only by start and finish.
  [[nodiscard]] pw_all_reduce_handle all_reduce_handle() const {
    pw_all_reduce_handle handle{};
    check(pw_plan_get_all_reduce_handle(get(), &handle));
    return handle;
  }

  void close() { check(pw_plan_free(plan_.release())); }
  [[nodiscard]] pw_plan* get() const { return plan_.get(); }

 private:
  [[nodiscard]] pw_lane_handle lane(pw_direction direction, int rank, int tag) const {
    pw_lane_handle handle{};
    check(pw_plan_get_lane(get(), direction, rank, tag, &handle));
    return handle;
  }

  detail::Owner<pw_plan, pw_plan_free> plan_;
};

/// A plan before it is prepared, made by Context::plan. Operations are added one after the other, the target
/// first as in Context::put. All functions throw Error.
class PlanBuilder {
 public:
  using Local = Context::Local;
  using Far = Context::Far;
  using LocalBlock = Context::LocalBlock;
  using FarBlock = Context::FarBlock;

  explicit PlanBuilder(pw_plan_builder* builder) : builder_(builder) {}

  PlanBuilder& put(Far to, Local from) { return put(detail::whole(to), detail::whole(from)); }
  PlanBuilder& put(Far to, Local from, pw_notification notification) {
    return put(detail::whole(to), detail::whole(from), notification);
  }
  PlanBuilder& put(const FarBlock& to, const LocalBlock& from) {
    return added(pw_plan_builder_put(get(), to.of, &to.block, from.of, &from.block, nullptr));
  }
  PlanBuilder& put(const FarBlock& to, const LocalBlock& from, pw_notification notification) {
    return added(pw_plan_builder_put(get(), to.of, &to.block, from.of, &from.block, &notification));
  }
  PlanBuilder& get(Local to, Far from) { return get(detail::whole(to), detail::whole(from)); }
  PlanBuilder& get(const LocalBlock& to, const FarBlock& from) {
    return added(pw_plan_builder_get(get(), to.of, &to.block, from.of, &from.block));
  }

  /// Notifies the signal at every start, before the plan waits for anything and before its puts: it tells the
  /// signal's owner that this rank is ready, not that data has arrived.
  PlanBuilder& notify(pw_notification notification) {
    return added(pw_plan_builder_notify(get(), &notification));
  }

  /// Start n moves nothing until the signal has grown by (n - lead) * by: the receiver notifies it when it
  /// starts (lead 0), or when it has used the previous data (lead 1).
  PlanBuilder& after(const Signal& signal, uint64_t lead = 0, uint64_t by = 1) {
    return added(pw_plan_builder_after(get(), signal.get(), lead, by));
  }

  /// Finish n waits until the signal has grown by n * by.
  PlanBuilder& wait(const Signal& signal, uint64_t by = 1) {
    return added(pw_plan_builder_wait(get(), signal.get(), by));
  }

  /// The send is matched with the receive of the same tag in that rank's plan. A rank may send to itself.
  PlanBuilder& send(int rank, int tag, Local from) { return send(rank, tag, detail::whole(from)); }
  PlanBuilder& send(int rank, int tag, const LocalBlock& from) {
    return added(pw_plan_builder_send(get(), rank, tag, from.of, &from.block));
  }
  PlanBuilder& receive(int rank, int tag, Local to) { return receive(rank, tag, detail::whole(to)); }
  PlanBuilder& receive(int rank, int tag, const LocalBlock& to) {
    return added(pw_plan_builder_receive(get(), rank, tag, to.of, &to.block));
  }

  /// Fixes paths, mappings and tables. Collective over the team; ranks that send and receive nothing must
  /// call it, too.
  [[nodiscard, gnu::always_inline]] Plan prepare() { return prepared(PW_PREPARE_COLLECTIVE); }
  /// Like prepare(), but collective over `ranks` alone, which must contain this rank.
  [[nodiscard, gnu::always_inline]] Plan prepare_among(std::span<const int> ranks) {
    pw_plan* plan = nullptr;
    check(pw_plan_builder_prepare_among(get(), ranks.data(), ranks.size(), &plan));
    return Plan(plan);
  }
  /// Like prepare(), but no other rank takes part. Allowed only if no rank's plan has a send or receive.
  [[nodiscard, gnu::always_inline]] Plan prepare_alone() { return prepared(PW_PREPARE_ALONE); }

  void close() { check(pw_plan_builder_free(builder_.release())); }
  [[nodiscard]] pw_plan_builder* get() const { return builder_.get(); }

 private:
  PlanBuilder& added(pw_status status) {
    check(status);
    return *this;
  }
  [[gnu::always_inline]] Plan prepared(pw_prepare_mode mode) {
    pw_plan* plan = nullptr;
    check(pw_plan_builder_prepare(get(), mode, &plan));
    return Plan(plan);
  }

  detail::Owner<pw_plan_builder, pw_plan_builder_free> builder_;
};

// ---- fifo

/// Puts that kernels post and the proxy carries out over any path; made by Context::fifo. Close it when no
/// kernel uses it any more.
class Fifo {
 public:
  explicit Fifo(pw_fifo* fifo) : fifo_(fifo) {}

  /// Returns the struct with which kernels post puts; pass it by value (peerway/device/fifo.cuh).
  [[nodiscard]] pw_fifo_handle handle() const {
    pw_fifo_handle handle{};
    check(pw_fifo_get_handle(get(), &handle));
    return handle;
  }

  /// ok, or why the FIFO was cancelled.
  [[nodiscard]] Status status() const { return static_cast<Status>(pw_fifo_status(get())); }

  void close() { check(pw_fifo_free(fifo_.release())); }
  [[nodiscard]] pw_fifo* get() const { return fifo_.get(); }

 private:
  detail::Owner<pw_fifo, pw_fifo_free> fifo_;
};

inline Fifo Context::fifo(const std::vector<std::reference_wrapper<const Remote>>& remotes,
                          const std::vector<std::reference_wrapper<const Region>>& regions, pw_device device,
                          uint32_t entries) {
  std::vector<pw_remote*> to;
  for (const Remote& remote : remotes) to.push_back(remote.get());
  std::vector<pw_region*> from;
  for (const Region& region : regions) from.push_back(region.get());
  pw_fifo* fifo = nullptr;
  check(pw_fifo_create(get(), to.data(), static_cast<uint32_t>(to.size()), from.data(),
                       static_cast<uint32_t>(from.size()), device, entries, &fifo));
  return Fifo(fifo);
}

inline Stream Context::stream(pw_device device) {
  pw_stream stream{};
  check(pw_stream_create(get(), device, &stream));
  return {context_, stream};
}

inline PlanBuilder Context::plan(pw_device device) {
  pw_plan_builder* builder = nullptr;
  check(pw_plan_builder_create(get(), device, &builder));
  return PlanBuilder(builder);
}

}  // namespace peerway

#endif
