// The conformance tests, one function each. A test returns a sentence that states how often something was
// exercised, and throws everything else that it finds (nic/check/findings.h).
#pragma once

#include <span>
#include <string>

#include "nic/check/near_end.h"

namespace pw::nic::check {

struct Test {
  const char* name;
  std::string (*run)(NearEnd& near);
  double share_s = 0;  ///< what it takes at effort 1, where it can take any time
  bool last = false;   ///< its processes are of no use to others
};

std::span<const Test> tests_of_setup();   ///< what is stated, keys and addresses
std::span<const Test> tests_of_data();    ///< where bytes go
std::span<const Test> tests_of_words();   ///< what others see of a transfer while it is under way
std::span<const Test> tests_of_order();   ///< ordering guarantees
std::span<const Test> tests_of_ends();    ///< how operations end
std::span<const Test> tests_of_memory();  ///< memory that comes and goes
std::span<const Test> tests_of_extras();  ///< the optional entries
std::span<const Test> tests_of_load();    ///< everything at once, and what is left after it
std::span<const Test> tests_of_death();   ///< a peer that dies

}  // namespace pw::nic::check
