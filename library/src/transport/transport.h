// A transport: a means of reaching the memory of other ranks, by mappings, bounce buffers or a network. It is
// made with a context, describes itself to the other ranks, adds to keys what they need, and offers paths.
// Nothing above knows a transport by its type or name; transports.cpp lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/setting.h"
#include "transport/known.h"
#include "transport/path.h"

namespace pw {
namespace settings {

extern const ChoiceSetting<bool> strict;

}  // namespace settings

/// What a rank assumes about all ranks when it opens a transport. If that proves wrong, it opens the
/// transport again.
struct TransportAssumptions {
  bool several_hosts = false;
  bool wanted = false;  ///< some rank wants this transport
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// Returns its paths, in the order of preference if nothing was measured. Called once, before all else.
  virtual std::vector<std::unique_ptr<Path>> paths() = 0;

  /// Whether this rank wants the transport on all ranks. `named`: its settings or route table name one of the
  /// paths.
  [[nodiscard]] virtual bool wanted(bool /*named*/) const { return false; }

  /// Opens the transport if it is wanted, and returns the data to publish to the other ranks, even if it
  /// stayed closed. Called again if the ranks disagreed; what is open then stays open. Throws Error if this
  /// rank was told to use it and cannot: then no rank gets its context.
  virtual Bytes open(const TransportAssumptions&) { return {}; }

  /// Receives the data that open() returned at each rank, indexed by rank.
  virtual void receive_facts(const std::vector<Bytes>& /*ranks*/) {}

  /// Returns the coordinates of this rank's node in the topology of the transport's network, one for each
  /// dimension; none if the network has no topology, or is not open.
  [[nodiscard]] virtual std::vector<uint32_t> coordinates() const { return {}; }

  /// Add to a key what peers need to reach the region, or the words of this rank's signals.
  virtual void attach(Key&, Region&) {}
  virtual void attach_signals(Key&) {}
};

/// Returns the path families of all transports of this build.
std::vector<PathFamily> path_families();

/// Makes the transports of this build, in the order of preference if nothing was measured.
std::vector<std::unique_ptr<Transport>> make_transports(const Surroundings& surroundings);

}  // namespace pw
