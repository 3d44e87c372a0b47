#include "context/resolver.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "context/machine.h"
#include "route/defaults.h"
#include "route/explain.h"
#include "route/table.h"

namespace pw {
namespace settings {

const TextSetting paths{
    "paths", "",
    "The only paths to use, separated by commas (peer/copy,staged). Empty: the route table decides."};
const PathSetting routes{
    "routes", "",
    "The route table, made by peerway tune. Empty: this machine's under ~/.config/peerway/routes."};
const PathSetting rules{"rules", "",
                        "A file of rules that prefer or forbid paths. Empty: ~/.config/peerway/rules.json."};

}  // namespace settings

namespace {

std::optional<route::Table> find_table(const KnownPaths& known, std::string& why_none) {
  const std::string named = settings::routes.text();
  const std::string file = named.empty() ? default_table_file() : named;
  if (named.empty() && !std::filesystem::exists(file)) return std::nullopt;  // nothing was measured yet
  try {
    route::Table table = route::load_table(file, known);
    route::check_machine(table, machine(), file);
    return table;
  } catch (const Error& error) {
    if (!named.empty()) throw;  // a table that was asked for must be usable
    why_none = error.what();
    return std::nullopt;
  }
}

route::Rules find_rules(const KnownPaths& known) {
  const std::string named = settings::rules.text();
  const std::string file = named.empty() ? default_rules_file() : named;
  if (named.empty() && !std::filesystem::exists(file)) return {};
  return route::load_rules(file, known);  // a user's rules are followed or refused, never ignored
}

/// Which paths exist depends on the far end's kind of memory; peers see only that end.
route::PairClass pair_class(Op op, const Pair& pair) {
  const auto near = route::memory_class(pair.local.kind, Handle::memfd);
  const auto far = route::memory_class(pair.remote.kind, pair.same_host ? pair.remote_handle : Handle::memfd);
  route::PairClass classes;
  classes.source = op == Op::put ? near : far;
  classes.target = op == Op::put ? far : near;
  classes.remote = !pair.same_host;
  return classes;
}

}  // namespace

Resolver::Resolver(const std::vector<std::unique_ptr<Transport>>& transports, Importer& importer)
    : importer_(importer) {
  for (size_t t = 0; t < transports.size(); ++t)
    for (auto& path : transports[t]->paths()) {
      path->set_number(static_cast<uint32_t>(paths_.size()));
      paths_.push_back(std::move(path));
      transport_of_.push_back(t);
    }
  std::string why_none;
  const KnownPaths known = known_paths();
  std::optional<route::Table> table = find_table(known, why_none);
  const bool strict = settings::strict.value();
  own_table_router_ = std::make_unique<route::Router>(std::move(table), find_rules(known), strict, why_none,
                                                      "", known.families);
  shipped_router_ = std::make_unique<route::Router>(
      route::parse_table(route::default_table(), "route/defaults.json", known), own_table_router_->rules(),
      strict, "", "the costs come with Peerway and are of other machines; run `peerway tune`",
      known.families);
  const std::string only = settings::paths.text();
  if (only.empty()) return;
  try {
    use(only);
  } catch (const Error& error) {
    throw Error(error.status(), format("{} (asked for by {})", error.what(), settings::paths.origin()));
  }
}

KnownPaths Resolver::known_paths() const {
  KnownPaths known{names(), path_families()};
  known.names.insert(known.names.end(), route::kPlanMethods.begin(), route::kPlanMethods.end());
  return known;
}

std::vector<std::string> Resolver::names() const {
  std::vector<std::string> all;
  for (const auto& path : paths_) all.emplace_back(path->name());
  return all;
}

bool Resolver::names_path_of(size_t transport) const {
  const auto named = [&](std::string_view path) {
    const auto& table = own_table_router_->table();
    return std::ranges::any_of(allowed_patterns_, [&](const auto& rule) { return rule.names(path); }) ||
           (table && std::ranges::any_of(table->costs, [&](const auto& cost) { return cost.path == path; }));
  };
  for (size_t p = 0; p < paths_.size(); ++p)
    if (transport_of_[p] == transport && named(paths_[p]->name())) return true;
  return false;
}

bool Resolver::restricted_among(std::span<const std::string> names) const {
  return std::ranges::any_of(names, [&](const std::string& name) {
    return std::ranges::any_of(allowed_patterns_, [&](const auto& rule) { return rule.names(name); });
  });
}

bool Resolver::uses_mappings() {
  std::lock_guard lock(mutex_);
  if (!restricted_among(names())) return true;
  return std::ranges::any_of(paths_, [&](const auto& path) {
    return path->uses_mappings() &&
           std::ranges::any_of(allowed_patterns_, [&](const auto& rule) { return rule.names(path->name()); });
  });
}

std::string_view Resolver::cpu_copy_path() const {
  const auto copying = std::ranges::find_if(paths_, [](const auto& path) { return path->copied_by_cpu(); });
  return copying == paths_.end() ? std::string_view() : (*copying)->name();
}

Path& Resolver::far_notifier(const Remote& signal) const {
  for (const auto& path : paths_)
    if (path->can_store_word(signal)) return *path;
  std::string why;
  for (const auto& path : paths_)
    if (const std::string reason = path->why_cannot_store_word(signal); !reason.empty())
      why += (why.empty() ? "" : "; ") + reason;
  throw Error(PW_UNSUPPORTED,
              format("no path of this context notifies a signal of rank {}, which is on another host: {}",
                     signal.rank(), why.empty() ? "none of them leads to other hosts" : why));
}

uint64_t Resolver::chunk_bytes() const {
  return own_table_router_->table() ? own_table_router_->table()->staging_chunk_bytes : 0;
}

void Resolver::use(const std::string& given) {
  std::vector<route::Rule> patterns;
  if (!given.empty() && given != "route") patterns.push_back(route::use_rule(given, known_paths()));
  std::lock_guard lock(mutex_);
  allowed_names_ = given;
  allowed_patterns_ = std::move(patterns);
  // The same names always get the same number, so that earlier decisions under them are found again, and no
  // equal ones are added.
  auto known = std::find(restrictions_.begin(), restrictions_.end(), given);
  if (known == restrictions_.end()) known = restrictions_.insert(restrictions_.end(), given);
  restriction_.store(static_cast<uint64_t>(known - restrictions_.begin()) + 1, std::memory_order_relaxed);
}

void Resolver::classify(Region& region) {
  const std::pair kind(region.device().id(), region.allocation().handle);
  std::lock_guard lock(mutex_);
  auto known = std::find(classes_.begin(), classes_.end(), kind);
  if (known == classes_.end()) {
    if (classes_.size() == Remote::kMemoryClasses)
      throw Error(PW_UNSUPPORTED,
                  format("regions of more than {} kinds of memory in one context", classes_.size()));
    known = classes_.insert(classes_.end(), kind);
  }
  region.memory_class.store(static_cast<uint32_t>(known - classes_.begin()), std::memory_order_relaxed);
}

std::vector<NamedOffer> Resolver::offers(Region& local, Remote& remote) {
  const Pair pair = facts(local, remote, importer_);
  std::vector<NamedOffer> offers;
  for (const auto& path : paths_)
    offers.push_back({std::string(path->name()), path->offer(pair, local, remote)});
  return offers;
}

route::Query Resolver::query(Op op, route::ShapeClass shape, Region& local, Remote& remote,
                             std::vector<Path*>* available) {
  const Pair pair = facts(local, remote, importer_);
  route::Query query;
  query.requested.op = op;
  query.requested.shape = shape;
  query.requested.pair = pair_class(op, pair);
  if (pair.same_host) query.requested.pair.link = worker(local, remote).link(remote.key.exported);
  const bool restricted = restricted_among(names());
  for (const auto& path : paths_) {
    const size_t before = query.available.size();
    add(query, std::string(path->name()), path->offer(pair, local, remote), restricted);
    if (available != nullptr && query.available.size() > before) available->push_back(path.get());
  }
  return query;
}

// Adds a path or a method of plans to the query: as available, or with the reason why not. `restricted` says
// whether use() named others of its kind: if use() names only paths, plans may use all methods, and the other
// way round.
void Resolver::add(route::Query& query, std::string name, Offer offer, bool restricted) {
  const std::array names{name};
  if (!offer.available)
    query.unavailable.push_back({std::move(name), std::move(offer.why_not)});
  else if (restricted && !restricted_among(names))
    query.unavailable.push_back(
        {std::move(name), format("only {} may be used (pw_context_use or PEERWAY_PATHS)", allowed_names_)});
  else
    query.available.push_back(std::move(name));
}

// The query for a plan's send. Its shape is always `contiguous`, because only the number of bytes decides
// between methods that copy a message once and methods that copy it twice.
route::Query Resolver::query_send(Region& local, Remote& remote, std::span<const NamedOffer> methods) {
  const Pair pair = facts(local, remote, importer_);
  route::Query query;
  query.requested = {Op::send, route::ShapeClass::contiguous, pair_class(Op::put, pair)};
  if (pair.same_host) query.requested.pair.link = worker(local, remote).link(remote.key.exported);
  std::vector<std::string> names;
  for (const NamedOffer& method : methods) names.push_back(method.name);
  const bool restricted = restricted_among(names);
  for (const NamedOffer& method : methods) add(query, method.name, method.offer, restricted);
  return query;
}

// The router for a plan's sends: that of this machine's table if it has costs of sends between such memories;
// else that of the costs that come with Peerway, if those include this link or another one between such
// memories.
const route::Router& Resolver::router_of_sends(route::Query& query) const {
  const route::PairClass& pair = query.requested.pair;
  if (own_table_router_->measured(Op::send, pair) || pair.remote) return *own_table_router_;
  query.costs_of = shipped_router_->nearest_measured(Op::send, pair);
  return query.costs_of ? *shipped_router_ : *own_table_router_;
}

std::shared_ptr<const route::Route> Resolver::route_send(Region& local, Remote& remote,
                                                         std::span<const NamedOffer> methods) {
  std::lock_guard lock(mutex_);
  route::Query query = query_send(local, remote, methods);
  const route::Router& router = router_of_sends(query);
  return router.route(query);
}

std::string Resolver::explain_send(Region& local, Remote& remote, std::span<const NamedOffer> methods) {
  std::lock_guard lock(mutex_);
  route::Query query = query_send(local, remote, methods);
  const route::Router& router = router_of_sends(query);
  route::Explanation explained = route::explain(router, query);
  explained.builtin = &router == shipped_router_.get();
  return route::to_json(explained);
}

const Resolved& Resolver::resolve_new(Op op, route::ShapeClass shape, Region& local, Remote& remote) {
  std::lock_guard lock(mutex_);
  auto resolved = std::make_unique<Resolved>();
  resolved->restriction = restriction_.load(std::memory_order_relaxed);
  resolved->route = own_table_router_->route(query(op, shape, local, remote, &resolved->paths));
  const route::Choice& first = resolved->route->choices().front();
  resolved->small_bytes = first.max_bytes;
  resolved->small = first.split < 0 ? resolved->paths[first.path] : nullptr;
  if (resolved->small != nullptr && resolved->small->copied_by_cpu())
    resolved->cpu_copied_bytes = first.max_bytes;
  for (const std::string& note : resolved->route->notes()) log_once(LogLevel::info, note);
  // The router gives one answer for equal questions; many remotes share it.
  auto known = std::find_if(resolved_.begin(), resolved_.end(), [&](const auto& other) {
    return other->restriction == resolved->restriction && other->route == resolved->route;
  });
  if (known == resolved_.end()) known = resolved_.insert(resolved_.end(), std::move(resolved));
  remote.routes[place(op, shape, local)].store(known->get(), std::memory_order_release);
  return **known;
}

std::string Resolver::explain(Op op, route::ShapeClass shape, Region& local, Remote& remote) {
  std::lock_guard lock(mutex_);
  return route::to_json(route::explain(*own_table_router_, query(op, shape, local, remote, nullptr)));
}

}  // namespace pw
