#include "context/resolver.h"

#include <algorithm>
#include <filesystem>

#include "base/config.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "context/machine.h"
#include "route/explain.h"
#include "route/table.h"

namespace pw {
namespace {

using Paths = std::span<const std::string>;

std::optional<route::Table> find_table(Paths known, std::string& why_none) {
  const std::string named = config("routes");
  const std::string file = named.empty() ? default_table_file() : named;
  if (named.empty() && !std::filesystem::exists(file)) return std::nullopt;  // nobody has measured yet
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

route::Rules find_rules(Paths known) {
  const std::string named = config("rules");
  const std::string file = named.empty() ? default_rules_file() : named;
  if (named.empty() && !std::filesystem::exists(file)) return {};
  return route::load_rules(file, known);  // what a user wrote is followed, or refused
}

/// Peers see only the far end, so its kind of memory decides which paths there are.
route::PairClass pair_class(Op op, const Pair& pair) {
  const auto near = route::memory_class(pair.local.kind, Handle::memfd);
  const auto far = route::memory_class(pair.remote.kind, pair.same_host ? pair.remote_handle : Handle::memfd);
  route::PairClass found;
  found.source = op == Op::put ? near : far;
  found.target = op == Op::put ? far : near;
  found.remote = !pair.same_host;
  return found;
}

}  // namespace

Resolver::Resolver(const std::vector<std::unique_ptr<Transport>>& transports, Importer& importer)
    : importer_(importer) {
  for (size_t t = 0; t < transports.size(); ++t)
    for (auto& path : transports[t]->paths()) {
      paths_.push_back(std::move(path));
      transport_of_.push_back(t);
    }
  std::string why_none;
  const std::vector<std::string> known = names();
  std::optional<route::Table> table = find_table(known, why_none);
  automatic_ = std::make_unique<route::Router>(std::move(table), find_rules(known), config("strict") == "on",
                                               why_none);
  if (const std::string only = config("paths"); !only.empty()) use(only);
}

std::vector<std::string> Resolver::names() const {
  std::vector<std::string> all;
  for (const auto& path : paths_) all.emplace_back(path->name());
  return all;
}

bool Resolver::names_path_of(size_t transport) const {
  const auto named = [&](std::string_view path) {
    const auto& table = automatic_->table();
    return std::ranges::any_of(used_patterns_, [&](const auto& rule) { return rule.names(path); }) ||
           (table && std::ranges::any_of(table->costs, [&](const auto& cost) { return cost.path == path; }));
  };
  for (size_t p = 0; p < paths_.size(); ++p)
    if (transport_of_[p] == transport && named(paths_[p]->name())) return true;
  return false;
}

bool Resolver::uses_mappings() {
  std::lock_guard lock(mutex_);
  if (used_patterns_.empty()) return true;
  return std::ranges::any_of(paths_, [&](const auto& path) {
    return path->uses_mappings() &&
           std::ranges::any_of(used_patterns_, [&](const auto& rule) { return rule.names(path->name()); });
  });
}

Path& Resolver::far_raiser(const Remote& signal) const {
  for (const auto& path : paths_)
    if (path->stores(signal)) return *path;
  std::string why;
  for (const auto& path : paths_)
    if (const std::string reason = path->why_not_stores(signal); !reason.empty())
      why += (why.empty() ? "" : "; ") + reason;
  throw Error(PW_UNSUPPORTED,
              format("peerway: a signal of rank {}, which is on another host, is only raised by "
                     "UCX or a NIC. {}",
                     signal.rank(), why));
}

uint64_t Resolver::chunk_bytes() const {
  return automatic_->table() ? automatic_->table()->staging_chunk_bytes : 0;
}

void Resolver::use(const std::string& given) {
  std::vector<route::Rule> patterns;
  if (!given.empty() && given != "route") patterns.push_back(route::use_rule(given, names()));
  std::lock_guard lock(mutex_);
  used_ = given;
  used_patterns_ = std::move(patterns);
  // One epoch a choice, however often it is made: what was resolved under it is found again, and never grows.
  auto known = std::find(choices_.begin(), choices_.end(), given);
  if (known == choices_.end()) known = choices_.insert(choices_.end(), given);
  epoch_.store(static_cast<uint64_t>(known - choices_.begin()) + 1, std::memory_order_relaxed);
}

void Resolver::classify(Region& region) {
  const std::pair kind(region.device().id(), region.allocation().handle);
  std::lock_guard lock(mutex_);
  auto known = std::find(classes_.begin(), classes_.end(), kind);
  if (known == classes_.end()) {
    if (classes_.size() == Remote::kMemoryClasses)
      throw Error(PW_UNSUPPORTED,
                  format("peerway: regions of more than {} kinds of memory in one context", classes_.size()));
    known = classes_.insert(classes_.end(), kind);
  }
  region.memory_class.store(static_cast<uint32_t>(known - classes_.begin()), std::memory_order_relaxed);
}

std::vector<PathInfo> Resolver::probe(Region& local, Remote& remote) {
  const Pair pair = facts(local, remote, importer_);
  std::vector<PathInfo> answers;
  for (const auto& path : paths_)
    answers.push_back({std::string(path->name()), path->offer(pair, local, remote)});
  return answers;
}

route::Request Resolver::request(Op op, route::ShapeClass shape, Region& local, Remote& remote,
                                 std::vector<Path*>* found) {
  const Pair pair = facts(local, remote, importer_);
  route::Request request;
  request.where.op = op;
  request.where.shape = shape;
  request.where.pair = pair_class(op, pair);
  if (pair.same_host) request.where.pair.link = worker(local, remote).link(remote.key.exported);
  for (const auto& path : paths_) {
    const std::string name(path->name());
    Offer offer = path->offer(pair, local, remote);
    const bool asked_for =
        used_patterns_.empty() || std::any_of(used_patterns_.begin(), used_patterns_.end(),
                                              [&](const route::Rule& rule) { return rule.names(name); });
    if (offer.available && asked_for) {
      request.available.push_back(name);
      if (found != nullptr) found->push_back(path.get());
    } else {
      request.unavailable.push_back(
          {name, offer.available ? format("only {} may be used (pw_context_use or PEERWAY_PATHS)", used_)
                                 : offer.why_not});
    }
  }
  return request;
}

const Resolved& Resolver::decide(Op op, route::ShapeClass shape, Region& local, Remote& remote, size_t at) {
  std::lock_guard lock(mutex_);
  auto resolved = std::make_unique<Resolved>();
  resolved->epoch = epoch_.load(std::memory_order_relaxed);
  resolved->route = automatic_->route(request(op, shape, local, remote, &resolved->paths));
  for (const std::string& note : resolved->route->notes()) log_once(LogLevel::info, note);
  // The router gives one answer for equal questions; many remotes share it.
  auto known = std::find_if(made_.begin(), made_.end(), [&](const auto& other) {
    return other->epoch == resolved->epoch && other->route == resolved->route;
  });
  if (known == made_.end()) known = made_.insert(made_.end(), std::move(resolved));
  remote.routes[at].store(known->get(), std::memory_order_release);
  return **known;
}

std::string Resolver::explain(Op op, route::ShapeClass shape, Region& local, Remote& remote) {
  std::lock_guard lock(mutex_);
  return route::to_json(route::explain(*automatic_, request(op, shape, local, remote, nullptr)));
}

}  // namespace pw
