#include "nic/endpoint.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "nic/connection.h"
#include "nic/control.h"
#include "nic/service.h"
#include "nic/stream.h"

namespace pw::nic {
namespace {

const char* name_of(pw_nic_status status) {
  switch (status) {
    case PW_NIC_OK:
      return "PW_NIC_OK";
    case PW_NIC_BUSY:
      return "PW_NIC_BUSY";
    case PW_NIC_UNREACHABLE:
      return "PW_NIC_UNREACHABLE";
    case PW_NIC_REFUSED:
      return "PW_NIC_REFUSED";
    case PW_NIC_INVALID:
      return "PW_NIC_INVALID";
    case PW_NIC_BROKEN:
      return "PW_NIC_BROKEN";
  }
  return "a status that peerway/nic.h does not have";
}

std::string with_reason(const char* reason, pw_nic_status status) {
  return reason != nullptr && *reason != '\0' ? format("{} ({})", reason, name_of(status)) : name_of(status);
}

bool same_endpoint(const EndpointFacts& a, const EndpointFacts& b) {
  return a.number == b.number && equal(a.control, b.control) && a.address.length == b.address.length &&
         std::memcmp(a.address.bytes, b.address.bytes, a.address.length) == 0;
}

}  // namespace

bool equal(const pw_nic_key& a, const pw_nic_key& b) {
  return a.length == b.length && std::memcmp(a.bytes, b.bytes, a.length) == 0;
}

Endpoint::Endpoint(std::shared_ptr<const Plugin> plugin, const Job& job, const std::string& configuration)
    : plugin_(std::move(plugin)) {
  const auto* secret = job.secret ? reinterpret_cast<const uint8_t*>(job.secret->data()) : nullptr;
  const pw_nic_options options{sizeof options, job.number, configuration.c_str(), secret};
  const pw_nic_status status = ops().open(&options, &handle_);
  if (status != PW_NIC_OK)
    throw Error(PW_UNAVAILABLE, format("the NIC {} ({}) could not be opened: {}", plugin_->name(),
                                       plugin_->path(), with_reason(ops().why(nullptr), status)));
  try {
    query();
    const bool guarantees_nothing =
        (info_.guarantees & (PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS)) == 0;
    control_ = std::make_unique<ControlSpan>(info_.endpoints, guarantees_nothing);
    control_memory_ = add({sizeof(pw_nic_span), control_->address(), control_->bytes(), PW_NIC_HOST, 0,
                           control_->descriptor(), 0});
    ops().address(handle_, &facts_.address);
    if (facts_.address.length > PW_NIC_ADDRESS_BYTES)
      throw Error(PW_UNAVAILABLE, format("the NIC {} gave an address of {} bytes; addresses have at "
                                         "most {}",
                                         plugin_->name(), facts_.address.length, PW_NIC_ADDRESS_BYTES));
    facts_.control = control_memory_->key();
    facts_.number = info_.number;
    facts_.endpoints = info_.endpoints;
    facts_.guarantees = info_.guarantees;
    if (guarantees_nothing) service_ = std::make_unique<Service>(*this);
  } catch (...) {
    control_memory_.reset();
    ops().close(handle_);
    throw;
  }
}

Endpoint::~Endpoint() {
  service_.reset();
  control_memory_.reset();
  ops().close(handle_);
}

void Endpoint::query() {
  info_.size = sizeof info_;
  ops().query(handle_, &info_);
  const auto breaks = [&](const std::string& statement) {
    return Error(PW_UNAVAILABLE,
                 format("the NIC {} ({}) states {}", plugin_->name(), plugin_->path(), statement));
  };
  if (info_.largest < 4096)
    throw breaks(format("that it moves at most {} bytes at once; at least 4096 are needed", info_.largest));
  if (info_.copied < sizeof(uint64_t))
    throw breaks(format("that it copies {} bytes; at least 8 are needed", info_.copied));
  if (info_.number >= info_.endpoints)
    throw breaks(format("that this endpoint has number {} of {}", info_.number, info_.endpoints));
  if (info_.dimensions > PW_NIC_DIMENSIONS)
    throw breaks(
        format("that it has {} dimensions; there are at most {}", info_.dimensions, PW_NIC_DIMENSIONS));
}

std::string Endpoint::why(pw_nic_status status) const { return with_reason(ops().why(handle_), status); }

Error Endpoint::failure(const std::string& action, pw_nic_status status) const {
  const pw_status kind = status == PW_NIC_UNREACHABLE ? PW_PEER_LOST
                         : status == PW_NIC_BUSY      ? PW_NO_MEMORY
                                                      : PW_UNAVAILABLE;
  return Error(kind, format("the NIC {} {}: {}", plugin_->name(), action, why(status)));
}

uint64_t Endpoint::copied() const {
  const uint64_t copied = std::min(info_.copied, info_.largest);
  return serves() ? std::min<uint64_t>(copied, kBounceBytes) : copied;
}

// ---- memory ----

std::unique_ptr<Memory> Endpoint::add(const pw_nic_span& span) {
  if ((info_.memory_kinds >> span.kind & 1u) == 0 && span.kind != PW_NIC_HOST)
    throw Error(PW_UNAVAILABLE, format("the NIC {} does not accept GPU memory", plugin_->name()));
  std::unique_ptr<Memory> memory(new Memory());
  memory->span_ = span;
  memory->span_.size = sizeof(pw_nic_span);
  const pw_nic_status status =
      ops().register_memory(handle_, &memory->span_, &memory->handle_, &memory->key_);
  if (status != PW_NIC_OK)
    throw failure(format("could not register {} bytes at {}", span.bytes, span.address), status);
  memory->endpoint_ = this;
  if (memory->key_.length > PW_NIC_KEY_BYTES)
    throw Error(PW_UNAVAILABLE, format("the NIC {} gave a key of {} bytes; keys have at most {}",
                                       plugin_->name(), memory->key_.length, PW_NIC_KEY_BYTES));
  memories_.push_back(memory.get());
  return memory;
}

Memory::~Memory() {
  if (endpoint_ == nullptr) return;
  std::erase(endpoint_->memories_, this);
  if (endpoint_->service_ != nullptr) endpoint_->service_->forget(*this);
  endpoint_->ops().deregister_memory(endpoint_->handle_, handle_);
}

Memory* Endpoint::find(const pw_nic_key& key) const {
  for (Memory* memory : memories_)
    if (equal(memory->key(), key)) return memory;
  return nullptr;
}

// ---- peers ----

// Checks the bounds of what a peer says about itself before a plugin reads it. Also, both ends must have the
// same guarantees, because the way in which one end shows arrival must be the way the other end expects.
void Endpoint::check_peer(const EndpointFacts& peer) const {
  if (peer.address.length > PW_NIC_ADDRESS_BYTES || peer.control.length > PW_NIC_KEY_BYTES)
    throw Error(PW_BAD_KEY,
                format("endpoint {} of the NIC {} names an address of {} bytes and a key of {}; they "
                       "have at most {} and {}",
                       peer.number, plugin_->name(), peer.address.length, peer.control.length,
                       PW_NIC_ADDRESS_BYTES, PW_NIC_KEY_BYTES));
  if (peer.guarantees != info_.guarantees)
    throw Error(PW_UNAVAILABLE,
                format("the NIC {} guarantees {:#x} here and {:#x} at endpoint {}; use one build and "
                       "one configuration of the plugin in a job",
                       plugin_->name(), info_.guarantees, peer.guarantees, peer.number));
  if (peer.number >= info_.endpoints || info_.number >= peer.endpoints)
    throw Error(PW_UNAVAILABLE,
                format("the NIC {} has endpoint {} of {} here and {} of {} there; use one "
                       "configuration of the plugin in a job",
                       plugin_->name(), info_.number, info_.endpoints, peer.number, peer.endpoints));
}

std::shared_ptr<Connection> Endpoint::connect(const EndpointFacts& peer) {
  check_peer(peer);
  std::weak_ptr<Connection>& known = connections_[peer.number];
  std::shared_ptr<Connection> connection = known.lock();
  if (connection != nullptr && same_endpoint(connection->facts(), peer)) return connection;
  connection = std::make_shared<Connection>(*this, peer);
  known = connection;
  return connection;
}

std::unique_ptr<Stream> Endpoint::open(const EndpointFacts& peer) {
  return make_stream(*this, connect(peer));
}

// ---- progress ----

void Endpoint::activate(Stream& stream) {
  if (std::exchange(stream.active_, true)) return;
  active_.push_back(&stream);
}

unsigned Endpoint::progress() {
  unsigned happened = ops().progress(handle_);
  for (size_t i = 0; i < active_.size();) {
    Stream& stream = *active_[i];
    bool unfinished = false;
    happened += stream.advance(unfinished);
    if (unfinished) {
      ++i;
      continue;
    }
    stream.active_ = false;
    active_[i] = active_.back();
    active_.pop_back();
  }
  if (service_ != nullptr) happened += service_->poll();
  return happened;
}

}  // namespace pw::nic
