#include "uct/domain.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "nic/plugin.h"
#include "nic/stream.h"
#include "uct/memory.h"

namespace pw::uct {
namespace {

bool same_endpoint(const nic::EndpointFacts& a, const nic::EndpointFacts& b) {
  return a.number == b.number && nic::equal(a.control, b.control) && a.address.length == b.address.length &&
         std::memcmp(a.address.bytes, b.address.bytes, a.address.length) == 0;
}

}  // namespace

Domain::Domain(const Settings& settings)
    : endpoint_(std::make_unique<nic::Endpoint>(nic::Plugin::load(nic::plugin_file(settings.nic.plugin)),
                                                settings.job, settings.nic.options)) {
  // The program's signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  server_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Domain::~Domain() {
  closing_ = true;
  if (server_.joinable()) server_.join();
  say_goodbye();
  for (Operation& operation : operations_) operation.call = [](pw_nic_done*, pw_nic_status) {};
  channels_.clear();
  peers_.clear();
  chunks_.clear();
}

// Tells the peers that this endpoint closes. Otherwise they would take its silence for a failure.
void Domain::say_goodbye() {
  const std::scoped_lock held(lock);
  const uint64_t deadline = deadline_after(200'000'000);
  for (bool done = false; !done && now_ns() < deadline;) {
    done = true;
    for (const auto& channel : channels_) done &= channel->leave();
    for (const auto& peer : peers_) done &= peer->quiet();
    if (!done && work() == 0) sched_yield();
  }
}

Peer& Domain::peer(const nic::EndpointFacts& facts) {
  for (const auto& peer : peers_)
    if (same_endpoint(peer->facts(), facts) && !peer->failed()) return *peer;
  return *peers_.emplace_back(std::make_unique<Peer>(*this, facts));
}

Channel& Domain::channel(const Address& address) {
  Peer& to = peer(address.facts);
  for (const auto& channel : channels_)
    if (&channel->peer() == &to && nic::equal(channel->inbox(), address.inbox)) return *channel;
  return *channels_.emplace_back(std::make_unique<Channel>(*this, to, address.inbox));
}

// ---- progress ----

unsigned Domain::progress() {
  std::unique_lock held(lock, std::try_to_lock);
  return held.owns_lock() ? work() : 0;
}

unsigned Domain::work() {
  out_of_room_ = false;
  const unsigned happened = endpoint_->progress();
  if (!unsettled_.empty()) {
    std::vector<Peer*> now;
    now.swap(unsettled_);
    for (Peer* peer : now) peer->advance();
  }
  return happened;
}

// The domain's thread. When UCX believes that a message is sent, its slot's word may still have to be put:
// the stream waits until the puts before it are in place, or until the NIC has room. And on a NIC that
// guarantees no order, the receiver gets the bytes of puts itself. Both must go on while the program
// computes, or waits in another context of UCX (Open MPI has two). NICs that keep puts in order need this
// rarely.
void Domain::serve() {
  const bool seldom = (info().guarantees & PW_NIC_PUTS_IN_ORDER) != 0;
  const auto pause = std::chrono::microseconds(seldom ? 1000 : 50);
  while (!closing_) {
    if (progress() == 0 || seldom)
      std::this_thread::sleep_for(pause);
    else
      sched_yield();
  }
}

void Domain::add_unsettled(Peer& peer) {
  if (std::ranges::find(unsettled_, &peer) == unsettled_.end()) unsettled_.push_back(&peer);
}

void Domain::departed(uint32_t number) {
  for (const auto& peer : peers_)
    if (peer->facts().number == number) peer->departed = true;
}

void Domain::probe_peers() {
  for (const auto& channel : channels_)
    if (channel->peer().channels > 0 && !channel->peer().departed) channel->probe();
}

bool Domain::settle() {
  bool quiet = true;
  for (const auto& peer : peers_) {
    if (peer->quiet()) continue;
    quiet = false;
    peer->settle(nullptr);
  }
  return quiet;
}

void Domain::fence() {
  for (const auto& peer : peers_) peer->fence();
}

// ---- operations ----

Operation* Domain::operation(Peer& peer) {
  if (idle_operations_.empty()) idle_operations_.push_back(&operations_.emplace_back());
  Operation* operation = idle_operations_.back();
  idle_operations_.pop_back();
  *operation = Operation{};
  operation->domain = this;
  operation->peer = &peer;
  operation->call = [](pw_nic_done* done, pw_nic_status status) {
    auto* ended = static_cast<Operation*>(done);
    ended->status = status;
    Peer& from = *ended->peer;
    const Operation::Kind kind = ended->kind;
    ended->domain->report(ended);  // before from.ended(), which may end a flush that waited for it
    from.ended(kind, status);
  };
  return operation;
}

bool Domain::more_bounces() {
  constexpr size_t kBytes = (kMessageBytes + 63) / 64 * 64;
  Chunk chunk{std::make_unique<std::byte[]>(kBounces * kBytes), nullptr};
  try {
    chunk.memory =
        endpoint_->add({sizeof(pw_nic_span), chunk.bytes.get(), kBounces * kBytes, PW_NIC_HOST, 0, -1, 0});
  } catch (const Error&) {
    return false;
  }
  for (size_t i = 0; i < kBounces; ++i)
    idle_bounces_.push_back({chunk.bytes.get() + i * kBytes, chunk.memory.get()});
  chunks_.push_back(std::move(chunk));
  return true;
}

bool Domain::lend(Operation& operation) {
  if (idle_bounces_.empty() && !more_bounces()) {
    set_out_of_room();
    recycle(&operation);
    return false;
  }
  operation.bounce = idle_bounces_.back();
  idle_bounces_.pop_back();
  return true;
}

void Domain::recycle(Operation* operation) {
  if (operation->memory != nullptr) operation->memory->release(*operation);
  if (operation->bounce.data != nullptr) idle_bounces_.push_back(operation->bounce);
  operation->bounce = {};
  operation->report_to = nullptr;
  idle_operations_.push_back(operation);
}

void Domain::report(Operation* operation) {
  if (operation->report_to != nullptr) return operation->report_to->push(operation);
  if (operation->unpack != nullptr && operation->status == PW_NIC_OK)
    operation->unpack(operation->unpack_arg, operation->bounce.data, operation->bytes);
  recycle(operation);
}

void Domain::forget(const RegisteredMemory& memory) {
  for (Operation& operation : operations_)
    if (operation.memory == &memory) operation.memory = nullptr;
}

void Domain::forget(EndedOperations& list) {
  for (Operation* operation = list.take(); operation != nullptr;) {
    Operation* next = operation->next;
    recycle(operation);
    operation = next;
  }
  for (Operation& operation : operations_)
    if (operation.report_to == &list) {
      operation.report_to = nullptr;
      operation.unpack = nullptr;
    }
}

}  // namespace pw::uct
