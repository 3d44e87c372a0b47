#include "context/context.h"

#include <algorithm>
#include <cstring>

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "context/binding.h"
#include "context/paths.h"
#include "path/staged/staged.h"

namespace pw {

Context::Context(Team& team)
    : team_(team),
      seal_{team.job(), team.secret_for("peerway keys")},
      touched_(static_cast<size_t>(team.size())) {
  control_.waiting()->set_economy(config("wait") == "economy");
  const Card mine = make_card(control_);
  const auto gathered = team.all_gather(std::as_bytes(std::span(&mine, 1)), config_number("timeout"));
  std::vector<Card> cards(static_cast<size_t>(team.size()));
  std::memcpy(cards.data(), gathered.data(), gathered.size());
  const bool several_hosts =
      std::any_of(cards.begin(), cards.end(), [&](const Card& card) { return card.host_id != mine.host_id; });
  importer_ = std::make_unique<Importer>(control_, team.rank(), std::move(cards));
  control_.waiting()->set_crowded(importer_->crowded());
  on_loss_ = team_.on_loss([waiting = control_.waiting()](int) { waiting->wake(); });
  staging_ = std::make_unique<StagingService>(team_, control_, *importer_, registry_);
  progress_.add(*staging_);
  progress_.add(raises_);
  resolver_ = std::make_unique<Resolver>(
      make_paths({team_, control_, *importer_, registry_, progress_}, ucx_, nics_, maps_), *importer_, ucx_,
      nics_, maps_);
  ucx_.start(team_, control_, progress_, several_hosts || resolver_->mentions_ucx());
  nics_.start(team_, control_, progress_);
  if (const uint64_t chunk = resolver_->staging_chunk_bytes(); chunk > 0) set_staging_chunk_bytes(chunk);
  progress_.start();
}

Context::~Context() {
  close();
  progress_.stop();
  attachment_.reset();
}

void Context::close() {
  control_.close_for_all();
  std::lock_guard lock(close_book_->mutex);
  for (const auto& callback : close_book_->callbacks) callback();
  close_book_->callbacks.clear();
}

std::shared_ptr<void> Context::on_close(std::function<void()> callback) {
  std::lock_guard lock(close_book_->mutex);
  close_book_->callbacks.push_back(std::move(callback));
  const std::function<void()>* mine = &close_book_->callbacks.back();
  return {nullptr, [book = close_book_, mine](void*) {
            std::lock_guard locked(book->mutex);
            book->callbacks.remove_if([&](const auto& other) { return &other == mine; });
          }};
}

std::shared_ptr<void> Context::attachment(const std::function<std::shared_ptr<void>()>& make) {
  std::lock_guard lock(attachment_mutex_);
  if (attachment_ == nullptr) attachment_ = make();
  return attachment_;
}

void Context::set_staging_chunk_bytes(uint64_t bytes) {
  for (const auto& path : resolver_->paths())
    if (auto* staged = dynamic_cast<Staged*>(path.get())) staged->set_chunk_bytes(bytes);
}

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

WordPool& Context::words(Device& device) {
  std::lock_guard lock(words_mutex_);
  auto& pool = words_[&device];
  if (pool == nullptr) pool = std::make_unique<WordPool>(device, registry_);
  return *pool;
}

std::vector<std::byte> Context::key_of(Region& region) {
  Key key;
  key.rank = team_.rank();
  key.device = region.device().id();
  key.slot = region.slot();
  key.generation = region.generation();
  key.bytes = region.bytes();
  key.exported = region.exported();
  key.why_none = region.allocation().why_none;
  nics_.attach(key, region);
  if (const Bytes bytes = ucx_.key_of(region, room_in(key)); !bytes.empty())
    key.attached.emplace_back("ucx", bytes);
  return pack(key, seal_);
}

void Context::attach_signals(Key& key) {
  nics_.attach(key, control_);
  if (Bytes bytes = ucx_.key_of(control_); !bytes.empty()) key.attached.emplace_back("ucx", std::move(bytes));
}

std::shared_ptr<Remote> Context::import(std::span<const std::byte> bytes) {
  Key key = parse_key(bytes, seal_);
  if (key.rank >= team_.size())
    throw Error(PW_BAD_KEY, format("peerway: the key names rank {}; this team has ranks 0 to {}", key.rank,
                                   team_.size() - 1));
  auto remote = std::make_shared<Remote>(std::move(key), *importer_, team_.rank());
  if (remote->same_process()) check_own(remote->key);
  return remote;
}

// This rank reaches its own memory by the address in the key alone, so that address must be a region's.
void Context::check_own(const Key& key) {
  if (key.type == KeyType::signal && !is_device_signal(key))
    return;  // its word is one of the control segment
  bool known = false;
  if (key.type == KeyType::signal) {
    known = registry_.holds(key.exported.address, key.bytes);
  } else {
    const auto region = registry_.find(key.slot, key.generation);
    known = region != nullptr && region->bytes() == key.bytes && region->device().id() == key.device &&
            region->exported() == key.exported;
  }
  if (!known)
    throw Error(
        PW_BAD_KEY,
        format("peerway: the key names {} bytes at {:#x} of this very rank, which registered none such "
               "there",
               key.bytes, key.exported.address));
}

}  // namespace pw
