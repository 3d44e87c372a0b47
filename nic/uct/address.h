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

/// `secret`: the job's secret for addresses.
std::string pack(const Address& address, const Secret& secret);

/// Throws Error if the bytes are not an address that a process of the job made. Their first byte is their
/// number (UCX does not pass it), and nothing after them is read.
Address unpack(const void* bytes, const Secret& secret);

}  // namespace pw::uct
