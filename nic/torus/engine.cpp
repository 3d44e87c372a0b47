#include "torus/engine.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/clock.h"
#include "base/format.h"
#include "base/relax.h"
#include "base/status.h"
#include "torus/failure.h"

namespace pw::torus {
namespace {

constexpr uint64_t kSpin = 60'000;  ///< ns: shorter waits poll instead of sleeping
constexpr uint64_t kLongestSleep = 1'000'000'000;
constexpr uint64_t kFinish = 1'900'000'000;

}  // namespace

void poll_for(int poll, int descriptor, uint64_t tag) {
  epoll_event event{EPOLLIN, {.u64 = tag}};
  epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
}

bool needs_engine(const TorusFile& file) {
  const bool deaths =
      std::any_of(file.dead.begin(), file.dead.end(), [](const Death& d) { return d.after_ns > 0; });
  return file.timed || deaths || file.faults.of_operations() || file.faults.of_packets();
}

Engine::Engine(const Surroundings& around, Grid grid, Wire& wire, Counters& counters)
    : around_(around),
      shared_(around.directory.shared()),
      grid_(std::move(grid)),
      wire_(wire),
      counters_(counters),
      modelled_(needs_engine(around.file)),
      exchange_(around.self, around.key, wire, counters,
                {[this](OperationPointer operation, pw_nic_status status) {
                   complete(std::move(operation), status);
                 },
                 [this](uint32_t slot, uint32_t generation) -> std::shared_ptr<Memory> {
                   const bool registered = slot < memories_.size() && memories_[slot] != nullptr &&
                                           memories_[slot]->generation == generation;
                   return registered ? memories_[slot] : nullptr;
                 },
                 [this](uint64_t session) {
                   for (const auto& peer : peers_)
                     if (peer->place.session == session) peer->lost = true;
                 },
                 [this](uint32_t number, const sockaddr_in& from) { return sends_from(number, from); }}),
      random_(around.file.faults.seed * 0x9e3779b97f4a7c15 + around.self.number),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      poll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!alarm_ || !poll_)
    throw Failure(PW_NIC_BROKEN, format("torus: no descriptor is left for the engine{}", lacking(errno)));
  if (wire.is_open()) poll_for(poll_.get(), wire.descriptor(), kSocketTag);
  poll_for(poll_.get(), around.directory.job_memory().listener(), kJobMemoryTag);
  poll_for(poll_.get(), alarm_.get(), kAlarmTag);
  // Signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& failed) {
    error = failed.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    throw Failure(PW_NIC_BROKEN, format("torus: no thread is left for the engine{}", lacking(error)));
}

Engine::~Engine() {
  stop_ = true;
  wake();
  thread_.join();
}

void Engine::wake() {
  if (woken_.exchange(true)) return;
  const uint64_t increment = 1;
  [[maybe_unused]] const ssize_t written = write(alarm_.get(), &increment, sizeof increment);
}

void Engine::run() {
  while (!stop_) {
    uint64_t now, until;
    {
      std::lock_guard lock(mutex_);
      woken_ = false;
      now = now_ns();
      until = step(now);
      asleep_until_ = until;
    }
    wait(now, until);
  }
}

// Returns the time at which there is something to do next, if nothing arrives before.
uint64_t Engine::step(uint64_t now) {
  if (process_ended_ || now >= next_check_) check_processes(now);
  if (shared_.entry[around_.self.number].port_requested.load(std::memory_order_relaxed) && !wire_.is_open())
    open_wire();
  const uint64_t death = apply_deaths(now);
  while (!heap_.empty() && heap_.front().time <= now) {
    std::pop_heap(heap_.begin(), heap_.end());
    Due due = std::move(heap_.back());
    heap_.pop_back();
    if (due.has_bytes)
      complete(std::move(due.operation), PW_NIC_OK);
    else
      dispatch(std::move(due.operation), now);
  }
  if (node_dead_) {
    wire_.receive([](auto, const sockaddr_in&) {});
    return std::min(death, heap_.empty() ? UINT64_MAX : heap_.front().time);
  }
  const unsigned arrived = exchange_.receive(now);
  const uint64_t wanted = exchange_.attend(now);
  if (arrived > 0) return now;
  return std::min({wanted, death, heap_.empty() ? UINT64_MAX : heap_.front().time});
}

void Engine::wait(uint64_t now, uint64_t until) {
  if (until <= now) return;
  if (until - now < kSpin) {
    while (now_ns() < until && !woken_.load(std::memory_order_relaxed))
      for (int i = 0; i < 16; ++i) relax();
    return;
  }
  const uint64_t sleep_ns = std::min(until - now - kSpin / 2, kLongestSleep);
  const timespec limit{static_cast<time_t>(sleep_ns / 1'000'000'000),
                       static_cast<long>(sleep_ns % 1'000'000'000)};
  pollfd all{poll_.get(), POLLIN, 0};
  if (ppoll(&all, 1, &limit, nullptr) <= 0) return;
  std::array<epoll_event, 16> events;
  const int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[static_cast<size_t>(i)].data.u64;
    uint64_t rings;
    if (tag == kAlarmTag) [[maybe_unused]]
      const ssize_t got = read(alarm_.get(), &rings, sizeof rings);
    else if (tag == kJobMemoryTag)
      around_.directory.job_memory().hand_out();
    else if (tag != kSocketTag)
      process_ended_ = true;
  }
}

pw_nic_status Engine::submit(OperationPointer operation) {
  uint64_t wanted = 0;
  {
    std::lock_guard lock(mutex_);
    if (in_flight_ >= kInFlight) return PW_NIC_BUSY;
    ++in_flight_;
    operation->peer->under_way.fetch_add(1, std::memory_order_relaxed);
    const uint64_t now = now_ns();
    if (!modelled_) {
      dispatch(std::move(operation), now);
      wanted = exchange_.attend(now);
    } else {
      wanted = due_of(*operation, now);
      push(wanted, std::move(operation), false);
    }
  }
  if (wanted < asleep_until_.load()) wake();
  return PW_NIC_OK;
}

void Engine::push(uint64_t time, OperationPointer operation, bool has_bytes) {
  heap_.push_back({time, ++turn_, std::move(operation), has_bytes});
  std::push_heap(heap_.begin(), heap_.end());
}

// Returns when the last byte leaves the last link; each link passes on one train of packets at a time.
uint64_t Engine::arrival(const std::vector<Link>& links, uint64_t bytes, uint64_t now) {
  const TorusFile& file = around_.file;
  const auto lasts = static_cast<uint64_t>(static_cast<double>(bytes) * 8 / file.gbit_per_s);
  const auto hop = static_cast<uint64_t>(file.hop_ns);
  uint64_t head = now;
  for (const Link& link : links) {
    auto& busy = shared_.busy[link.node * kDirections + link.direction];
    uint64_t until = busy.load(std::memory_order_relaxed);
    while (!busy.compare_exchange_weak(until, std::max(head, until) + lasts, std::memory_order_relaxed)) {
    }
    head = std::max(head, until) + hop;
  }
  return head - (links.empty() ? 0 : hop) + lasts + static_cast<uint64_t>(file.latency_ns);
}

uint64_t Engine::due_of(Operation& operation, uint64_t now) {
  TorusPeer& peer = *operation.peer;
  const Faults& faults = around_.file.faults;
  uint64_t arrives = now, held = 0;
  if (around_.file.timed) {
    const uint64_t leaves = std::max(now, next_leaves_);
    next_leaves_ = leaves + static_cast<uint64_t>(around_.file.gap_ns);
    arrives = arrival(peer.route_to.links, operation.put ? operation.bytes : 0, leaves);
  }
  if (random_.happens(faults.delay.probability)) {
    arrives += random_.below(faults.delay.ns + 1);
    ++counters_.delayed;
  }
  if (!operation.put) return peer.order.get(arrives);
  if (random_.happens(faults.reorder.probability)) {
    held = random_.below(faults.reorder.ns + 1);
    ++counters_.reordered;
  }
  return peer.order.put(arrives, held);
}

void Engine::dispatch(OperationPointer operation, uint64_t now) {
  TorusPeer& peer = *operation->peer;
  if (node_dead_ || peer.gone()) return complete(std::move(operation), PW_NIC_UNREACHABLE);
  if (!operation->alive()) return complete(std::move(operation), PW_NIC_REFUSED);
  // Earlier datagrams may still be on their way and must not be overtaken.
  const bool by_memory = peer.by_datagram == 0 && !around_.file.faults.of_packets() && operation->of_host() &&
                         operation->target->reachable();
  if (by_memory) return move(std::move(operation), now);
  if (!wire_.is_open() && !open_wire()) return complete(std::move(operation), PW_NIC_BROKEN);
  operation->by_datagram = true;
  ++peer.by_datagram;
  exchange_.start(std::move(operation), now);
}

void Engine::move(OperationPointer operation, uint64_t now) {
  TorusPeer& peer = *operation->peer;
  auto& touching = shared_.entry[around_.self.number].touching[1][0];
  const PeerMemory& target = *operation->target;
  ++counters_.by_memory;
  const pw_nic_status status =
      operation->put ? target.put(operation->offset, operation->local, operation->bytes, touching)
                     : target.get(operation->offset, operation->local, operation->bytes, touching);
  if (operation->put || !around_.file.timed || status != PW_NIC_OK)
    return complete(std::move(operation), status);
  peer.last_get_arrival =
      std::max(peer.last_get_arrival, arrival(peer.route_from.links, operation->bytes, now));
  push(peer.last_get_arrival, std::move(operation), true);
}

void Engine::complete(OperationPointer operation, pw_nic_status status) {
  TorusPeer& peer = *operation->peer;
  if (status == PW_NIC_REFUSED && peer.gone()) status = PW_NIC_UNREACHABLE;
  if (status == PW_NIC_UNREACHABLE && finished_) status = PW_NIC_BROKEN;
  if (status == PW_NIC_UNREACHABLE) ++counters_.unreachable;
  if (status == PW_NIC_REFUSED) ++counters_.refused;
  if (operation->by_datagram) --peer.by_datagram;
  --in_flight_;
  if (operation->done != nullptr) {
    completed_.emplace_back(operation->done, status);
    some_completed_.store(true, std::memory_order_release);
  }
  peer.under_way.fetch_sub(1, std::memory_order_release);
}

void Engine::take_completed(Completed& completed) {
  if (!some_completed_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  some_completed_ = false;
  completed.swap(completed_);
}

void Engine::add(const std::shared_ptr<TorusPeer>& peer) {
  std::lock_guard lock(mutex_);
  find_routes(*peer);
  peers_.push_back(peer);
  watch(*peer);
}

void Engine::remove(const std::shared_ptr<TorusPeer>& peer) {
  std::lock_guard lock(mutex_);
  std::erase(peers_, peer);
}

void Engine::add(const std::shared_ptr<Memory>& memory) {
  std::lock_guard lock(mutex_);
  if (memories_.size() <= memory->slot) memories_.resize(memory->slot + 1);
  memories_[memory->slot] = memory;
}

void Engine::remove(const std::shared_ptr<Memory>& memory) {
  std::lock_guard lock(mutex_);
  memory->alive = false;
  memories_[memory->slot] = nullptr;
}

void Engine::finish() {
  const uint64_t deadline = now_ns() + kFinish;
  for (bool idle = false; !idle && now_ns() < deadline;) {
    {
      std::lock_guard lock(mutex_);
      idle = node_dead_ || (heap_.empty() && exchange_.idle());
    }
    if (!idle) usleep(200);
  }
  std::lock_guard lock(mutex_);
  finished_ = true;
  exchange_.say_goodbye();
  for (Due& due : heap_) complete(std::move(due.operation), PW_NIC_BROKEN);
  heap_.clear();
}

}  // namespace pw::torus
