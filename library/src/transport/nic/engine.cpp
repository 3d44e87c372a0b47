#include "transport/nic/engine.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/status.h"
#include "transport/nic/peer.h"

namespace pw::nic {

// Each NIC has a job number of its own, because two NICs of one plugin are two networks.
NicEngine::NicEngine(std::shared_ptr<const Plugin> plugin, const NicSpec& spec, Team& team,
                     const std::atomic<uint32_t>& closed, Progress& progress)
    : name_(spec.name),
      team_(team),
      closed_(closed),
      progress_(progress),
      reach_(static_cast<size_t>(team.size())),
      peers_(static_cast<size_t>(team.size())),
      endpoint_(std::move(plugin),
                nic::Job{hash_of(spec.name, team.job()), team.secret_for("peerway nic:" + spec.name)},
                spec.options) {
  scratch_ = endpoint_.add({sizeof(pw_nic_span), scratch_word_, sizeof scratch_word_, PW_NIC_HOST, 0, -1, 0});
}

NicEngine::~NicEngine() {
  // Operations under way still refer to the tallies.
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
  const Reach known = reach_[static_cast<size_t>(rank)].load(std::memory_order_relaxed);
  return known == Reach::unknown ? why_unreachable(rank).empty() : known == Reach::open;
}

// Keeps the answer of the first check: if the NIC loses its route later, the peer counts as lost.
std::string NicEngine::why_unreachable(int rank) {
  std::atomic<Reach>& reach = reach_[static_cast<size_t>(rank)];
  Lock lock(mutex_);
  try {
    peer(rank);
    reach.store(Reach::open, std::memory_order_relaxed);
    return {};
  } catch (const Error& error) {
    reach.store(Reach::none, std::memory_order_relaxed);
    return error.what();
  }
}

bool NicEngine::puts_strided(int rank) {
  Lock lock(mutex_);
  return peer(rank).stream->has_strided();
}

// ---- progress ----

bool NicEngine::turn() {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  const unsigned happened = endpoint_.progress();
  if (!backlogged_.empty()) resume_all();
  if (!awaiting_proof_.empty()) prove_all();
  if (happened == 0) return false;
  idle_.store(0, std::memory_order_relaxed);
  return true;
}

// The NIC moves posted operations by itself. So the progress thread is only needed while words or flushes
// wait for a proof, while peers may send requests, or while a thread sleeps until a transfer is done.
Armed NicEngine::arm(bool sleepers) {
  // No event announces requests of peers. The longer none has come, the less often the thread polls for them.
  constexpr uint64_t kShortest = 20'000, kLongest = 1'000'000, kBackstop = 100'000'000;
  const Lock lock(mutex_);
  if (endpoint_.ops().arm != nullptr) endpoint_.ops().arm(endpoint_.handle());
  if (endpoint_.progress() > 0) return {-1, 0};
  const int event = endpoint_.ops().event != nullptr ? endpoint_.ops().event(endpoint_.handle()) : -1;
  const uint64_t idle = std::min(idle_.load(std::memory_order_relaxed) + 1, kLongest / kShortest);
  idle_.store(idle, std::memory_order_relaxed);
  // The rest may need room, and no event reports new room: another endpoint may have made it.
  const bool unfinished = endpoint_.unfinished() || !backlogged_.empty() || !awaiting_proof_.empty();
  if (endpoint_.serves() || unfinished || (sleepers && event < 0)) return {event, kShortest * idle};
  return {event, sleepers ? kBackstop : Armed::kNoLimit};
}

}  // namespace pw::nic
