// lock and unlock, by Lamport's bakery algorithm, since images can only put and get. At a lock's image, each
// image has a ticket that it alone writes. The image with the smallest ticket has the lock; of equal tickets,
// that of the lowest image wins.
#include "xacc/runtime/coarrays/locks.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/coarrays/synchronisation.h"
#include "xacc/runtime/program/program.h"

namespace {

/// One image's ticket for one lock.
struct Ticket {
  uint64_t choosing;
  uint64_t number;  ///< 0: the image does not want the lock
};

}  // namespace

/// The tickets of all images for the locks of one coarray; each image has those for its own locks.
struct pwx_locks_state {
  peerway::Region tickets;
  peerway::Region mine;  ///< a buffer from which tickets are put, and into which they are fetched
  std::vector<peerway::Key> keys;
  std::vector<std::optional<peerway::Remote>> remotes;
};

namespace pwx {
namespace {

using peerway::check;

std::vector<std::unique_ptr<pwx_locks_state>>& all_locks() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_locks_state>>;  // outlives atexit
  return all;
}

/// One lock at one image, accessed from this image.
class Lock {
 public:
  Lock(const pwx_locks& locks, long element, long image) : state_(*locks.state) {
    const auto rank =
        static_cast<size_t>(rank_of_image(image, text("lock ", locks.name, " at image ", image)));
    if (element < 0 || element >= locks.count)
      refuse("lock ", element, " of ", locks.name, ", which has ", locks.count);
    auto& remote = state_.remotes[rank];
    if (!remote) remote = program().context.import(state_.keys[rank]);
    remote_ = &*remote;
    first_ = static_cast<uint64_t>(element) * images() * sizeof(Ticket);
  }

  /// Fetches the current tickets.
  const Ticket* read_tickets() {
    const size_t bytes = images() * sizeof(Ticket);
    check(program().context.get(state_.mine.span(0, bytes), remote_->span(first_, bytes)));
    check(program().context.flush());
    std::atomic_thread_fence(std::memory_order_acquire);
    return static_cast<const Ticket*>(state_.mine.address());
  }

  void publish_ticket(Ticket ticket) {
    const size_t at = images() * sizeof(Ticket);
    *reinterpret_cast<Ticket*>(static_cast<std::byte*>(state_.mine.address()) + at) = ticket;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    check(program().context.put(remote_->span(first_ + me() * sizeof(Ticket), sizeof(Ticket)),
                                state_.mine.span(at, sizeof(Ticket))));
    check(program().context.flush());
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  [[nodiscard]] static size_t me() { return static_cast<size_t>(program().rank()); }
  [[nodiscard]] static size_t images() { return static_cast<size_t>(program().size()); }

  /// Whether another image precedes `number` of this one, or may still do so.
  static bool is_before(const Ticket& other, size_t image, uint64_t number) {
    return other.choosing != 0 ||
           (other.number != 0 && (other.number < number || (other.number == number && image < me())));
  }

 private:
  pwx_locks_state& state_;
  peerway::Remote* remote_;
  uint64_t first_;
};

/// Takes the lock; with `once`, only if no image has it or precedes this one. Returns whether it was taken.
bool acquire_lock(Lock& lock, bool once) {
  lock.publish_ticket({1, 0});
  const Ticket* tickets = lock.read_tickets();
  uint64_t number = 0;
  for (size_t image = 0; image < Lock::images(); ++image) number = std::max(number, tickets[image].number);
  lock.publish_ticket({0, ++number});
  for (size_t image = 0; image < Lock::images(); ++image) {
    if (image == Lock::me()) continue;
    for (;;) {
      const Ticket other = lock.read_tickets()[image];
      if (!Lock::is_before(other, image, number)) break;
      if (once && other.choosing == 0) {
        lock.publish_ticket({0, 0});
        return false;
      }
      std::this_thread::yield();
      if (program().mail.goodbye_heard())
        throw Failure("another image ended while this one waits for a lock");
    }
  }
  return true;
}

bool holds(Lock& lock) { return lock.read_tickets()[Lock::me()].number != 0; }

int held_by(Lock& lock) {
  const Ticket* tickets = lock.read_tickets();
  for (size_t image = 0; image < Lock::images(); ++image)
    if (tickets[image].number != 0) return static_cast<int>(image);
  return -1;
}

}  // namespace

void free_locks() { all_locks().clear(); }

}  // namespace pwx

extern "C" {

void pwx_locks_init(pwx_locks* locks, const char* name, long count, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::Program& program = pwx::program();
    const auto images = static_cast<size_t>(program.size());
    locks->name = name;
    locks->count = count;
    const size_t bytes = static_cast<size_t>(count) * images * sizeof(Ticket);
    auto state = std::unique_ptr<pwx_locks_state>(
        new pwx_locks_state{program.context.allocate(peerway::host, bytes),
                            program.context.allocate(peerway::host, (images + 1) * sizeof(Ticket)),
                            {},
                            {}});
    state->keys = program.team.all_gather(state->tickets.key());
    state->remotes.resize(images);
    locks->state = state.get();
    pwx::all_locks().push_back(std::move(state));
  });
}

int pwx_lock(const pwx_locks* locks, long element, long image, int* acquired, int may_fail,
             const pwx_where* where) {
  return pwx::guarded(where, [&] {
    pwx::Lock lock(*locks, element, image);
    if (pwx::holds(lock)) {
      if (may_fail == 0) pwx::refuse("lock ", locks->name, ", which this image has already");
      return static_cast<int>(PWX_STAT_LOCKED);
    }
    const bool taken = pwx::acquire_lock(lock, acquired != nullptr);
    if (acquired != nullptr) *acquired = taken ? 1 : 0;
    return static_cast<int>(PWX_STAT_SUCCESS);
  });
}

int pwx_unlock(const pwx_locks* locks, long element, long image, int may_fail, const pwx_where* where) {
  return pwx::guarded(where, [&] {
    pwx::Lock lock(*locks, element, image);
    if (!pwx::holds(lock)) {
      const int other = pwx::held_by(lock);
      if (may_fail == 0)
        pwx::refuse("unlock ", locks->name, ", which ",
                    other < 0 ? std::string("no image has") : pwx::text("image ", other, " has"));
      return static_cast<int>(other < 0 ? PWX_STAT_UNLOCKED : PWX_STAT_LOCKED_OTHER_IMAGE);
    }
    pwx::complete_segment();  // completes the work done under the lock
    lock.publish_ticket({0, 0});
    return static_cast<int>(PWX_STAT_SUCCESS);
  });
}

}  // extern "C"
