// A path is one way bytes can move between two regions. The operations layer asks each path whether it can serve a
// pair (`probe`, a pure function of facts), looks up which is cheapest, and hands it the transfer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/shape.h"

namespace pw {

class Region;
class Remote;
struct Raise;

enum class Op : uint8_t { put, get };

/// What is known about a pair of memories before any byte moves. `probe` sees nothing else.
struct Pair {
  DeviceId local;
  DeviceId remote;
  Handle local_handle = Handle::none;
  Handle remote_handle = Handle::none;
  std::string local_why_none;   ///< why the local allocation cannot be exported
  std::string remote_why_none;
  bool same_host = true;
  bool same_process = false;
  bool cpu_maps_local = false;   ///< the processor can store into the local device memory (GDRCopy, dma-buf)
  bool cpu_maps_remote = false;
  std::string why_no_cpu_map;
  bool reachable = true;         ///< the local device's queues can reach the remote memory
  std::string why_not_reachable;
  bool ucx_key = false;          ///< the remote region came with a UCX key
};

struct Offer {
  bool available = false;
  std::string why_not;  ///< what stands in the way and what to do about it; empty when available
};

/// One put or get, checked and joined: everything a path needs.
struct Transfer {
  Op op = Op::put;
  Remote *remote = nullptr;
  const Region *local = nullptr;
  uint64_t remote_offset = 0;  ///< of the first byte, in the remote region
  uint64_t local_offset = 0;
  Layout layout;  ///< for put: to = remote side; for get: to = local side
};

class Path {
 public:
  virtual ~Path() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  ///< "peer/copy"
  [[nodiscard]] virtual Offer probe(const Pair &pair) const = 0;
  /// Starts the transfer. When it returns the transfer may still be under way; flush() completes it. With `raise`, the
  /// signal is raised after the data is visible at the target.
  virtual pw_status start(const Transfer &transfer, const Raise *raise) = 0;
  /// Completes everything started towards `rank` through this path.
  virtual pw_status flush(int rank, uint64_t deadline_ns) = 0;
};

}  // namespace pw
