// Finds the paths for a pair of memories: gathers the facts, asks every path for its offer, and lets the
// router decide. The remote keeps the answers, so that an operation finds its route with one load.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "route/router.h"
#include "transport/transport.h"

namespace pw {

/// The routes of one case, with pointers to their paths. It does not change once it is published.
struct Resolved {
  uint64_t restriction;  ///< the number of the use() that applied when this was decided; after another use()
                         ///< it is decided again
  uint64_t small_bytes = 0;       ///< up to this size the path is `small`, which needs no lookup in the route
  uint64_t cpu_copied_bytes = 0;  ///< the same if that path copies by the CPU (Path::copied_by_cpu), else 0
  Path* small = nullptr;          ///< null if small transfers are split
  std::shared_ptr<const route::Route> route;
  std::vector<Path*> paths;  ///< in the order of the route's indices

  /// Returns the path for a transfer of `bytes` bytes; null if it is split.
  [[nodiscard]] Path* path_of(uint64_t bytes) const noexcept {
    if (bytes <= small_bytes) return small;
    const route::Choice& choice = route->lookup(bytes);
    return choice.split < 0 ? paths[choice.path] : nullptr;
  }
};

/// One path's offer for one pair, with the path's name, to be shown to people.
struct NamedOffer {
  std::string name;
  Offer offer;
};

class Resolver {
 public:
  Resolver(const std::vector<std::unique_ptr<Transport>>& transports, Importer& importer);

  [[nodiscard]] const std::vector<std::unique_ptr<Path>>& paths() const { return paths_; }

  /// Restricts later decisions to `names` (comma-separated; empty: all). Throws Error for an unknown name.
  void use(const std::string& names);

  /// Returns the route for an operation between the two. Throws Error(PW_UNSUPPORTED) with every path's
  /// reason.
  const Resolved& resolve(Op op, route::ShapeClass shape, Region& local, Remote& remote) {
    const Resolved* known = find(op, shape, local, remote);
    return known != nullptr ? *known : resolve_new(op, shape, local, remote);
  }
  /// Returns the route if it was resolved before, else null.
  [[nodiscard]] const Resolved* find(Op op, route::ShapeClass shape, const Region& local,
                                     const Remote& remote) const noexcept {
    const Resolved* known = remote.routes[place(op, shape, local)].load(std::memory_order_acquire);
    return known != nullptr && known->restriction == restriction_.load(std::memory_order_relaxed) ? known
                                                                                                  : nullptr;
  }

  /// Returns the route of a plan's sends from `local` to `remote`, chosen among those of `methods` that are
  /// available. If the table has no costs for them, the shipped costs decide (route/defaults.json).
  std::shared_ptr<const route::Route> route_send(Region& local, Remote& remote,
                                                 std::span<const NamedOffer> methods);
  std::string explain_send(Region& local, Remote& remote, std::span<const NamedOffer> methods);

  /// Returns every path's offer, in order of preference.
  std::vector<NamedOffer> offers(Region& local, Remote& remote);

  /// Sets the number of the region's class of memory.
  void classify(Region& region);

  /// Returns the decision with its explanation, as JSON text (route/explain.h).
  std::string explain(Op op, route::ShapeClass shape, Region& local, Remote& remote);

  /// Returns whether the paths in use include one over mapped memory.
  [[nodiscard]] bool uses_mappings();

  /// Returns the name of the path whose transfers are copies by the CPU (Path::copied_by_cpu); empty if there
  /// is none.
  [[nodiscard]] std::string_view cpu_copy_path() const;

  /// Returns whether the settings or the route table name a path of that transport.
  [[nodiscard]] bool names_path_of(size_t transport) const;

  /// Returns the path that notifies signals on other hosts. Throws Error(PW_UNSUPPORTED) with every path's
  /// reason.
  Path& far_notifier(const Remote& signal) const;

  /// Returns the chunk size that the table measured; 0 if there is none.
  [[nodiscard]] uint64_t chunk_bytes() const;

 private:
  /// The index at which a remote keeps the answer.
  static size_t place(Op op, route::ShapeClass shape, const Region& local) noexcept {
    return (local.memory_class.load(std::memory_order_relaxed) * Remote::kOps + static_cast<uint32_t>(op)) *
               Remote::kShapeClasses +
           static_cast<uint32_t>(shape);
  }
  const Resolved& resolve_new(Op op, route::ShapeClass shape, Region& local, Remote& remote);
  route::Query query(Op op, route::ShapeClass shape, Region& local, Remote& remote,
                     std::vector<Path*>* available);
  route::Query query_send(Region& local, Remote& remote, std::span<const NamedOffer> methods);
  const route::Router& router_of_sends(route::Query& query) const;
  void add(route::Query& query, std::string name, Offer offer, bool restricted);
  [[nodiscard]] bool restricted_among(std::span<const std::string> names) const;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] KnownPaths known_paths() const;  ///< includes the methods of plans

  std::vector<std::unique_ptr<Path>> paths_;
  std::vector<size_t> transport_of_;  ///< for each path: the index of its transport
  Importer& importer_;
  std::unique_ptr<route::Router> own_table_router_;  ///< decides by this machine's table and the rules
  std::unique_ptr<route::Router> shipped_router_;    ///< decides by the costs that come with Peerway
  std::string allowed_names_;                        ///< the argument of the last use()
  std::vector<route::Rule> allowed_patterns_;
  std::vector<std::string> restrictions_{""};  ///< all arguments of use() so far
  std::atomic<uint64_t> restriction_{1};       ///< number of the last one: its index, plus 1
  std::mutex mutex_;
  std::vector<std::unique_ptr<Resolved>> resolved_;
  std::vector<std::pair<DeviceId, Handle>> classes_;
};

/// Gathers the facts about a pair that are the same for every path.
Pair facts(Region& local, Remote& remote, Importer& importer);

}  // namespace pw
