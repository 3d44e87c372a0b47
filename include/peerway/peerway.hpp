// Peerway for C++20: the C interface of peerway.h with owners instead of handles. Header only.
//
//   auto team   = peerway::Team::from_launcher();
//   auto ctx    = peerway::Context(team);
//   auto region = ctx.register_memory(ptr, bytes);
//   auto keys   = team.all_gather(region.key());
//   auto remote = ctx.import(keys[right]);
//   peerway::check(ctx.put(remote.span(0, n), region.span(n, n)));
//
// Control paths (everything that makes an object, and the exchange) throw peerway::Error; data paths (put,
// get, raise, wait, flush) return a [[nodiscard]] peerway::Status. Objects may end in any order: what
// outlives its context answers with Status::closed where it would communicate, and its memory stays. Sizes,
// offsets and strides are in bytes.
#ifndef PEERWAY_PEERWAY_HPP
#define PEERWAY_PEERWAY_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "peerway/handles.h"
#include "peerway/peerway.h"

namespace peerway {

// ---- how things end

enum class [[nodiscard]] Status : int {
  ok = PW_OK,
  timeout = PW_TIMEOUT,
  peer_lost = PW_PEER_LOST,
  invalid_argument = PW_INVALID_ARGUMENT,
  out_of_range = PW_OUT_OF_RANGE,
  bad_key = PW_BAD_KEY,
  stale_key = PW_STALE_KEY,
  foreign_key = PW_FOREIGN_KEY,
  unsupported = PW_UNSUPPORTED,
  unavailable = PW_UNAVAILABLE,
  no_memory = PW_NO_MEMORY,
  denied = PW_DENIED,
  system = PW_SYSTEM,
  device = PW_DEVICE,
  bad_table = PW_BAD_TABLE,
  bad_config = PW_BAD_CONFIG,
  closed = PW_CLOSED,
  internal = PW_INTERNAL,
  interrupted = PW_INTERRUPTED,
};

/// How the host waits.
enum class WaitPolicy : int {
  performance = PW_WAIT_PERFORMANCE,  ///< it looks again and again: the quickest answer, for a whole core
  economy = PW_WAIT_ECONOMY,          ///< it looks for a few microseconds, then sleeps until it is woken
};

inline const char* to_string(Status status) { return pw_status_name(static_cast<pw_status>(status)); }

/// The message of this thread's last failure: what was asked, what was found, what to do.
inline std::string error_message() { return pw_error_message(); }

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  [[nodiscard]] Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// Throws Error, with this thread's message, unless `status` is ok.
inline void check(Status status) {
  if (status != Status::ok) throw Error(status, error_message());
}
inline void check(pw_status status) { check(static_cast<Status>(status)); }

// ---- small words

using Timeout = std::chrono::nanoseconds;
inline constexpr Timeout forever = Timeout::max();  ///< the death of a peer still ends the wait
inline constexpr int any_rank = PW_ANY_RANK;

/// The bytes that let a peer import a region or a signal; move them as you like.
using Key = std::vector<std::byte>;

inline constexpr pw_device host{PW_HOST, 0};
constexpr pw_device cuda(int32_t index = -1) {
  return {PW_CUDA, index};
}  ///< -1: the device bound to this rank

namespace detail {
inline uint64_t nanoseconds(Timeout timeout) {
  if (timeout == forever) return PW_FOREVER;
  return static_cast<uint64_t>(std::max<Timeout::rep>(timeout.count(), 0));
}

template <typename Handle, auto Free>
struct Freer {
  void operator()(Handle* handle) const { static_cast<void>(Free(handle)); }
};
template <typename Handle, auto Free>
using Owner = std::unique_ptr<Handle, Freer<Handle, Free>>;

/// Calls `query(buffer, capacity, &length)`, the form in which the C interface hands out keys.
template <typename Query>
Key key_of(Query query) {
  Key key(PW_KEY_MAX);
  size_t length = 0;
  check(query(key.data(), key.size(), &length));
  key.resize(length);
  return key;
}
}  // namespace detail

// ---- spans and blocks: which bytes of a region or remote an operation touches

/// `bytes` bytes from `offset` on.
template <typename Handle>
struct Span {
  Handle* handle;
  uint64_t offset;
  uint64_t bytes;
};

/// Blocks at regular strides in up to PW_MAX_DIMS dimensions.
template <typename Handle>
struct Block {
  Handle* handle;
  pw_block block;
};

/// Blocks of `block_bytes` from `offset` on; counts[0] and strides[0] (bytes) are the slowest dimension.
/// Throws Error when counts and strides differ in number or are more than PW_MAX_DIMS.
inline pw_block make_block(std::span<const uint64_t> counts, std::span<const int64_t> strides,
                           uint64_t block_bytes, uint64_t offset = 0) {
  if (counts.size() != strides.size() || counts.size() > PW_MAX_DIMS) {
    throw Error(Status::invalid_argument, "peerway: a block with " + std::to_string(counts.size()) +
                                              " counts and " + std::to_string(strides.size()) +
                                              " strides; give the same number of both, at most " +
                                              std::to_string(PW_MAX_DIMS) + ".");
  }
  pw_block block{offset, block_bytes, static_cast<uint32_t>(counts.size()), {}, {}};
  std::copy(counts.begin(), counts.end(), block.count);
  std::copy(strides.begin(), strides.end(), block.stride);
  return block;
}

namespace detail {
/// span() and block() for Region and Remote: both are a handle and a size.
template <typename Self, typename Handle>
class Addressed {
 private:
  Handle* mine() const { return static_cast<const Self*>(this)->handle(); }

 public:
  [[nodiscard]] Span<Handle> span(uint64_t offset, uint64_t bytes) const { return {mine(), offset, bytes}; }
  [[nodiscard]] Span<Handle> all() const { return {mine(), 0, static_cast<const Self*>(this)->bytes()}; }
  [[nodiscard]] Block<Handle> block(std::initializer_list<uint64_t> counts,
                                    std::initializer_list<int64_t> strides, uint64_t block_bytes,
                                    uint64_t offset = 0) const {
    return {mine(), make_block({counts.begin(), counts.size()}, {strides.begin(), strides.size()},
                               block_bytes, offset)};
  }
  [[nodiscard]] Block<Handle> block(const pw_block& block) const { return {mine(), block}; }
};
}  // namespace detail

// ---- team

class Team {
 public:
  /// The team that `peerway run`, mpirun or srun started this process in; a team of one when none did.
  static Team from_launcher() {
    pw_team* team = nullptr;
    check(pw_team_from_launcher(&team));
    return Team(team);
  }

  /// Collective. `broadcast(data, bytes)` gives every rank what rank 0 has in `data`, by any means (an
  /// MPI_Bcast, a file), and throws or returns; an exception it throws is thrown again from here.
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

  [[nodiscard]] int rank() const { return pw_team_rank(handle()); }
  [[nodiscard]] int size() const { return pw_team_size(handle()); }
  [[nodiscard]] bool lost(int rank) const { return pw_team_lost(handle(), rank) != 0; }

  /// Collective. What every rank gave, in rank order; ranks may give different numbers of bytes.
  std::vector<Key> all_gather(std::span<const std::byte> mine, Timeout timeout = forever) {
    const uint64_t length = mine.size();
    std::vector<uint64_t> lengths(static_cast<size_t>(size()));
    check(pw_team_all_gather(handle(), &length, sizeof length, lengths.data(), detail::nanoseconds(timeout)));
    const uint64_t widest = *std::max_element(lengths.begin(), lengths.end());
    Key padded(widest);
    std::copy(mine.begin(), mine.end(), padded.begin());
    Key all(widest * lengths.size());
    check(pw_team_all_gather(handle(), padded.data(), widest, all.data(), detail::nanoseconds(timeout)));
    std::vector<Key> parts;
    for (size_t rank = 0; rank < lengths.size(); ++rank) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * widest);
      parts.emplace_back(first, first + static_cast<std::ptrdiff_t>(lengths[rank]));
    }
    return parts;
  }
  void barrier(Timeout timeout = forever) { check(pw_team_barrier(handle(), detail::nanoseconds(timeout))); }

  [[nodiscard]] pw_team* handle() const { return team_.get(); }

 private:
  explicit Team(pw_team* team) : team_(team) {}
  detail::Owner<pw_team, pw_team_free> team_;
};

// ---- region, remote, signal

/// A registered span of this rank's memory. Closing it makes its key stale.
class Region : public detail::Addressed<Region, pw_region> {
 public:
  explicit Region(pw_region* region) : region_(region) {}
  [[nodiscard]] void* address() const { return pw_region_address(handle()); }
  [[nodiscard]] uint64_t bytes() const { return pw_region_bytes(handle()); }
  [[nodiscard]] pw_device device() const { return pw_region_device(handle()); }
  [[nodiscard]] Key key() const {
    return detail::key_of(
        [&](void* to, size_t room, size_t* length) { return pw_region_key(handle(), to, room, length); });
  }
  void close() { check(pw_region_close(region_.release())); }
  [[nodiscard]] pw_region* handle() const { return region_.get(); }

 private:
  detail::Owner<pw_region, pw_region_close> region_;
};

/// Another rank's region or signal.
class Remote : public detail::Addressed<Remote, pw_remote> {
 public:
  explicit Remote(pw_remote* remote) : remote_(remote) {}
  [[nodiscard]] int rank() const { return pw_remote_rank(handle()); }
  [[nodiscard]] uint64_t bytes() const { return pw_remote_bytes(handle()); }
  /// What kernels of a GPU put by (peerway/device.cuh).
  [[nodiscard]] pw_remote_handle handle_on(pw_device device) const {
    pw_remote_handle made{};
    check(pw_remote_get_handle(handle(), device, &made));
    return made;
  }
  /// What kernels of a GPU raise this signal by, they alone until release_raises().
  [[nodiscard]] pw_raise_handle raises_on(pw_device device) {
    pw_raise_handle made{};
    check(pw_raise_get_handle(handle(), device, &made));
    return made;
  }
  /// Once no kernel runs that has the handle.
  void release_raises() { check(pw_raise_release_handle(handle())); }

  void close() { remote_.reset(); }
  [[nodiscard]] pw_remote* handle() const { return remote_.get(); }

 private:
  detail::Owner<pw_remote, pw_remote_close> remote_;
};

/// A 64-bit counter in this rank's memory that peers raise; it only grows.
class Signal {
 public:
  explicit Signal(pw_signal* signal) : signal_(signal) {}
  [[nodiscard]] uint64_t value() const { return pw_signal_value(handle()); }
  [[nodiscard]] Key key() const {
    return detail::key_of(
        [&](void* to, size_t room, size_t* length) { return pw_signal_key(handle(), to, room, length); });
  }
  /// Returns once the counter is at least `value`; else timeout, peer_lost or closed.
  Status wait(uint64_t value, Timeout timeout = forever) {
    return static_cast<Status>(pw_signal_wait(handle(), value, detail::nanoseconds(timeout)));
  }
  /// What kernels of a GPU wait by (peerway/device.cuh); `timeout` bounds each wait.
  [[nodiscard]] pw_signal_handle handle_on(pw_device device, Timeout timeout = forever) {
    pw_signal_handle made{};
    check(pw_signal_get_handle(handle(), device, detail::nanoseconds(timeout), &made));
    return made;
  }
  /// ok, or what ended a kernel's wait early: peer_lost, timeout or closed.
  [[nodiscard]] Status status() const { return static_cast<Status>(pw_signal_status(handle())); }

  void close() { check(pw_signal_close(signal_.release())); }
  [[nodiscard]] pw_signal* handle() const { return signal_.get(); }

 private:
  detail::Owner<pw_signal, pw_signal_close> signal_;
};

/// Raise a remote signal after the data of the same operation is visible at the target.
inline pw_raise raise(const Remote& signal, uint64_t by = 1) { return {signal.handle(), by}; }

// ---- context

class Stream;
class PlanBuilder;
class Plan;
class Fifo;
class Grid;
class Array;

class Context {
 public:
  using Local = Span<pw_region>;
  using Far = Span<pw_remote>;
  using LocalBlock = Block<pw_region>;
  using FarBlock = Block<pw_remote>;

  /// Collective over `team`, which this rank leaves only once its contexts have ended, too.
  explicit Context(Team& team) {
    pw_context* context = nullptr;
    check(pw_context_create(team.handle(), &context));
    context_.reset(context, pw_context_free);
  }
  Context(Context&&) noexcept = default;
  Context& operator=(Context&& other) noexcept {
    end();
    context_ = std::move(other.context_);
    return *this;
  }
  ~Context() { end(); }

  /// Ends the waits of other threads in this context with Status::closed and refuses what follows.
  void close() { check(pw_context_close(handle())); }

  /// Restricts what follows to these paths, comma-separated; "route" gives the choice back to the route
  /// table.
  void use(const std::string& paths) { check(pw_context_use(handle(), paths.c_str())); }

  /// How the waits that begin from now on wait, in place of the setting `wait`.
  void set_wait_policy(WaitPolicy policy) {
    check(pw_context_set_wait_policy(handle(), static_cast<pw_wait_policy>(policy)));
  }
  [[nodiscard]] WaitPolicy wait_policy() const {
    return static_cast<WaitPolicy>(pw_context_wait_policy(handle()));
  }

  /// New memory that peers on this host can map from the start.
  Region allocate(pw_device device, uint64_t bytes) {
    pw_region* region = nullptr;
    check(pw_allocate(handle(), device, bytes, &region));
    return Region(region);
  }
  /// Memory the caller owns and keeps until the region is closed.
  Region register_memory(void* address, uint64_t bytes) {
    pw_region* region = nullptr;
    check(pw_register(handle(), address, bytes, &region));
    return Region(region);
  }
  Remote import(std::span<const std::byte> key) {
    pw_remote* remote = nullptr;
    check(pw_import(handle(), key.data(), key.size(), &remote));
    return Remote(remote);
  }
  /// `sender` is the one rank that will raise it, or any_rank.
  Signal signal(int sender = any_rank) { return signal_on(host, sender); }
  /// The same in the memory of a GPU, for its kernels and plans to wait for and those of peers to raise.
  Signal signal_on(pw_device device, int sender = any_rank) {
    pw_signal* signal = nullptr;
    check(pw_signal_create_on(handle(), device, sender, &signal));
    return Signal(signal);
  }

  // The target comes first, as in memcpy; a region and a remote cannot be mixed up. Spans of different sizes
  // are refused by the library.
  Status put(Far to, Local from) { return put_spans(to, from, nullptr); }
  Status put(Far to, Local from, pw_raise raise) { return put_spans(to, from, &raise); }
  Status put(const FarBlock& to, const LocalBlock& from) { return put_blocks(to, from, nullptr); }
  Status put(const FarBlock& to, const LocalBlock& from, pw_raise raise) {
    return put_blocks(to, from, &raise);
  }
  Status get(Local to, Far from) {
    if (to.bytes != from.bytes) return get(as_block(to), as_block(from));
    return static_cast<Status>(pw_get(handle(), from.handle, from.offset, to.handle, to.offset, to.bytes));
  }
  Status get(const LocalBlock& to, const FarBlock& from) {
    return static_cast<Status>(pw_get_block(handle(), from.handle, &from.block, to.handle, &to.block));
  }
  Status raise(pw_raise raise) { return static_cast<Status>(pw_raise_signal(handle(), &raise)); }

  /// Returns once all that was started towards `rank` is complete at both ends.
  Status flush(int rank = any_rank, Timeout timeout = forever) {
    return static_cast<Status>(pw_flush(handle(), rank, detail::nanoseconds(timeout)));
  }

  /// A new stream of a device (peerway/plan.hpp).
  Stream stream(pw_device device);

  /// A new plan, started on `device`: the regions of its operations, on this side, are memory of it.
  PlanBuilder plan(pw_device device = host);

  /// Puts that kernels of `device` post and the proxy does (peerway/device/fifo.cuh): from `regions`
  /// to `remotes`, regions of others and signals to raise behind the data, named by their places in these
  /// lists. `entries`, a power of two, may be under way at once.
  Fifo fifo(pw_device device, const std::vector<std::reference_wrapper<const Region>>& regions,
            const std::vector<std::reference_wrapper<const Remote>>& remotes, uint32_t entries = 256);

  /// Collective. A plan that refreshes the halos of all these arrays at once (peerway/halo.hpp); `corners`:
  /// edges and corners, too.
  Plan halo(const Grid& grid, std::span<const Array> arrays, bool corners = false);
  Plan halo(const Grid& grid, std::initializer_list<Array> arrays, bool corners = false);

  [[nodiscard]] pw_context* handle() const { return context_.get(); }

 private:
  template <typename Handle>
  static Block<Handle> as_block(Span<Handle> span) {
    return {span.handle, pw_block{span.offset, span.bytes, 0, {}, {}}};
  }
  Status put_spans(Far to, Local from, const pw_raise* raise) {
    if (to.bytes != from.bytes) return put_blocks(as_block(to), as_block(from), raise);
    return static_cast<Status>(
        pw_put(handle(), to.handle, to.offset, from.handle, from.offset, to.bytes, raise));
  }
  Status put_blocks(const FarBlock& to, const LocalBlock& from, const pw_raise* raise) {
    return static_cast<Status>(pw_put_block(handle(), to.handle, &to.block, from.handle, &from.block, raise));
  }

  void end() {
    if (context_ != nullptr) static_cast<void>(pw_context_close(context_.get()));
    context_.reset();
  }

  std::shared_ptr<pw_context> context_;  // shared with its streams, which may outlive this object
};

}  // namespace peerway

#include "peerway/halo.hpp"  // IWYU pragma: export
#include "peerway/plan.hpp"  // IWYU pragma: export

#endif
