// An interface's address: the NIC address of its endpoint and the key of its inbox, packed into few bytes
// (UCX has room for 255).
#pragma once

#include <cstdint>
#include <string>

#include "base/siphash.h"
#include "nic/endpoint.h"

namespace pw::uct {

struct Address {
  nic::EndpointFacts facts;
  pw_nic_key inbox;
};

/// `secret`: of the job, for addresses.
std::string pack(const Address& address, const Secret& secret);

/// Throws Error when the bytes are no address that a process of the job made. Their first byte says how many
/// they are (UCX does not), and nothing behind those is read.
Address unpack(const void* bytes, const Secret& secret);

}  // namespace pw::uct
