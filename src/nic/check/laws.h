// The laws of peerway/nic.h, one function each. They throw Broken where the plugin breaks one, and give a
// sentence of what was seen where it keeps it; an empty one where there is nothing to look at.
#pragma once

#include <span>
#include <string>

#include "nic/check/near_end.h"

namespace pw::nic::check {

struct Law {
  const char* name;
  std::string (*look)(NearEnd& near);
};

std::span<const Law> laws_of_setup();   ///< of what is stated, and of keys and addresses
std::span<const Law> laws_of_data();    ///< of puts and gets
std::span<const Law> laws_of_order();   ///< of promises
std::span<const Law> laws_of_extras();  ///< of the optional entries

/// Memory that the far end withdrew, after which it can be used no more.
std::string memory_withdrawn(NearEnd& near);
/// The far end dies, by `kill`.
std::string peer_dies(NearEnd& near);

}  // namespace pw::nic::check
