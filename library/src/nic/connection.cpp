#include "nic/connection.h"

#include "base/format.h"
#include "base/status.h"

namespace pw::nic {

Connection::Connection(Endpoint& endpoint, const EndpointFacts& facts) : endpoint_(endpoint), facts_(facts) {
  const pw_nic_ops& ops = endpoint.ops();
  pw_nic_status status = ops.connect(endpoint.handle(), &facts_.address, &peer_);
  if (status != PW_NIC_OK)
    throw endpoint.failure(format("found no way to endpoint {}", facts.number), status);
  status = ops.import_key(endpoint.handle(), peer_, &facts_.control, &control_);
  if (status == PW_NIC_OK) return;
  const Error failure = endpoint.failure(format("cannot use the key of endpoint {}", facts.number), status);
  ops.disconnect(endpoint.handle(), peer_);
  throw Error(failure.status(), failure.what());
}

Connection::~Connection() {
  endpoint_.ops().release_key(endpoint_.handle(), control_);
  endpoint_.ops().disconnect(endpoint_.handle(), peer_);
}

}  // namespace pw::nic
