// The endpoint: puts, gets and messages to one interface, and creating and destroying it.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "base/log.h"
#include "base/status.h"
#include "ucx/transport.h"

namespace pw::uct::PW_UCX {
namespace {

using Held = std::scoped_lock<SpinLock>;

// The largest message that is assembled on the stack.
constexpr size_t kShortBytes = kMessageBytes;

Domain& domain_of(const Connection& connection) { return connection.interface->domain; }

// Returns why a put or get cannot be started now; UCS_OK if it can.
ucs_status_t barred(Connection& connection) {
  if (connection.peer().failed()) return UCS_ERR_CONNECTION_RESET;
  if (connection.must_queue() || connection.peer().held_back()) return UCS_ERR_NO_RESOURCE;
  return UCS_OK;
}

// Returns why a message cannot be sent now; UCS_OK if it can.
ucs_status_t no_room(Connection& connection) {
  if (connection.peer().failed()) return UCS_ERR_CONNECTION_RESET;
  return !connection.must_queue() && connection.channel->room() ? UCS_OK : UCS_ERR_NO_RESOURCE;
}

/// Returns the status of `body(connection)`, called with the domain's lock held, unless InTheWay() prevents
/// it.
template <auto InTheWay, typename Body>
std::invoke_result_t<Body, Connection&> unless(uct_ep_t* ep, Body&& body) {
  Connection& connection = Connection::of(ep);
  const Held held(domain_of(connection).lock);
  if (const ucs_status_t status = InTheWay(connection); status != UCS_OK) return status;
  return body(connection);
}

// ---- puts and gets ----

/// Bytes of a peer's memory, as UCX names them.
struct There {
  uint64_t address;
  uct_rkey_t key;
  size_t bytes;
};

/// `post(remote, offset)` starts a put or get there.
template <typename Post>
ucs_status_t start(Connection& connection, const There& there, Post&& post) {
  RemoteKey& key = *reinterpret_cast<RemoteKey*>(there.key);
  auto* remote = key.reach(domain_of(connection), connection.peer(), there.address, there.bytes);
  return remote == nullptr ? UCS_ERR_INVALID_ADDR : started(post(*remote, key.offset_of(there.address)));
}

/// Returns an operation whose end the interface must report; until then it uses the memory.
Operation* tracked(Connection& connection, uct_completion_t* completion, RegisteredMemory* memory = nullptr) {
  Operation* operation = domain_of(connection).operation(connection.peer());
  operation->report_to = &connection.interface->ended;
  operation->completion = completion;
  if (memory != nullptr) memory->use(*operation);
  return operation;
}

ucs_status_t get(Connection& connection, const There& there, void* to, nic::Memory& memory,
                 Operation* operation) {
  const ucs_status_t status = start(connection, there, [&](nic::RemoteMemory& remote, uint64_t offset) {
    return connection.peer().get(remote, offset, to, memory, there.bytes, *operation);
  });
  if (status == UCS_OK) return UCS_INPROGRESS;
  domain_of(connection).recycle(operation);
  return status;
}

/// Finds the registered memory of the piece to be moved, or returns why it cannot be moved now.
ucs_status_t find_memory(Connection& connection, RegisteredMemory& registered, nic::Memory*& memory) {
  try {
    memory = registered.memory();
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
    return UCS_ERR_NO_MEMORY;
  }
  if (memory != nullptr) return UCS_OK;
  domain_of(connection).set_out_of_room();
  return UCS_ERR_NO_RESOURCE;
}

size_t bytes_of(const uct_iov_t* iov, size_t count) { return count == 0 ? 0 : iov[0].length * iov[0].count; }

ucs_status_t put_short(uct_ep_t* ep, const void* data, unsigned bytes, uint64_t address, uct_rkey_t key) {
  return unless<barred>(ep, [&](Connection& connection) {
    if (bytes == 0) return UCS_OK;
    return start(connection, {address, key, bytes}, [&](nic::RemoteMemory& remote, uint64_t offset) {
      return connection.peer().put(remote, offset, data, nullptr, bytes, nullptr);
    });
  });
}

ssize_t put_bcopy(uct_ep_t* ep, uct_pack_callback_t pack, void* arg, uint64_t address, uct_rkey_t key) {
  return unless<barred>(ep, [&](Connection& connection) -> ssize_t {
    Domain& domain = domain_of(connection);
    Operation* operation = domain.operation(connection.peer());
    if (!domain.lend(*operation)) return UCS_ERR_NO_RESOURCE;
    const Bounce bounce = operation->bounce;
    const size_t bytes = pack(bounce.data, arg);
    const ucs_status_t status =
        bytes == 0  // no NIC is asked for 0 bytes
            ? UCS_OK
            : start(connection, {address, key, bytes}, [&](nic::RemoteMemory& remote, uint64_t offset) {
                return connection.peer().put(remote, offset, bounce.data, bounce.memory, bytes, operation);
              });
    if (status == UCS_OK && bytes > 0) return static_cast<ssize_t>(bytes);
    domain.recycle(operation);
    return status;
  });
}

// Complete when the bytes are in place at the peer, because UCX's protocols tell the peer so next.
ucs_status_t put_zcopy(uct_ep_t* ep, const uct_iov_t* iov, size_t count, uint64_t address, uct_rkey_t key,
                       uct_completion_t* completion) {
  return unless<barred>(ep, [&](Connection& connection) {
    const size_t bytes = bytes_of(iov, count);
    if (bytes == 0) return UCS_OK;
    auto& registered = *static_cast<RegisteredMemory*>(iov[0].memh);
    nic::Memory* memory = nullptr;
    if (const ucs_status_t status = find_memory(connection, registered, memory); status != UCS_OK)
      return status;
    const ucs_status_t status =
        start(connection, {address, key, bytes}, [&](nic::RemoteMemory& remote, uint64_t offset) {
          return connection.peer().put(remote, offset, iov[0].buffer, memory, bytes, nullptr);
        });
    if (status != UCS_OK) return status;
    connection.peer().settle(tracked(connection, completion, &registered));
    return UCS_INPROGRESS;
  });
}

ucs_status_t get_bcopy(uct_ep_t* ep, uct_unpack_callback_t unpack, void* arg, size_t bytes, uint64_t address,
                       uct_rkey_t key, uct_completion_t* completion) {
  return unless<barred>(ep, [&](Connection& connection) {
    if (bytes == 0) return UCS_OK;
    Operation* operation = tracked(connection, completion);
    if (!domain_of(connection).lend(*operation)) return UCS_ERR_NO_RESOURCE;
    operation->unpack = unpack;
    operation->unpack_arg = arg;
    operation->bytes = bytes;
    return get(connection, {address, key, bytes}, operation->bounce.data, *operation->bounce.memory,
               operation);
  });
}

ucs_status_t get_zcopy(uct_ep_t* ep, const uct_iov_t* iov, size_t count, uint64_t address, uct_rkey_t key,
                       uct_completion_t* completion) {
  return unless<barred>(ep, [&](Connection& connection) {
    const size_t bytes = bytes_of(iov, count);
    if (bytes == 0) return UCS_OK;
    auto& registered = *static_cast<RegisteredMemory*>(iov[0].memh);
    nic::Memory* memory = nullptr;
    if (const ucs_status_t status = find_memory(connection, registered, memory); status != UCS_OK)
      return status;
    return get(connection, {address, key, bytes}, iov[0].buffer, *memory,
               tracked(connection, completion, &registered));
  });
}

// ---- messages ----

ucs_status_t am_short(uct_ep_t* ep, uint8_t id, uint64_t header, const void* data, unsigned bytes) {
  return unless<no_room>(ep, [&](Connection& connection) {
    alignas(8) std::byte message[kShortBytes];
    std::memcpy(message, &header, sizeof header);
    if (bytes > 0) std::memcpy(message + sizeof header, data, bytes);
    return started(connection.channel->send(id, message, sizeof header + bytes, nullptr, nullptr));
  });
}

ucs_status_t am_short_iov(uct_ep_t* ep, uint8_t id, const uct_iov_t* iov, size_t count) {
  return unless<no_room>(ep, [&](Connection& connection) {
    alignas(8) std::byte message[kShortBytes];
    size_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t length = iov[i].length * iov[i].count;
      if (bytes + length > sizeof message) return UCS_ERR_INVALID_PARAM;
      if (length > 0) std::memcpy(message + bytes, iov[i].buffer, length);
      bytes += length;
    }
    return started(connection.channel->send(id, message, bytes, nullptr, nullptr));
  });
}

ssize_t am_bcopy(uct_ep_t* ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned) {
  return unless<no_room>(ep, [&](Connection& connection) -> ssize_t {
    Domain& domain = domain_of(connection);
    Operation* operation = domain.operation(connection.peer());
    if (!domain.lend(*operation)) return UCS_ERR_NO_RESOURCE;
    const Bounce bounce = operation->bounce;
    const size_t bytes = pack(bounce.data, arg);
    const bool copied = bytes <= domain.endpoint().copied();
    const ucs_status_t status = started(connection.channel->send(
        id, bounce.data, bytes, copied ? nullptr : bounce.memory, copied ? nullptr : operation));
    if (copied || status != UCS_OK) domain.recycle(operation);
    return status == UCS_OK ? static_cast<ssize_t>(bytes) : status;
  });
}

// ---- order and arrival ----

// For UCX a get that the NIC has ended is not over before the interface has reported and unpacked it: the
// domain's thread may have noticed its end first.
ucs_status_t flush(uct_ep_t* ep, unsigned, uct_completion_t* completion) {
  Connection& connection = Connection::of(ep);
  if (connection.must_queue()) return UCS_ERR_NO_RESOURCE;
  Domain& domain = domain_of(connection);
  const Held held(domain.lock);
  const bool quiet = connection.peer().quiet();
  if (quiet && !connection.interface->ended.any()) return UCS_OK;
  Operation* operation = completion == nullptr ? nullptr : tracked(connection, completion);
  if (!quiet)
    connection.peer().settle(operation);
  else if (operation != nullptr)
    domain.report(operation);
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
  connection.channel->probe();
  return UCS_OK;
}

// ---- create and destroy ----

ucs_status_t create(const uct_ep_params_t* params, uct_ep_t** out) {
  constexpr uint64_t kNeeded = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_IFACE_ADDR;
  if ((params->field_mask & kNeeded) != kNeeded) return UCS_ERR_INVALID_PARAM;
  Interface& interface = Interface::of(params->iface);
  auto connection = std::make_unique<Connection>();
  connection->interface = &interface;
  try {
    const Address address = unpack(params->iface_addr, job_secrets().addresses);
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
