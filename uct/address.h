// How an interface tells others where it is: the card of its endpoint and the key of its inbox, as few bytes
// as there are (UCX has room for 255).
#pragma once

#include <cstdint>
#include <string>

#include "nic/endpoint.h"

namespace pw::uct {

struct Address {
  nic::Card card;
  pw_nic_key inbox;
};

std::string pack(const Address& address);

/// Throws Error when the bytes are no address. They say themselves how many they are.
Address unpack(const void* bytes);

}  // namespace pw::uct
