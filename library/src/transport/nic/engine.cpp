#include "transport/nic/engine.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/status.h"
#include "transport/nic/peer.h"

namespace pw::nic {

// The NIC's name is part of the job's number and of its secret. Two NICs of one plugin are two networks, and
// the endpoints of one must not take those of the other for their peers.
NicEngine::NicEngine(std::shared_ptr<const Plugin> plugin, const NicSpec& spec, Team& team,
                     const std::atomic<uint32_t>& closed, Progress& progress)
    : name_(spec.name),
      team_(team),
      closed_(closed),
      progress_(progress),
      reachability_(static_cast<size_t>(team.size())),
      peers_(static_cast<size_t>(team.size())),
      endpoint_(std::move(plugin),
                nic::Job{hash_of(spec.name, team.job()), team.secret_for("peerway nic:" + spec.name)},
                spec.options) {
  scratch_ = endpoint_.add({sizeof(pw_nic_span), scratch_word_, sizeof scratch_word_, PW_NIC_HOST, 0, -1, 0});
}

NicEngine::~NicEngine() {
  // When an operation ends, the NIC still counts it in the peer's tally. So this waits for the operations
  // under way, at most half a second.
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

void NicEngine::set_peers(std::function<std::optional<nic::EndpointFacts>(int)> facts_of) {
  Lock lock(mutex_);
  facts_of_ = std::move(facts_of);
}

// ---- memory ----

RegionMemory::RegionMemory(std::shared_ptr<NicEngine> of, const pw_nic_span& span) : engine(std::move(of)) {
  std::lock_guard lock(engine->mutex_);
  memory = engine->endpoint_.add(span);
}

RegionMemory::~RegionMemory() {
  std::lock_guard lock(engine->mutex_);
  engine->drop(memory.get());
  memory.reset();
}

RankMemory::RankMemory(std::shared_ptr<NicEngine> of, int rank, const pw_nic_key& key, uint64_t begin)
    : engine(std::move(of)), base(begin) {
  std::lock_guard lock(engine->mutex_);
  memory = engine->peer(rank).stream->import(key);
}

RankMemory::~RankMemory() {
  std::lock_guard lock(engine->mutex_);
  engine->drop(memory.get());
  memory.reset();
}

NicEngine::NicPeer& NicEngine::peer(int rank) {
  auto& entry = peers_[static_cast<size_t>(rank)];
  if (entry != nullptr) return *entry;
  const auto facts = facts_of_(rank);
  if (!facts) throw Error(PW_UNAVAILABLE, format("rank {} has no NIC {}", rank, name()));
  auto peer = std::make_unique<NicPeer>();
  peer->rank = rank;
  peer->stream = endpoint_.open(*facts);
  entry = std::move(peer);
  return *entry;
}

bool NicEngine::reaches(int rank) {
  const Reachability known = reachability_[static_cast<size_t>(rank)].load(std::memory_order_relaxed);
  return known == Reachability::unknown ? why_unreachable(rank).empty() : known == Reachability::reachable;
}

// Tries to connect. reaches() keeps to the answer: if the NIC loses its route to the rank later, transfers
// fail and the rank counts as lost.
std::string NicEngine::why_unreachable(int rank) {
  std::atomic<Reachability>& reachability = reachability_[static_cast<size_t>(rank)];
  Lock lock(mutex_);
  try {
    peer(rank);
    reachability.store(Reachability::reachable, std::memory_order_relaxed);
    return {};
  } catch (const Error& error) {
    reachability.store(Reachability::unreachable, std::memory_order_relaxed);
    return error.what();
  }
}

bool NicEngine::puts_strided(int rank) {
  Lock lock(mutex_);
  return peer(rank).stream->has_strided();
}

// ---- progress ----

bool NicEngine::poll() {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  const unsigned happened = endpoint_.progress();
  if (!backlogged_.empty()) resume_all();
  if (!awaiting_flush_.empty()) advance_flushes();
  if (happened == 0) return false;
  idle_.store(0, std::memory_order_relaxed);
  return true;
}

// The NIC carries out the operations that it has accepted by itself. The progress thread must poll only while
// operations or flushes wait to be given to the NIC, while peers may send requests, or while a thread of this
// rank sleeps until a transfer is done.
Armed NicEngine::arm(bool sleepers) {
  // In ns. No event announces requests of peers, so the thread polls for them: after kShortest, then less and
  // less often while none comes, up to kLongest. kBackstop limits the sleep until an event of the NIC.
  constexpr uint64_t kShortest = 20'000, kLongest = 1'000'000, kBackstop = 100'000'000;
  const Lock lock(mutex_);
  if (endpoint_.ops().arm != nullptr) endpoint_.ops().arm(endpoint_.handle());
  if (endpoint_.progress() > 0) return {-1, 0};
  const int event = endpoint_.ops().event != nullptr ? endpoint_.ops().event(endpoint_.handle()) : -1;
  const uint64_t idle = std::min(idle_.load(std::memory_order_relaxed) + 1, kLongest / kShortest);
  idle_.store(idle, std::memory_order_relaxed);
  // These operations may wait for room in the NIC. No event reports new room, because operations of another
  // endpoint may have made it.
  const bool unfinished = endpoint_.unfinished() || !backlogged_.empty() || !awaiting_flush_.empty();
  if (endpoint_.serves() || unfinished || (sleepers && event < 0)) return {event, kShortest * idle};
  return {event, sleepers ? kBackstop : Armed::kNoLimit};
}

}  // namespace pw::nic
