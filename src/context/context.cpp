#include "context/context.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "context/binding.h"
#include "team/agreement.h"

namespace pw {

namespace {

constexpr size_t kMostTransports = 16;

/// What a rank tells all others first.
struct Introduction {
  Card card;
  bool wants[kMostTransports];  ///< that transport of the list
};

}  // namespace

Context::Context(Team& team)
    : team_(team),
      seal_{team.job(), team.secret_for("peerway keys")},
      importer_(control_, team.rank()),
      transports_(make_transports({team_, control_, importer_, registry_, progress_, attachment_numbers_})),
      touched_(static_cast<size_t>(team.size())) {
  control_.waiting()->set_economy(config("wait") == "economy");
  resolver_ = std::make_unique<Resolver>(transports_, importer_);
  meet_others();
  control_.waiting()->set_crowded(importer_.crowded());
  on_loss_ = team.on_loss([waiting = control_.waiting()](int) { waiting->wake(); });
  progress_.add(raises_);
  if (const uint64_t chunk = resolver_->chunk_bytes(); chunk > 0) set_chunk_bytes(chunk);
  progress_.start();
}

// Two exchanges, however many transports there are: who is where and who wants which, and then what the ranks
// must know of each.
void Context::meet_others() {
  const uint64_t timeout_ns = config_number("timeout");
  const auto size = static_cast<size_t>(team_.size());
  if (transports_.size() > kMostTransports)
    throw Error(PW_INTERNAL, format("peerway: more than {} transports", kMostTransports));
  Introduction mine{make_card(control_), {}};
  for (size_t t = 0; t < transports_.size(); ++t)
    mine.wants[t] = transports_[t]->wanted(resolver_->names_path_of(t));
  const Bytes gathered = team_.all_gather(std::as_bytes(std::span(&mine, 1)), timeout_ns);
  std::vector<Introduction> all(size);
  std::memcpy(all.data(), gathered.data(), gathered.size());
  std::vector<Card> cards;
  for (const Introduction& one : all) cards.push_back(one.card);
  importer_.meet(std::move(cards));

  Together together;
  together.several_hosts =
      std::ranges::any_of(all, [&](const auto& one) { return one.card.host_id != mine.card.host_id; });
  ByteWriter writer;
  Objection objection;  // what one rank cannot do ends the context of all alike
  attempt(objection, [&] {
    for (size_t t = 0; t < transports_.size(); ++t) {
      together.wanted = std::ranges::any_of(all, [&](const auto& one) { return one.wants[t]; });
      const Bytes said = transports_[t]->open(together);
      writer.put(static_cast<uint32_t>(said.size()));
      writer.put(ByteView(said));
    }
  });
  std::vector<std::vector<Bytes>> said(transports_.size());
  for (const Bytes& part : agree(team_, objection, writer.take(), "make its context")) {
    ByteReader reader(part, "what a rank says of its transports");
    for (auto& of : said) {
      const ByteView bytes = reader.take(reader.get<uint32_t>());
      of.emplace_back(bytes.begin(), bytes.end());
    }
  }
  for (size_t t = 0; t < transports_.size(); ++t) transports_[t]->meet(said[t]);
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

void Context::set_chunk_bytes(uint64_t bytes) {
  for (const auto& path : resolver_->paths()) path->set_chunk_bytes(bytes);
}

Device& Context::device_named(pw_device where) const {
  if (where.kind == PW_HOST) return host_device();
  if (where.index != -1) return device({where.kind, where.index});
  const auto gpus =
      std::ranges::count_if(devices(), [](const Device* device) { return device->id().kind == PW_CUDA; });
  return device({where.kind, bound_gpu(importer_.local_rank(), static_cast<size_t>(gpus))});
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
  for (const auto& transport : transports_) transport->attach(key, region);
  return pack(key, seal_);
}

void Context::attach_signals(Key& key) {
  for (const auto& transport : transports_) transport->attach_signals(key);
}

std::shared_ptr<Remote> Context::import(std::span<const std::byte> bytes) {
  Key key = parse_key(bytes, seal_);
  if (key.rank >= team_.size())
    throw Error(PW_BAD_KEY, format("peerway: the key names rank {}; this team has ranks 0 to {}", key.rank,
                                   team_.size() - 1));
  auto remote = std::make_shared<Remote>(std::move(key), importer_, team_.rank());
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
