// The transport for one version of UCX: component and memory domain (component.cpp), interface
// (interface.cpp), endpoint (endpoint.cpp, pending.cpp). These files are compiled once for each version
// (uct_abi.h).
#pragma once

#include <deque>
#include <list>
#include <memory>

#include "uct/domain.h"
#include "uct/idle.h"
#include "uct/inbox.h"
#include "uct/memory.h"
#include "ucx/uct_abi.h"

namespace pw::uct::PW_UCX {

inline constexpr char kName[] = "peerway";

/// The functions of the UCX in use. Set once, before the transport is registered.
extern Ucx ucx;

struct MemoryDomain {
  uct_md_t md;  ///< must be first: UCX's pointer points to it
  Domain domain;

  MemoryDomain(uct_component_t* of, const Settings& settings);
};

struct Connection;

struct Interface {
  uct_base_iface_t base;  ///< must be first
  Domain& domain;
  Inbox inbox;
  EndedOperations ended;
  std::list<Connection*> connections;
  std::list<Connection*> waiting;  ///< connections with requests that wait for room
  unsigned failures_seen;
  unsigned turns = 0;
  uint64_t probed_ns = 0;
  IdlePolls idle;

  explicit Interface(Domain& domain_) : domain(domain_), inbox(domain_.endpoint()) {}
  static Interface& of(uct_iface_t* iface) { return *reinterpret_cast<Interface*>(iface); }
};

struct Connection {
  uct_base_ep_t base;  ///< must be first
  Interface* interface;
  Channel* channel;
  std::deque<uct_pending_req_t*> pending;
  bool dispatching = false;
  bool reported = false;

  static Connection& of(uct_ep_t* ep) { return *reinterpret_cast<Connection*>(ep); }
  [[nodiscard]] Peer& peer() const { return channel->peer(); }
  /// Whether new requests must queue behind requests that already wait.
  [[nodiscard]] bool must_queue() const { return !pending.empty() && !dispatching; }
};

/// Fill in the tables of functions that UCX calls, once.
void fill_endpoint_ops(uct_iface_ops_t& ops);
ucs_status_t open_interface(uct_md_t* md, uct_worker_t* worker, const uct_iface_params_t* params,
                            const uct_iface_config_t* config, uct_iface_t** out);
/// Requests that wait for room: add one, remove them all, and try those of all endpoints again.
ucs_status_t pending_add(uct_ep_t* ep, uct_pending_req_t* request, unsigned flags);
void pending_purge(uct_ep_t* ep, uct_pending_purge_callback_t callback, void* arg);
unsigned dispatch_pending(Interface& interface);

ucs_status_t unsupported();
template <typename Entry>
Entry unsupported_as() {
  return reinterpret_cast<Entry>(&unsupported);
}

/// Returns UCX's status for an operation that was, or was not, started.
ucs_status_t started(pw_nic_status status);

}  // namespace pw::uct::PW_UCX
