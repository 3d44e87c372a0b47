// The interface: a UCX worker's access to the NIC. It has an address, attributes, and progress, which reports
// ended operations, delivers messages, tries waiting operations again and reports failed peers.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "ucx/transport.h"

namespace pw::uct::PW_UCX {
namespace {

// Calls of progress between polls for new senders, and ns between probes of peers.
constexpr unsigned kLookEvery = 64;
constexpr uint64_t kProbeEvery = 250'000'000;

std::string address_of(Interface& interface) {
  return uct::pack({interface.domain.endpoint().facts(), interface.inbox.key()}, job_secrets().addresses);
}

// UCX ends the process if an address is longer than its older format of addresses allows.
void check_room(size_t bytes) {
  constexpr size_t kOlderForm = 63;
  const char* form = std::getenv("UCX_ADDRESS_VERSION");
  if (bytes > kOlderForm && (form == nullptr || std::strcmp(form, "v2") != 0))
    throw Error(PW_UNAVAILABLE, format("the addresses of this NIC have {} bytes, UCX has room for {}; set "
                                       "UCX_ADDRESS_VERSION=v2, as peerway mpirun does",
                                       bytes, kOlderForm));
}

// ---- attributes ----

ucs_status_t query(uct_iface_t* iface, uct_iface_attr_t* attributes) {
  Interface& interface = Interface::of(iface);
  const pw_nic_info& info = interface.domain.info();
  const size_t message = interface.domain.message_bytes();
  const size_t copied = std::min<size_t>(interface.domain.endpoint().copied(), message);
  const size_t largest = std::min<uint64_t>(info.largest, 1u << 30);
  ucx.uct_base_iface_query(&interface.base, attributes);
  attributes->cap.flags = UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_PUT_SHORT |
                          UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_BCOPY |
                          UCT_IFACE_FLAG_GET_ZCOPY | UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                          UCT_IFACE_FLAG_EP_CHECK | UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_CB_SYNC |
                          UCT_IFACE_FLAG_INTER_NODE;
  if (copied > sizeof(uint64_t)) attributes->cap.flags |= UCT_IFACE_FLAG_AM_SHORT;
  attributes->cap.put.max_short = copied;
  attributes->cap.put.max_bcopy = attributes->cap.get.max_bcopy = message;
  attributes->cap.put.max_zcopy = attributes->cap.get.max_zcopy = largest;
  attributes->cap.put.max_iov = attributes->cap.get.max_iov = 1;
  attributes->cap.put.opt_zcopy_align = attributes->cap.get.opt_zcopy_align = 1;
  attributes->cap.put.align_mtu = attributes->cap.get.align_mtu = 1;
  attributes->cap.am.max_short = copied;
  attributes->cap.am.max_bcopy = message;
  attributes->cap.am.opt_zcopy_align = attributes->cap.am.align_mtu = 1;
  attributes->cap.am.max_iov = 16;
  attributes->device_addr_len = sizeof(uint64_t);
  attributes->iface_addr_len = address_of(interface).size();
  attributes->overhead = 0.2e-6;
  attributes->bandwidth = {info.bytes_per_s > 0 ? info.bytes_per_s : 1e9, 0};
  attributes->latency = {info.latency_ns > 0 ? info.latency_ns * 1e-9 : 1e-6, 0};
  attributes->priority = 0;
  return UCS_OK;
}

ucs_status_t get_address(uct_iface_t* iface, void* out) {
  const std::string address = address_of(Interface::of(iface));
  std::memcpy(out, address.data(), address.size());
  return UCS_OK;
}

// The same for all endpoints of a NIC: a hash of its name.
uint64_t device_address(Interface& interface) {
  uint64_t address = 0;
  for (const char c : interface.domain.endpoint().plugin().name())
    address = address * 131 + static_cast<uint8_t>(c);
  return address;
}

ucs_status_t get_device_address(uct_iface_t* iface, void* out) {
  const uint64_t address = device_address(Interface::of(iface));
  std::memcpy(out, &address, sizeof address);
  return UCS_OK;
}

int is_reachable(uct_iface_t* iface, const void* device, const void*) {
  const uint64_t own = device_address(Interface::of(iface));
  return std::memcmp(device, &own, sizeof own) == 0 ? 1 : 0;
}

// ---- progress ----

// UCX's callback may start and end operations, so it is called without the lock.
unsigned tell_ended(Interface& interface) {
  Operation* ended = nullptr;
  {
    const std::scoped_lock held(interface.domain.lock);
    ended = interface.ended.take();
  }
  unsigned reported = 0;
  for (Operation* operation = ended; operation != nullptr; ++reported) {
    Operation* next = operation->next;
    const bool good = operation->status == PW_NIC_OK;
    if (good && operation->unpack != nullptr)
      operation->unpack(operation->unpack_arg, operation->bounce.data, operation->bytes);
    auto* completion = static_cast<uct_completion_t*>(operation->completion);
    {
      const std::scoped_lock held(interface.domain.lock);
      interface.domain.recycle(operation);
    }
    if (completion != nullptr) {
      if (!good && completion->status == UCS_OK) completion->status = UCS_ERR_CONNECTION_RESET;
      if (--completion->count == 0) completion->func(completion);
    }
    operation = next;
  }
  return reported;
}

void update_senders(Interface& interface) {
  interface.inbox.update_senders([&](uint32_t number) {
    const std::scoped_lock held(interface.domain.lock);
    interface.domain.departed(number);
  });
}

// A peer that leaves in good order says so before its memory is gone, so the inbox is read first. UCX's
// handler may destroy connections, so each search starts from the beginning.
void report_failures(Interface& interface) {
  const unsigned failures = interface.domain.failures();
  if (failures == interface.failures_seen) return;
  update_senders(interface);
  const auto next = [&] {
    return std::ranges::find_if(interface.connections, [](const Connection* connection) {
      return connection->peer().failed() && !connection->peer().departed && !connection->reported;
    });
  };
  for (auto failed = next(); failed != interface.connections.end(); failed = next()) {
    (*failed)->reported = true;
    const Peer& peer = (*failed)->peer();
    log(LogLevel::warning,
        format("the connection to endpoint {} failed: {}", peer.facts().number, peer.why_failed()));
    if (interface.base.err_handler != nullptr)
      interface.base.err_handler(interface.base.err_handler_arg, &(*failed)->base.super,
                                 UCS_ERR_CONNECTION_RESET);
  }
  interface.failures_seen = failures;
}

void check_peers(Interface& interface) {
  update_senders(interface);
  if (coarse_now_ns() - interface.probed_ns < kProbeEvery) return;
  interface.probed_ns = coarse_now_ns();
  const std::scoped_lock held(interface.domain.lock);
  interface.domain.probe_peers();
}

unsigned progress(uct_iface_t* iface) {
  Interface& interface = Interface::of(iface);
  unsigned happened = interface.domain.progress();
  if (interface.ended.any()) happened += tell_ended(interface);
  happened += interface.inbox.poll([&](uint8_t id, void* data, size_t bytes) {
    const uct_am_handler_t& handler = interface.base.am[id % UCT_AM_ID_MAX];
    handler.cb(handler.arg, data, bytes, 0);
  });
  if (!interface.waiting.empty()) happened += dispatch_pending(interface);
  if (interface.turns++ % kLookEvery == 0) check_peers(interface);
  report_failures(interface);
  interface.idle.polled(happened);
  return happened;
}

ucs_status_t flush(uct_iface_t* iface, unsigned, uct_completion_t* completion) {
  Interface& interface = Interface::of(iface);
  if (completion != nullptr) return UCS_ERR_UNSUPPORTED;
  if (!interface.waiting.empty()) return UCS_INPROGRESS;
  const std::scoped_lock held(interface.domain.lock);
  return interface.domain.settle() && !interface.ended.any() ? UCS_OK : UCS_INPROGRESS;
}

ucs_status_t fence(uct_iface_t* iface, unsigned) {
  Interface& interface = Interface::of(iface);
  const std::scoped_lock held(interface.domain.lock);
  interface.domain.fence();
  return UCS_OK;
}

// ---- create and destroy ----

void close(uct_iface_t* iface) {
  Interface& interface = Interface::of(iface);
  ucx.uct_base_iface_progress_disable(iface, UCT_PROGRESS_SEND_RECV);
  ucx.ucs_class_call_cleanup_chain(ucx.uct_base_iface_t_class, &interface.base, -1);
  SpinLock& lock = interface.domain.lock;
  const std::scoped_lock held(lock);
  interface.domain.forget(interface.ended);
  delete &interface;
}

uct_iface_ops_t make_ops() {
  uct_iface_ops_t ops;
  // Entries that are not filled in below answer "unsupported".
  static_assert(sizeof ops % sizeof(uct_unused) == 0);
  std::fill_n(reinterpret_cast<uct_unused*>(&ops), sizeof ops / sizeof(uct_unused),
              unsupported_as<uct_unused>());
  fill_endpoint_ops(ops);
  ops.iface_flush = flush;
  ops.iface_fence = fence;
  ops.iface_progress_enable = ucx.uct_base_iface_progress_enable;
  ops.iface_progress_disable = ucx.uct_base_iface_progress_disable;
  ops.iface_progress = progress;
  ops.iface_close = close;
  ops.iface_query = query;
  ops.iface_get_device_address = get_device_address;
  ops.iface_get_address = get_address;
  ops.iface_is_reachable = is_reachable;
  return ops;
}

#if PW_UCX_SINCE(20)
int is_reachable_v2(uct_iface_t* iface, const uct_iface_is_reachable_params_t* params) {
  return (params->field_mask & UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR) != 0
             ? is_reachable(iface, params->device_addr, nullptr)
             : 0;
}
int is_connected(uct_ep_t*, const uct_ep_is_connected_params_t* params) {
  if ((params->field_mask & 2u) == 0) return 0;
  return 1;
}
#endif

uct_iface_internal_ops_t make_internal_ops() {
  uct_iface_internal_ops_t ops;
  std::fill_n(reinterpret_cast<uct_unused*>(&ops), sizeof ops / sizeof(uct_unused),
              unsupported_as<uct_unused>());
  ops.iface_estimate_perf = ucx.uct_base_iface_estimate_perf;
  ops.iface_vfs_refresh = [](uct_iface_t*) {};
#if PW_UCX_SINCE(20)
  ops.iface_query_v2 = ucx.uct_iface_base_query_v2;
  ops.iface_is_reachable_v2 = is_reachable_v2;
  ops.ep_is_connected = is_connected;
#endif
  return ops;
}

}  // namespace

ucs_status_t open_interface(uct_md_t* md, uct_worker_t* worker, const uct_iface_params_t* params,
                            const uct_iface_config_t* config, uct_iface_t** out) {
  static uct_iface_ops_t ops = make_ops();
  static uct_iface_internal_ops_t internal_ops = make_internal_ops();
  Domain& domain = reinterpret_cast<MemoryDomain*>(md)->domain;
  std::unique_ptr<Interface> interface;
  try {
    const std::scoped_lock held(domain.lock);
    interface = std::make_unique<Interface>(domain);
    check_room(address_of(*interface).size());
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
    const std::scoped_lock held(domain.lock);
    interface.reset();
    return UCS_ERR_IO_ERROR;
  }
  interface->failures_seen = domain.failures();
  int initialised = 1;
  const ucs_status_t status =
      ucx.uct_base_iface_t_init(&interface->base, ucx.uct_base_iface_t_class, &initialised, &ops,
                                &internal_ops, md, worker, params, config);
  if (status != UCS_OK) {
    ucx.ucs_class_call_cleanup_chain(ucx.uct_base_iface_t_class, &interface->base, initialised);
    const std::scoped_lock held(domain.lock);
    interface.reset();
    return status;
  }
  *out = &interface.release()->base.super;
  return UCS_OK;
}

}  // namespace pw::uct::PW_UCX
