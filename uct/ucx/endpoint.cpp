// The endpoint: puts, gets and messages to one interface, and the requests that wait for room.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/log.h"
#include "base/status.h"
#include "ucx/transport.h"

namespace pw::uct::PW_UCX {
namespace {

using Held = std::scoped_lock<SpinLock>;

// The largest message that is assembled on the stack.
constexpr size_t kShortBytes = kMessageBytes;

Domain& domain_of(const Connection& connection) { return connection.interface->domain; }

RemoteKey& key_of(uct_rkey_t key) { return *reinterpret_cast<RemoteKey*>(key); }

// Why a put or get cannot be started now; UCS_OK: it can.
ucs_status_t barred(Connection& connection) {
  if (connection.peer().failed()) return UCS_ERR_CONNECTION_RESET;
  if (connection.must_queue() || connection.peer().held_back()) return UCS_ERR_NO_RESOURCE;
  return UCS_OK;
}

// ---- puts and gets ----

ucs_status_t put_short(uct_ep_t* ep, const void* data, unsigned bytes, uint64_t address, uct_rkey_t key) {
  Connection& connection = Connection::of(ep);
  const Held held(domain_of(connection).lock);
  if (const ucs_status_t status = barred(connection); status != UCS_OK) return status;
  if (bytes == 0) return UCS_OK;
  auto* remote = key_of(key).reach(domain_of(connection), connection.peer(), address, bytes);
  if (remote == nullptr) return UCS_ERR_INVALID_ADDR;
  return started(
      connection.peer().put(*remote, key_of(key).offset_of(address), data, nullptr, bytes, nullptr));
}

ssize_t put_bcopy(uct_ep_t* ep, uct_pack_callback_t pack, void* arg, uint64_t address, uct_rkey_t key) {
  Connection& connection = Connection::of(ep);
  Domain& domain = domain_of(connection);
  const Held held(domain.lock);
  if (const ucs_status_t status = barred(connection); status != UCS_OK) return status;
  Operation* operation = domain.operation(connection.peer());
  if (!domain.lend(*operation)) return UCS_ERR_NO_RESOURCE;
  const size_t bytes = pack(operation->bounce.data, arg);
  auto* remote = key_of(key).reach(domain, connection.peer(), address, bytes);
  const ucs_status_t status =
      remote == nullptr
          ? UCS_ERR_INVALID_ADDR
          : started(connection.peer().put(*remote, key_of(key).offset_of(address), operation->bounce.data,
                                          operation->bounce.memory, bytes, operation));
  if (status == UCS_OK) return static_cast<ssize_t>(bytes);
  domain.recycle(operation);
  return status;
}

// Complete when the bytes are in place at the peer: UCX's protocols tell the peer so next.
ucs_status_t put_zcopy(uct_ep_t* ep, const uct_iov_t* iov, size_t count, uint64_t address, uct_rkey_t key,
                       uct_completion_t* completion) {
  Connection& connection = Connection::of(ep);
  Domain& domain = domain_of(connection);
  const Held held(domain.lock);
  if (const ucs_status_t status = barred(connection); status != UCS_OK) return status;
  const size_t bytes = count == 0 ? 0 : iov[0].length * iov[0].count;
  if (bytes == 0) return UCS_OK;
  auto* remote = key_of(key).reach(domain, connection.peer(), address, bytes);
  if (remote == nullptr) return UCS_ERR_INVALID_ADDR;
  nic::Memory* memory = static_cast<RegisteredMemory*>(iov[0].memh)->memory.get();
  const ucs_status_t status = started(
      connection.peer().put(*remote, key_of(key).offset_of(address), iov[0].buffer, memory, bytes, nullptr));
  if (status != UCS_OK) return status;
  Operation* operation = domain.operation(connection.peer());
  operation->teller = &connection.interface->ended;
  operation->completion = completion;
  connection.peer().settle(operation);
  return UCS_INPROGRESS;
}

ucs_status_t get_bcopy(uct_ep_t* ep, uct_unpack_callback_t unpack, void* arg, size_t bytes, uint64_t address,
                       uct_rkey_t key, uct_completion_t* completion) {
  Connection& connection = Connection::of(ep);
  Domain& domain = domain_of(connection);
  const Held held(domain.lock);
  if (const ucs_status_t status = barred(connection); status != UCS_OK) return status;
  auto* remote = key_of(key).reach(domain, connection.peer(), address, bytes);
  if (remote == nullptr) return UCS_ERR_INVALID_ADDR;
  Operation* operation = domain.operation(connection.peer());
  if (!domain.lend(*operation)) return UCS_ERR_NO_RESOURCE;
  operation->teller = &connection.interface->ended;
  operation->completion = completion;
  operation->unpack = unpack;
  operation->unpack_arg = arg;
  operation->bytes = bytes;
  const ucs_status_t status =
      started(connection.peer().get(*remote, key_of(key).offset_of(address), operation->bounce.data,
                                    *operation->bounce.memory, bytes, *operation));
  if (status == UCS_OK) return UCS_INPROGRESS;
  domain.recycle(operation);
  return status;
}

ucs_status_t get_zcopy(uct_ep_t* ep, const uct_iov_t* iov, size_t count, uint64_t address, uct_rkey_t key,
                       uct_completion_t* completion) {
  Connection& connection = Connection::of(ep);
  Domain& domain = domain_of(connection);
  const Held held(domain.lock);
  if (const ucs_status_t status = barred(connection); status != UCS_OK) return status;
  const size_t bytes = count == 0 ? 0 : iov[0].length * iov[0].count;
  if (bytes == 0) return UCS_OK;
  auto* remote = key_of(key).reach(domain, connection.peer(), address, bytes);
  if (remote == nullptr) return UCS_ERR_INVALID_ADDR;
  Operation* operation = domain.operation(connection.peer());
  operation->teller = &connection.interface->ended;
  operation->completion = completion;
  nic::Memory& memory = *static_cast<RegisteredMemory*>(iov[0].memh)->memory;
  const ucs_status_t status = started(connection.peer().get(*remote, key_of(key).offset_of(address),
                                                            iov[0].buffer, memory, bytes, *operation));
  if (status == UCS_OK) return UCS_INPROGRESS;
  domain.recycle(operation);
  return status;
}

// ---- messages ----

// Why a message cannot be sent now; UCS_OK: it can.
ucs_status_t no_room(Connection& connection) {
  if (connection.peer().failed()) return UCS_ERR_CONNECTION_RESET;
  return !connection.must_queue() && connection.channel->room() ? UCS_OK : UCS_ERR_NO_RESOURCE;
}

ucs_status_t am_short(uct_ep_t* ep, uint8_t id, uint64_t header, const void* data, unsigned bytes) {
  Connection& connection = Connection::of(ep);
  const Held held(domain_of(connection).lock);
  if (const ucs_status_t status = no_room(connection); status != UCS_OK) return status;
  alignas(8) std::byte message[kShortBytes];
  std::memcpy(message, &header, sizeof header);
  if (bytes > 0) std::memcpy(message + sizeof header, data, bytes);
  return started(connection.channel->send(id, message, sizeof header + bytes, nullptr, nullptr));
}

ucs_status_t am_short_iov(uct_ep_t* ep, uint8_t id, const uct_iov_t* iov, size_t count) {
  Connection& connection = Connection::of(ep);
  const Held held(domain_of(connection).lock);
  if (const ucs_status_t status = no_room(connection); status != UCS_OK) return status;
  alignas(8) std::byte message[kShortBytes];
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t length = iov[i].length * iov[i].count;
    if (bytes + length > sizeof message) return UCS_ERR_INVALID_PARAM;
    if (length > 0) std::memcpy(message + bytes, iov[i].buffer, length);
    bytes += length;
  }
  return started(connection.channel->send(id, message, bytes, nullptr, nullptr));
}

ssize_t am_bcopy(uct_ep_t* ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned) {
  Connection& connection = Connection::of(ep);
  Domain& domain = domain_of(connection);
  const Held held(domain.lock);
  if (const ucs_status_t status = no_room(connection); status != UCS_OK) return status;
  Operation* operation = domain.operation(connection.peer());
  if (!domain.lend(*operation)) return UCS_ERR_NO_RESOURCE;
  const size_t bytes = pack(operation->bounce.data, arg);
  const bool copied = bytes <= domain.endpoint().copied();
  const ucs_status_t status =
      started(copied ? connection.channel->send(id, operation->bounce.data, bytes, nullptr, nullptr)
                     : connection.channel->send(id, operation->bounce.data, bytes, operation->bounce.memory,
                                                operation));
  if (copied || status != UCS_OK) domain.recycle(operation);
  return status == UCS_OK ? static_cast<ssize_t>(bytes) : status;
}

// ---- waiting requests ----

// UCX tries again at once when it hears "busy", so that must mean that there is room now.
ucs_status_t pending_add(uct_ep_t* ep, uct_pending_req_t* request, unsigned) {
  Connection& connection = Connection::of(ep);
  {
    Domain& domain = domain_of(connection);
    const Held held(domain.lock);
    const bool room =
        connection.peer().failed() || (connection.pending.empty() && !domain.is_crowded() &&
                                       !connection.peer().held_back() && connection.channel->room());
    if (room) return UCS_ERR_BUSY;
  }
  if (connection.pending.empty()) connection.interface->waiting.push_back(&connection);
  connection.pending.push_back(request);
  return UCS_OK;
}

void pending_purge(uct_ep_t* ep, uct_pending_purge_callback_t callback, void* arg) {
  Connection& connection = Connection::of(ep);
  if (connection.pending.empty()) return;
  std::erase(connection.interface->waiting, &connection);
  std::deque<uct_pending_req_t*> requests;
  requests.swap(connection.pending);
  for (uct_pending_req_t* request : requests) callback(request, arg);
}

// ---- order and arrival ----

// A get that the card has ended is not over for UCX before the interface has told so, and unpacked it: the
// domain's thread may have heard of it meanwhile.
ucs_status_t flush(uct_ep_t* ep, unsigned, uct_completion_t* completion) {
  Connection& connection = Connection::of(ep);
  if (connection.must_queue()) return UCS_ERR_NO_RESOURCE;
  Domain& domain = domain_of(connection);
  const Held held(domain.lock);
  const bool quiet = connection.peer().quiet();
  if (quiet && connection.interface->ended.first == nullptr) return UCS_OK;
  Operation* operation = nullptr;
  if (completion != nullptr) {
    operation = domain.operation(connection.peer());
    operation->teller = &connection.interface->ended;
    operation->completion = completion;
  }
  if (!quiet)
    connection.peer().settle(operation);
  else if (operation != nullptr)
    domain.tell(operation);
  return UCS_INPROGRESS;
}

ucs_status_t fence(uct_ep_t* ep, unsigned) {
  Connection& connection = Connection::of(ep);
  const Held held(domain_of(connection).lock);
  connection.peer().fence();
  return UCS_OK;
}

ucs_status_t check(uct_ep_t* ep, unsigned, uct_completion_t*) {
  Connection& connection = Connection::of(ep);
  const Held held(domain_of(connection).lock);
  if (connection.peer().failed()) return UCS_ERR_CONNECTION_RESET;
  connection.channel->feel();
  return UCS_OK;
}

// ---- life ----

ucs_status_t create(const uct_ep_params_t* params, uct_ep_t** out) {
  constexpr uint64_t kNeeded = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_IFACE_ADDR;
  if ((params->field_mask & kNeeded) != kNeeded) return UCS_ERR_INVALID_PARAM;
  Interface& interface = Interface::of(params->iface);
  auto connection = std::make_unique<Connection>();
  connection->interface = &interface;
  try {
    const Address address = unpack(params->iface_addr);
    const Held held(interface.domain.lock);
    connection->channel = &interface.domain.channel(address);
    ++connection->peer().channels;
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
    return UCS_ERR_UNREACHABLE;
  }
  int initialised = 1;
  const ucs_status_t status =
      ucx.uct_base_ep_t_init(&connection->base, ucx.uct_base_ep_t_class, &initialised, &interface.base);
  if (status != UCS_OK) return status;
  interface.connections.push_back(connection.get());
  *out = &connection.release()->base.super;
  return UCS_OK;
}

void destroy(uct_ep_t* ep) {
  const std::unique_ptr<Connection> connection(&Connection::of(ep));
  Interface& interface = *connection->interface;
  std::erase(interface.waiting, connection.get());
  std::erase(interface.connections, connection.get());
  ucx.ucs_class_call_cleanup_chain(ucx.uct_base_ep_t_class, &connection->base, -1);
  const Held held(interface.domain.lock);
  --connection->peer().channels;
}

}  // namespace

// A request that finds no room stays first in its queue. Its callback may purge or destroy connections, so
// the list is walked by count.
unsigned dispatch_pending(Interface& interface) {
  unsigned done = 0;
  for (size_t turns = interface.waiting.size(); turns > 0 && !interface.waiting.empty(); --turns) {
    Connection* connection = interface.waiting.front();
    interface.waiting.pop_front();
    interface.waiting.push_back(connection);
    while (!connection->pending.empty()) {
      uct_pending_req_t* request = connection->pending.front();
      connection->pending.pop_front();
      connection->dispatching = true;
      const ucs_status_t status = request->func(request);
      connection->dispatching = false;
      if (status != UCS_OK) {
        connection->pending.push_front(request);
        break;
      }
      ++done;
    }
    if (connection->pending.empty()) std::erase(interface.waiting, connection);
  }
  return done;
}

void fill_endpoint_ops(uct_iface_ops_t& ops) {
  ops.ep_put_short = put_short;
  ops.ep_put_bcopy = put_bcopy;
  ops.ep_put_zcopy = put_zcopy;
  ops.ep_get_bcopy = get_bcopy;
  ops.ep_get_zcopy = get_zcopy;
  ops.ep_am_short = am_short;
  ops.ep_am_short_iov = am_short_iov;
  ops.ep_am_bcopy = am_bcopy;
  ops.ep_pending_add = pending_add;
  ops.ep_pending_purge = pending_purge;
  ops.ep_flush = flush;
  ops.ep_fence = fence;
  ops.ep_check = check;
  ops.ep_create = create;
  ops.ep_destroy = destroy;
}

}  // namespace pw::uct::PW_UCX
