// Sets of ranks: who executes, whom a reference names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// Ranks in the order that collective operations take them, each once. There is one object for each such
/// list.
struct Set {
  std::vector<int> ranks;
  int index = -1;          ///< of this rank; -1: not in it
  mutable long plans = 0;  ///< how many these ranks have prepared together; a plan's number among them
  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
};

class Sets {
 public:
  explicit Sets(int rank) : rank_(rank) {}
  const Set& of(const std::vector<int>& ranks);
  /// The set of a reference. Throws Failure for one that leaves its nodes or template.
  const Set& of(const pwx_ref& ref);

 private:
  int rank_;
  std::map<std::vector<int>, std::unique_ptr<Set>> sets_;
  std::map<std::string, const Set*> of_refs_;  ///< by the bytes of what decides
};

/// The numbers of the nodes that a reference names, ascending. Pure.
std::vector<int> numbers_of(const pwx_ref& ref);

/// The nodes that a reference is about.
const pwx_nodes& nodes_of(const pwx_ref& ref);

/// "p(2,*)", for messages.
std::string text_of(const pwx_ref& ref);

}  // namespace pwx
