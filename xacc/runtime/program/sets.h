// Sets of ranks: those that execute, and those that a reference names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// Ranks, each once, in the order of collective operations. There is one object for each such list.
struct Set {
  std::vector<int> ranks;
  int index = -1;          ///< of this rank; -1 if it is not in the set
  mutable long plans = 0;  ///< number of plans that these ranks have prepared together
  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
};

class Sets {
 public:
  explicit Sets(int rank) : rank_(rank) {}
  const Set& of(const std::vector<int>& ranks);
  /// The set of a reference. Throws Failure if it leaves its nodes or template.
  const Set& of(const pwx_ref& ref);

 private:
  int rank_;
  std::map<std::vector<int>, std::unique_ptr<Set>> sets_;
  std::map<std::string, const Set*> of_refs_;  ///< by key_of()
};

/// The numbers of the nodes that a reference names, ascending. Pure function.
std::vector<int> numbers_of(const pwx_ref& ref);

/// The nodes of a reference, or those that its template is distributed over.
const pwx_nodes& nodes_of(const pwx_ref& ref);

/// The reference as text, such as "p(2,*)", for messages.
std::string text_of(const pwx_ref& ref);

}  // namespace pwx
