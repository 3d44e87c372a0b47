#include "path/nic/engine.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "team/wait.h"

namespace pw::nic {
namespace {

/// Counts operations that are under way, and keeps the first failure. One is given to all of a kind.
struct Tally : pw_nic_done {
  Tally() {
    call = [](pw_nic_done* done, pw_nic_status with) {
      auto* tally = static_cast<Tally*>(done);
      tally->add(-1);
      if (with != PW_NIC_OK && tally->failed == PW_NIC_OK) tally->failed = with;
    };
  }
  /// With the lock, so that counting costs no more than a store.
  void add(int64_t by) {
    under_way.store(under_way.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  std::atomic<int64_t> under_way{0};
  pw_nic_status failed = PW_NIC_OK;  ///< with the lock
};

}  // namespace

struct Engine::Peer {
  int rank = 0;
  std::unique_ptr<Stream> stream;
  Tally puts, gets;
  bool dirty = false;  ///< something was started since the last flush
  std::atomic<bool> lost{false};
};

/// Outlives a caller that gave up waiting for it.
struct Engine::Fence : pw_nic_done {
  std::atomic<bool> over{false};
  pw_nic_status status = PW_NIC_OK;
  std::shared_ptr<Fence> self;  ///< held by the card
};

Engine::Engine(std::shared_ptr<const Plugin> plugin, const std::string& configuration, Team& team,
               const std::atomic<uint32_t>& closed, const Waiting& waiting)
    : team_(team),
      closed_(closed),
      waiting_(waiting),
      peers_(static_cast<size_t>(team.size())),
      endpoint_(std::move(plugin), team.job(), configuration),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  scratch_ = endpoint_.add({sizeof(pw_nic_span), scratch_word_, sizeof scratch_word_, PW_NIC_HOST, 0, -1, 0});
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "pw-nic");
}

Engine::~Engine() {
  stop_.store(true);
  rouse();
  thread_.join();
  // What is under way still calls the tallies.
  const uint64_t deadline = deadline_after(500'000'000);
  const auto under_way = [](const auto& peer) {
    return peer != nullptr && peer->puts.under_way + peer->gets.under_way > 0;
  };
  while (std::ranges::any_of(peers_, under_way) && now_ns() < deadline)
    if (endpoint_.progress() == 0) sched_yield();
  scratch_.reset();
  for (auto& peer : peers_)
    if (peer != nullptr) peer->stream.reset();
}

void Engine::set_cards(std::vector<std::optional<nic::Card>> cards) {
  Lock lock(mutex_);
  cards_ = std::move(cards);
}

// ---- memory ----

RegionMemory::RegionMemory(std::shared_ptr<Engine> of, const pw_nic_span& span) : engine(std::move(of)) {
  std::lock_guard lock(engine->mutex_);
  memory = engine->endpoint_.add(span);
}

RegionMemory::~RegionMemory() {
  std::lock_guard lock(engine->mutex_);
  memory.reset();
}

RankMemory::RankMemory(std::shared_ptr<Engine> of, int rank, const pw_nic_key& key, uint64_t begin)
    : engine(std::move(of)), base(begin) {
  std::lock_guard lock(engine->mutex_);
  memory = engine->peer(rank).stream->import(key);
}

RankMemory::~RankMemory() {
  std::lock_guard lock(engine->mutex_);
  memory.reset();
}

Engine::Peer& Engine::peer(int rank) {
  auto& entry = peers_[static_cast<size_t>(rank)];
  if (entry != nullptr) return *entry;
  const auto& card = cards_.at(static_cast<size_t>(rank));
  if (!card) throw Error(PW_UNAVAILABLE, format("peerway: rank {} has no card {}", rank, name()));
  auto made = std::make_unique<Peer>();
  made->rank = rank;
  made->stream = endpoint_.open(*card);
  entry = std::move(made);
  return *entry;
}

bool Engine::puts_strided(int rank) {
  Lock lock(mutex_);
  return peer(rank).stream->has_strided();
}

// ---- progress ----

void Engine::poll() {
  if (Lock lock(mutex_, std::try_to_lock); lock.owns_lock()) endpoint_.progress();
}

void Engine::rouse() const { eventfd_write(wake_.get(), 1); }

// The card moves what was posted by itself, so that there is only something to do while words or flushes wait
// for a proof, while peers may ask, or while somebody sleeps until a transfer is done.
void Engine::run() {
  constexpr timespec kAway{0, 200'000};  // while somebody polls, this thread only costs
  uint64_t idle = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (is_polled()) {
      nanosleep(&kAway, nullptr);
      continue;
    }
    unsigned happened = 0;
    bool waits = false, serves = false;
    int event = -1;
    {
      Lock lock(mutex_);
      asleep_.store(true);
      if (endpoint_.ops().arm != nullptr) endpoint_.ops().arm(endpoint_.handle());
      happened = endpoint_.progress();
      serves = endpoint_.serves();
      waits = endpoint_.unfinished() || sleepers_.load() > 0;
      if (endpoint_.ops().event != nullptr) event = endpoint_.ops().event(endpoint_.handle());
    }
    if (happened > 0) {
      waiting_.wake();
      idle = 0;
      sched_yield();
      continue;
    }
    // What peers ask for comes unannounced; the longer nothing came, the seldomer is looked.
    constexpr uint64_t kShortest = 20'000, kLongest = 1'000'000;
    idle = std::min(idle + 1, kLongest / kShortest);
    const uint64_t nap = kShortest * idle;
    const bool looks = serves || (waits && event < 0);
    pollfd both[] = {{wake_.get(), POLLIN, 0}, {event, POLLIN, 0}};
    const timespec time{0, static_cast<long>(nap)}, backstop{0, 100'000'000};
    ppoll(both, 2, looks ? &time : waits ? &backstop : nullptr, nullptr);
    asleep_.store(false);
    if (both[0].revents != 0) {
      eventfd_t count = 0;
      eventfd_read(wake_.get(), &count);
      idle = 0;
    }
  }
}

/// Whoever looks leaves the card's thread alone; who sleeps has it look.
template <typename Done>
pw_status Engine::wait_for(int rank, uint64_t deadline_ns, const char* what, Done&& done) {
  Polled* const me[] = {this};
  std::optional<Polling> polling;
  if (!waiting_.economy()) polling.emplace(me);
  struct Asleep {
    std::atomic<int>& count;
    int mine = 0;
    ~Asleep() { count.fetch_sub(mine); }
  } asleep{sleepers_};
  const auto closed = [&] { return closed_.load(std::memory_order_relaxed) != 0; };
  bool happened = false;
  const pw_status status = wait_until(
      waiting_, {team_, rank, deadline_ns, what},
      [&] {
        if (polling) polling->turn();
        happened = done();
        return happened || closed();
      },
      [&] {
        asleep.mine = 1;
        sleepers_.fetch_add(1);
        rouse();
        return Wakes::perhaps;
      });
  if (status != PW_OK || happened) return status;
  return pw::fail(PW_CLOSED, format("peerway: this context was closed while waiting for {}", what));
}

// ---- operations ----

// The card may know of a death before the team does, which has more to say of it.
pw_status Engine::failure(Lock& lock, int rank, pw_nic_status status) {
  constexpr uint64_t kWhile = 200'000'000;  // ns
  const std::string why = endpoint_.why(status);
  lock.unlock();
  const uint64_t deadline = deadline_after(status == PW_NIC_UNREACHABLE ? kWhile : 0);
  while (!team_.lost(rank) && now_ns() < deadline) sched_yield();
  if (team_.lost(rank)) return pw::fail(PW_PEER_LOST, "peerway: " + team_.describe_loss(rank));
  if (status == PW_NIC_UNREACHABLE)
    return pw::fail(PW_PEER_LOST,
                    format("peerway: rank {} is out of reach of the card {}: {}", rank, name(), why));
  if (status == PW_NIC_REFUSED)
    return pw::fail(PW_STALE_KEY, format("peerway: the card {} finds memory of rank {} closed ({}); ask that "
                                         "rank for a new key",
                                         name(), rank, why));
  return pw::fail(PW_SYSTEM,
                  format("peerway: a transfer of the card {} with rank {} failed: {}", name(), rank, why));
}

/// Calls `start` with the lock until the card has room for what it starts.
template <typename Start>
pw_status Engine::start(int rank, Start&& start) {
  pw_nic_status status = PW_NIC_BUSY;
  const auto attempt = [&] {
    Lock lock(mutex_);
    Peer& to = peer(rank);
    to.dirty = true;
    status = start(to);
    if (status == PW_NIC_BUSY) {
      endpoint_.progress();
      return false;
    }
    if (endpoint_.unfinished() && asleep_.load(std::memory_order_relaxed)) rouse();
    return true;
  };
  if (!attempt())
    if (const pw_status waited = wait_for(rank, PW_FOREVER, "room for another transfer of a card", attempt);
        waited != PW_OK)
      return waited;
  if (status == PW_NIC_OK) return PW_OK;
  Lock lock(mutex_);
  return failure(lock, rank, status);
}

pw_status Engine::move(Op op, int rank, RankMemory& remote, uint64_t offset, std::byte* data,
                       RegionMemory& local, uint64_t bytes, const Word* word) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t next = std::min(bytes - done, endpoint_.info().largest);
    const bool last = done + next == bytes;
    const pw_status status = start(rank, [&](Peer& peer) {
      Tally& tally = op == Op::put ? peer.puts : peer.gets;
      Stream& stream = *peer.stream;
      const pw_nic_status started =
          op == Op::get ? stream.get(*remote.memory, offset + done, data + done, *local.memory, next, &tally)
          : word != nullptr && last
              ? stream.put_word(*remote.memory, offset + done, data + done, local.memory.get(), next, *word,
                                &tally)
              : stream.put(*remote.memory, offset + done, data + done, local.memory.get(), next, &tally);
      if (started == PW_NIC_OK) tally.add(1);
      return started;
    });
    if (status != PW_OK) return status;
    done += next;
  }
  return PW_OK;
}

pw_status Engine::put_strided(int rank, RankMemory& remote, uint64_t offset, const std::byte* data,
                              RegionMemory& local, const Blocks& blocks) {
  return start(rank, [&](Peer& peer) {
    const pw_nic_status started =
        peer.stream->put_strided(*remote.memory, offset, data, *local.memory, blocks, &peer.puts);
    if (started == PW_NIC_OK) peer.puts.add(1);
    return started;
  });
}

pw_status Engine::put_word(int rank, const Word& word) {
  return start(rank, [&](Peer& peer) { return peer.stream->word(word); });
}

pw_status Engine::get_word(int rank, RankMemory& remote, uint64_t offset, uint64_t& value) {
  pw_status status = start(rank, [&](Peer& peer) {
    const pw_nic_status started =
        peer.stream->get(*remote.memory, offset, scratch_word_, *scratch_, sizeof value, &peer.gets);
    if (started == PW_NIC_OK) peer.gets.add(1);
    return started;
  });
  if (status == PW_OK) status = flush(rank, PW_FOREVER);
  value = scratch_word_[0];
  return status;
}

pw_status Engine::flush(int rank, uint64_t deadline_ns) {
  Peer* to = nullptr;
  {
    Lock lock(mutex_);
    to = peers_[static_cast<size_t>(rank)].get();
    if (to == nullptr || !to->dirty) return PW_OK;
    to->dirty = false;  // what is started from here on is another flush's
  }
  const auto fence = std::make_shared<Fence>();
  fence->call = [](pw_nic_done* done, pw_nic_status with) {
    auto* mine = static_cast<Fence*>(done);
    const auto held = std::move(mine->self);
    mine->status = with;
    mine->over.store(true, std::memory_order_release);
  };
  bool begun = false;
  pw_nic_status refused = PW_NIC_OK;
  // A marker's get is behind all gets; where the peer answers instead, they are waited for as well.
  const auto done = [&] {
    if (!begun) {
      Lock lock(mutex_);
      refused = to->stream->flush(fence.get());
      if (refused == PW_NIC_BUSY) {
        endpoint_.progress();
        return false;
      }
      if (refused != PW_NIC_OK) return true;
      fence->self = fence;
      begun = true;
      endpoint_.progress();  // it may be over at once
    }
    return fence->over.load(std::memory_order_acquire) &&
           (fence->status != PW_NIC_OK || to->gets.under_way.load(std::memory_order_acquire) == 0);
  };
  const pw_status waited = wait_for(rank, deadline_ns, "transfers of a card to complete", done);
  Lock lock(mutex_);
  pw_nic_status failed = refused != PW_NIC_OK ? refused : fence->status;
  if (waited != PW_OK || failed != PW_NIC_OK) to->dirty = true;
  if (waited != PW_OK) return waited;
  for (Tally* tally : {&to->puts, &to->gets}) {  // told once, even where the flush has told it
    const pw_nic_status of = std::exchange(tally->failed, PW_NIC_OK);
    if (failed == PW_NIC_OK) failed = of;
  }
  return failed == PW_NIC_OK ? PW_OK : failure(lock, rank, failed);
}

}  // namespace pw::nic
