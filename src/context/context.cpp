#include "context/context.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "context/binding.h"
#include "path/mapped/mapped.h"
#include "path/peer/cma.h"
#include "path/peer/gpu.h"
#include "path/peer/shm.h"
#include "path/staged/staged.h"
#include "path/ucx/direct.h"
#include "path/ucx/staged.h"
#include "team/wait.h"

namespace pw {

std::vector<std::unique_ptr<Path>> make_paths(Surroundings surroundings, ucx::Ucx& ucx, ProcessorMaps& maps) {
  std::vector<std::unique_ptr<Path>> paths;
  paths.push_back(std::make_unique<PeerShm>(false));
  paths.push_back(std::make_unique<PeerShm>(true));
  paths.push_back(std::make_unique<PeerCma>(surroundings));
  paths.push_back(std::make_unique<PeerGpu>(surroundings, Method::engine));
  paths.push_back(std::make_unique<PeerGpu>(surroundings, Method::kernel));
  paths.push_back(std::make_unique<Mapped>(maps));
  paths.push_back(std::make_unique<UcxDirect>(surroundings, ucx));
  paths.push_back(std::make_unique<UcxStaged>(surroundings, ucx));
  paths.push_back(std::make_unique<Staged>(surroundings));
  return paths;
}

Context::Context(Team& team) : team_(team), touched_(static_cast<size_t>(team.size())) {
  const Card mine = make_card(control_);
  const auto gathered = team.all_gather(std::as_bytes(std::span(&mine, 1)), config_number("timeout"));
  std::vector<Card> cards(static_cast<size_t>(team.size()));
  std::memcpy(cards.data(), gathered.data(), gathered.size());
  const bool several_hosts =
      std::any_of(cards.begin(), cards.end(), [&](const Card& card) { return card.host_id != mine.host_id; });
  importer_ = std::make_unique<Importer>(control_, team.rank(), std::move(cards));
  staging_ = std::make_unique<StagingService>(team_, control_, *importer_, registry_);
  resolver_ = std::make_unique<Resolver>(
      make_paths({team_, control_, *importer_, registry_, *staging_}, ucx_, maps_), *importer_, ucx_, maps_);
  ucx_.start(team_, control_.control().closed, several_hosts || resolver_->mentions_ucx());
  if (const uint64_t chunk = resolver_->staging_chunk_bytes(); chunk > 0)
    for (const auto& path : resolver_->paths())
      if (auto* staged = dynamic_cast<Staged*>(path.get())) staged->set_chunk_bytes(chunk);
}

Context::~Context() { close(); }

void Context::close() { control_.close_for_all(); }

Device& Context::device_named(pw_device where) const {
  if (where.kind == PW_HOST) return host_device();
  if (where.index != -1) return device({where.kind, where.index});
  const auto gpus =
      std::ranges::count_if(devices(), [](const Device* device) { return device->id().kind == PW_CUDA; });
  return device({where.kind, bound_gpu(importer_->local_rank(), static_cast<size_t>(gpus))});
}

std::shared_ptr<Region> Context::allocate(pw_device where, uint64_t bytes) {
  auto region = registry_.allocate(device_named(where), bytes);
  resolver_->classify(*region);
  return region;
}

std::shared_ptr<Region> Context::add(void* address, uint64_t bytes) {
  auto region = registry_.add(address, bytes);
  resolver_->classify(*region);
  return region;
}

std::vector<std::byte> Context::key_of(Region& region) {
  Key key;
  key.job = team_.job();
  key.rank = team_.rank();
  key.device = region.device().id();
  key.slot = region.slot();
  key.generation = region.generation();
  key.bytes = region.bytes();
  key.exported = region.exported();
  key.exported.address = reinterpret_cast<uint64_t>(region.address());
  key.ucx = ucx_.key_of(region);
  key.why_none = region.allocation().why_none;
  return pack(key);
}

std::unique_ptr<Remote> Context::import(std::span<const std::byte> bytes) {
  Key key = parse_key(bytes);
  if (key.job != team_.job())
    throw Error(PW_FOREIGN_KEY,
                "peerway: this key belongs to another job; keys are only good within the team they were "
                "made in");
  if (key.rank >= team_.size())
    throw Error(PW_BAD_KEY, format("peerway: the key names rank {}; this team has ranks 0 to {}", key.rank,
                                   team_.size() - 1));
  return std::make_unique<Remote>(std::move(key), *importer_, team_.rank());
}

Signal::Signal(Context& context, int sender)
    : context_(context),
      sender_(sender),
      words_(sender == PW_ANY_RANK ? static_cast<uint32_t>(context.team().size()) : 1) {
  if (sender != PW_ANY_RANK && (sender < 0 || sender >= context.team().size()))
    throw Error(PW_OUT_OF_RANGE, format("peerway: a signal raised by rank {}; this team has ranks 0 to {}",
                                        sender, context.team().size() - 1));
  first_ = context.control().take_words(words_);
  try {
    slot_ = context.control().open_slot();
  } catch (...) {
    context.control().give_words(first_, words_);
    throw;
  }
}

Signal::~Signal() {
  context_.control().close_slot(slot_);
  context_.control().give_words(first_, words_);
}

uint64_t Signal::value() const noexcept {
  const std::atomic<uint64_t>* word = &context_.control().control().signal[first_];
  uint64_t sum = 0;
  for (uint32_t w = 0; w < words_; ++w) sum += word[w].load(std::memory_order_acquire);
  return sum;
}

pw_status Signal::wait(uint64_t value, uint64_t timeout_ns) const {
  if (this->value() >= value) return PW_OK;
  const uint64_t deadline = deadline_after(timeout_ns);
  ucx::Engine* const ucx = context_.ucx();
  StagingHelp help(context_.staging());
  std::optional<ucx::Polling> polling;
  if (ucx != nullptr) polling.emplace(*ucx);
  // A look of UCX costs more than a look at the word, which may as well come from this host.
  constexpr uint64_t kLooks = 16;
  uint64_t looks = 0;
  const pw_status status = wait_until(context_.team(), sender_, deadline, "a signal", [&] {
    help.look();
    if (polling && ++looks % kLooks == 0) polling->turn();
    return this->value() >= value || context_.closed();
  });
  if (status != PW_OK) return status;
  return this->value() >= value
             ? PW_OK
             : fail(PW_CLOSED, format("peerway: this context was closed while waiting for a signal to reach "
                                      "{}; it is at {}",
                                      value, this->value()));
}

std::vector<std::byte> Signal::key() const {
  Key key;
  key.type = KeyType::signal;
  key.job = context_.team().job();
  key.rank = context_.team().rank();
  key.slot = slot_;
  key.generation = context_.control().control().generation[slot_].load(std::memory_order_relaxed);
  key.bytes = sizeof(uint64_t);
  key.word = first_;
  key.sender = sender_;
  key.exported.address = reinterpret_cast<uint64_t>(&context_.control().control().signal[first_]);
  key.ucx = context_.ucx_key_of_signals();
  return pack(key);
}

}  // namespace pw
