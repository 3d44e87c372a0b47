// The bytes that each rank sent about its transport, kept unparsed until the rank is first used.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace pw {

class RankFacts {
 public:
  RankFacts() = default;
  explicit RankFacts(const std::vector<Bytes>& ranks) {
    for (const Bytes& bytes : ranks) {
      all_.insert(all_.end(), bytes.begin(), bytes.end());
      ends_.push_back(all_.size());
    }
    all_.shrink_to_fit();
  }
  [[nodiscard]] size_t ranks() const { return ends_.size(); }
  [[nodiscard]] ByteView of(int rank) const {
    const auto at = static_cast<size_t>(rank);
    const size_t begin = at == 0 ? 0 : ends_.at(at - 1);
    return ByteView(all_).subspan(begin, ends_.at(at) - begin);
  }

 private:
  Bytes all_;
  std::vector<size_t> ends_;
};

}  // namespace pw
