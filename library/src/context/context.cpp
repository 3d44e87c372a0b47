#include "context/context.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/format.h"
#include "base/status.h"
#include "base/waiting.h"
#include "context/binding.h"
#include "team/agreement.h"
#include "team/wait.h"

namespace pw {

namespace {

constexpr size_t kMostTransports = 32;

/// The assumptions of a rank about all ranks before they have exchanged anything: which transports are
/// wanted, and whether there are several hosts.
struct Assumed {
  uint32_t wanted = 0;  ///< one bit for each transport
  uint8_t several_hosts = 0;
  bool operator==(const Assumed&) const = default;
};

/// The facts that a rank sends to all others.
struct Introduction {
  ProcessFacts facts{};
  Assumed assumed;
  std::vector<Bytes> transport_facts;  ///< one entry for each transport
};

Bytes pack(const Introduction& introduction) {
  ByteWriter to;
  to.put(std::as_bytes(std::span(&introduction.facts, 1)));
  to.put(introduction.assumed.wanted);
  to.put(introduction.assumed.several_hosts);
  for (const Bytes& bytes : introduction.transport_facts) {
    to.put_sized(bytes);
  }
  return to.take();
}

Introduction parse_introduction(ByteView bytes, size_t transports) {
  ByteReader from(bytes, "what a rank says of its context");
  Introduction introduction;
  std::memcpy(&introduction.facts, from.take(sizeof introduction.facts).data(), sizeof introduction.facts);
  introduction.assumed.wanted = from.get<uint32_t>();
  introduction.assumed.several_hosts = from.get<uint8_t>();
  for (size_t t = 0; t < transports; ++t) {
    const ByteView published = from.take_sized();
    introduction.transport_facts.emplace_back(published.begin(), published.end());
  }
  from.end();
  return introduction;
}

/// Derives the true facts from what all ranks sent.
Assumed truth_of(std::span<const Introduction> all) {
  Assumed truth;
  for (const Introduction& introduction : all) {
    truth.wanted |= introduction.assumed.wanted;
    truth.several_hosts |= introduction.facts.host_id != all.front().facts.host_id;
  }
  return truth;
}

[[noreturn]] void refuse_so_many(size_t paths, size_t most) {
  std::string advice;
  for (const PathFamily& family : path_families())
    advice += format("{} name fewer {}s in {}", advice.empty() ? ":" : " or", family.member, family.setting);
  throw Error(PW_UNSUPPORTED, format("{} paths; a context has at most {}{}", paths, most, advice));
}

}  // namespace

Context::Context(Team& team)
    : team_(team),
      seal_{team.job(), team.secret_for("peerway keys")},
      importer_(control_, team.rank()),
      transports_(make_transports({team_, control_, importer_, registry_, progress_, attachment_numbers_})),
      failures_(team.size()),
      started_towards_(static_cast<size_t>(team.size())) {
  control_.waiting()->set_blocking(settings::wait.value() == WaitPolicy::blocking);
  trace::begin();
  resolver_ = std::make_unique<Resolver>(transports_, importer_);
  if (resolver_->paths().size() > kMostPaths) refuse_so_many(resolver_->paths().size(), kMostPaths);
  for (const auto& path : resolver_->paths()) {
    if (!path->completes_at_start()) later_paths_ |= bit_of(*path);
    trace::describe_path(path->name(), path->completes_at_start());
  }
  exchange_facts();
  control_.waiting()->set_oversubscribed(importer_.oversubscribed());
  on_loss_ = team.on_loss([waiting = control_.waiting()](int) { waiting->wake(); });
  progress_.add(notifications_);
  if (const uint64_t chunk = resolver_->chunk_bytes(); chunk > 0) set_chunk_bytes(chunk);
  progress_.start();
}

// Opens the transports, and exchanges with all ranks what each must know of the others. Usually one
// collective is enough, however many transports there are: each rank assumes that all want the same
// transports as itself, and the team knows whether there are several hosts. If a rank assumed wrong, it opens
// its transports again, and all ranks repeat the exchange.
void Context::exchange_facts() {
  if (transports_.size() > kMostTransports)
    throw Error(PW_INTERNAL, format("more than {} transports", kMostTransports));
  Introduction mine{facts_of_process(control_), {}, std::vector<Bytes>(transports_.size())};
  AbortReason abort_reason;  // if one rank fails, the contexts of all ranks fail alike
  const auto open = [&](const Assumed& assumed) {
    attempt(abort_reason, [&] {
      for (size_t t = 0; t < transports_.size(); ++t)
        mine.transport_facts[t] =
            transports_[t]->open({assumed.several_hosts != 0, (assumed.wanted >> t & 1) != 0});
    });
  };
  const auto exchange = [&] {
    std::vector<Introduction> all;
    for (const Bytes& part : pw::agree(team_, abort_reason, pack(mine)))
      all.push_back(parse_introduction(part, transports_.size()));
    return all;
  };
  mine.assumed.several_hosts = team_.several_hosts();
  for (size_t t = 0; t < transports_.size(); ++t)
    mine.assumed.wanted |= uint32_t{transports_[t]->wanted(resolver_->names_path_of(t))} << t;
  open(mine.assumed);
  std::vector<Introduction> all = exchange();
  const Assumed truth = truth_of(all);
  if (std::ranges::any_of(all,
                          [&](const Introduction& introduction) { return introduction.assumed != truth; })) {
    if (mine.assumed != truth) open(truth);
    all = exchange();
  }
  std::vector<ProcessFacts> processes;
  for (const Introduction& introduction : all) processes.push_back(introduction.facts);
  importer_.set_processes(processes);
  for (size_t t = 0; t < transports_.size(); ++t) {
    std::vector<Bytes> received;
    for (Introduction& introduction : all) received.push_back(std::move(introduction.transport_facts[t]));
    transports_[t]->receive_facts(received);
  }
}

Context::~Context() {
  close();
  progress_.stop();
  object_of_upper_layer_.reset();
}

void Context::close() {
  control_.close_for_all();
  std::lock_guard lock(close_callbacks_->mutex);
  for (const auto& callback : close_callbacks_->callbacks) callback();
  close_callbacks_->callbacks.clear();
}

std::shared_ptr<void> Context::on_close(std::function<void()> callback) {
  std::lock_guard lock(close_callbacks_->mutex);
  close_callbacks_->callbacks.push_back(std::move(callback));
  const std::function<void()>* mine = &close_callbacks_->callbacks.back();
  return {nullptr, [book = close_callbacks_, mine](void*) {
            std::lock_guard locked(book->mutex);
            book->callbacks.remove_if([&](const auto& other) { return &other == mine; });
          }};
}

std::shared_ptr<void> Context::object_of_upper_layer(const std::function<std::shared_ptr<void>()>& make) {
  std::lock_guard lock(upper_layer_mutex_);
  if (object_of_upper_layer_ == nullptr) object_of_upper_layer_ = make();
  return object_of_upper_layer_;
}

void Context::set_chunk_bytes(uint64_t bytes) {
  for (const auto& path : resolver_->paths()) path->set_chunk_bytes(bytes);
}

Device& Context::device_named(pw_device where) const {
  if (where.kind == PW_HOST) return host_device();
  if (where.index != -1) return device({where.kind, where.index});
  const auto gpus =
      std::ranges::count_if(devices(), [&](const Device* device) { return device->id().kind == where.kind; });
  return device({where.kind, bound_gpu(importer_.local_rank(), static_cast<size_t>(gpus))});
}

std::shared_ptr<Region> Context::allocate(pw_device where, uint64_t bytes) {
  auto region = registry_.allocate(device_named(where), bytes);
  resolver_->classify(*region);
  return region;
}

std::shared_ptr<Region> Context::allocate_part(pw_device where, uint64_t bytes) {
  auto region = registry_.allocate_part(device_named(where), bytes);
  resolver_->classify(*region);
  return region;
}

std::shared_ptr<Region> Context::register_memory(void* address, uint64_t bytes, Access access) {
  auto region = registry_.add(address, bytes, access);
  resolver_->classify(*region);
  return region;
}

WordPool& Context::words(Device& device) {
  std::lock_guard lock(pools_mutex_);
  auto& pool = words_[&device];
  if (pool == nullptr) pool = std::make_unique<WordPool>(device, registry_);
  return *pool;
}

PinnedPool& Context::pinned(Device& device) {
  std::lock_guard lock(pools_mutex_);
  auto& pool = pinned_[&device];
  if (pool == nullptr) pool = std::make_unique<PinnedPool>(device);
  return *pool;
}

std::vector<std::byte> Context::key_of(Region& region) {
  Key key;
  key.rank = team_.rank();
  key.device = region.device().id();
  key.slot = region.slot();
  key.generation = region.generation();
  key.bytes = region.bytes();
  key.access = region.access();
  key.exported = region.exported();
  key.why_none = region.allocation().why_none;
  for (const auto& transport : transports_) transport->attach(key, region);
  return pack(key, seal_);
}

std::vector<uint32_t> Context::coordinates() const {
  for (const auto& transport : transports_)
    if (auto coordinates = transport->coordinates(); !coordinates.empty()) return coordinates;
  return {};
}

void Context::attach_signals(Key& key) {
  for (const auto& transport : transports_) transport->attach_signals(key);
}

std::shared_ptr<Remote> Context::import(std::span<const std::byte> bytes) {
  Key key = parse_key(bytes, seal_);
  if (key.rank >= team_.size())
    throw Error(PW_BAD_KEY,
                format("the key names rank {}; this team has ranks 0 to {}", key.rank, team_.size() - 1));
  refuse_lost(team_, key.rank);
  auto remote = std::make_shared<Remote>(std::move(key), importer_, team_.rank());
  if (remote->same_process())
    check_own(remote->key);
  else
    prepare_for_transfers(*remote);
  return remote;
}

// Maps the memory and loads the copy kernels at the import: the driver takes milliseconds to map memory of
// another GPU (results/visibility), and 15 ms to load the kernels, and the first transfer would have to wait
// for both. If something fails, that transfer reports why or uses another path.
void Context::prepare_for_transfers(Remote& remote) {
  Device* device = registry_.accelerator();
  if (device == nullptr || remote.key.device.kind == PW_HOST || !reaches(*device, remote)) return;
  std::string why_not;
  device->has_kernels(why_not);
}

bool Context::reaches(Device& device, Remote& remote) {
  std::string why_not;
  if (remote.rank() != team_.rank() && !resolver_->uses_mappings()) return false;
  if (!remote.same_host() || !device.reaches(remote.key.exported, why_not)) return false;
  try {
    remote.address_on(device);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// This rank accesses its own memory by the address in the key alone, so that address must be a region's.
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
        format("the key refers to {} bytes at {:#x} of this rank, but no such region is registered here",
               key.bytes, key.exported.address));
}

}  // namespace pw
