// The conformance tests, one function each. A test returns a sentence that says how often something was
// exercised, and throws all other outcomes (nic/check/findings.h).
#pragma once

#include <span>
#include <string>

#include "nic/check/near_end.h"

namespace pw::nic::check {

struct Test {
  const char* name;
  std::string (*run)(NearEnd& near);
  double share_s = 0;  ///< time it takes at effort 1, if its duration is variable
  bool last = false;   ///< later tests cannot use its processes
};

std::span<const Test> tests_of_setup();   ///< what the plugin states, keys and addresses
std::span<const Test> tests_of_data();    ///< where bytes go
std::span<const Test> tests_of_words();   ///< what others see of a transfer that is under way
std::span<const Test> tests_of_order();   ///< ordering guarantees
std::span<const Test> tests_of_ends();    ///< how operations end
std::span<const Test> tests_of_memory();  ///< memory that is registered and deregistered
std::span<const Test> tests_of_extras();  ///< the optional entries
std::span<const Test> tests_of_load();    ///< everything at once, and what it leaves behind
std::span<const Test> tests_of_death();   ///< a peer that dies

}  // namespace pw::nic::check
