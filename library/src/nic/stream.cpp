#include "nic/stream.h"

#include <algorithm>

#include "base/format.h"
#include "nic/connection.h"
#include "nic/control.h"
#include "nic/stream_ordered.h"
#include "nic/stream_request.h"
#include "nic/stream_unordered.h"

namespace pw::nic {

std::unique_ptr<Stream> make_stream(Endpoint& endpoint, std::shared_ptr<Connection> connection) {
  const uint32_t guarantees = endpoint.info().guarantees;
  if ((guarantees & PW_NIC_PUTS_IN_ORDER) != 0) {
    if ((guarantees & PW_NIC_GETS_BEHIND_PUTS) != 0)
      return std::make_unique<OrderedStream>(endpoint, std::move(connection));
    return std::make_unique<ProbingStream>(endpoint, std::move(connection));
  }
  if ((guarantees & PW_NIC_GETS_BEHIND_PUTS) != 0)
    return std::make_unique<UnorderedStream>(endpoint, std::move(connection));
  return std::make_unique<RequestStream>(endpoint, std::move(connection));
}

Stream::Stream(Endpoint& endpoint, std::shared_ptr<Connection> connection)
    : endpoint_(endpoint),
      ops_(endpoint.ops()),
      nic_(endpoint.handle()),
      control_(*endpoint.control_),
      connection_(std::move(connection)),
      peer_control_(connection_->control()),
      control_memory_(endpoint.control_memory_->handle()),
      landing_(&control_.place(connection_->facts().number).landing) {}

Stream::~Stream() { std::erase(endpoint_.active_, this); }

std::unique_ptr<RemoteMemory> Stream::import(const pw_nic_key& key) {
  if (key.length > PW_NIC_KEY_BYTES)
    throw Error(PW_BAD_KEY, format("a key of {} bytes of endpoint {}; keys of NICs have at most {}",
                                   key.length, connection_->facts().number, PW_NIC_KEY_BYTES));
  std::unique_ptr<RemoteMemory> remote(new RemoteMemory());
  remote->key_ = key;
  const pw_nic_status status = ops_.import_key(nic_, connection_->peer(), &key, &remote->handle_);
  if (status != PW_NIC_OK)
    throw endpoint_.failure(
        format("cannot use a key of {} bytes of endpoint {}", key.length, connection_->facts().number),
        status);
  remote->stream_ = this;
  return remote;
}

RemoteMemory::~RemoteMemory() {
  if (stream_ == nullptr) return;
  stream_->forget(*this);
  stream_->ops_.release_key(stream_->nic_, handle_);
}

pw_nic_status Stream::get(RemoteMemory& remote, uint64_t offset, void* data, Memory& memory, uint64_t bytes,
                          pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  return record_failure(ops_.get(nic_, remote.handle(), offset, data, memory.handle(), bytes, done));
}

pw_nic_status Stream::put_strided(RemoteMemory& remote, uint64_t offset, const void* data, Memory& memory,
                                  const Blocks& blocks, pw_nic_done* done) {
  if (failed_ != PW_NIC_OK) return failed_;
  if (!has_strided()) return PW_NIC_INVALID;
  return record_failure(ops_.put_strided(nic_, remote.handle(), offset, blocks.to_stride, data,
                                         blocks.from_stride, memory.handle(), blocks.count, blocks.bytes,
                                         done));
}

pw_nic_status Stream::start_word(const WordStore& word) {
  return record_failure(
      ops_.put(nic_, word.remote->handle(), word.offset, &word.value, nullptr, sizeof word.value, nullptr));
}

pw_nic_status Stream::start_get_of_marker(pw_nic_done* done) {
  return record_failure(ops_.get(nic_, peer_control_, ControlSpan::place_at(endpoint_.info().number),
                                 landing_, control_memory_, sizeof *landing_, done));
}

}  // namespace pw::nic
