// Failures towards each rank, for everyone who must hear of them. A path reports a failure once, to the first
// reader of its mark's outcome. All others find it here: the requests that were open, and the next flush.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "transport/marks.h"

namespace pw {

class Failures {
 public:
  explicit Failures(int ranks) : lines_(static_cast<size_t>(ranks)) {}

  /// The number of failures noted towards the rank so far (PW_ANY_RANK: in all).
  [[nodiscard]] uint64_t count(int rank) const;

  /// The status of the marks; failures are noted.
  pw_status outcome(Marks& marks);

  /// PW_OK, or the last failure towards the rank (PW_ANY_RANK: any) if there are more than `seen`.
  pw_status since(int rank, uint64_t seen) const;

  /// For a flush of the rank: PW_OK, or what no flush of it has told yet.
  pw_status flushed(int rank);

 private:
  struct Line {
    uint64_t count = 0;
    uint64_t flushed = 0;  ///< `count` at the last flush
    pw_status status = PW_OK;
    std::string why;
  };
  void note(int rank, pw_status status);

  mutable std::mutex mutex_;
  std::vector<Line> lines_;
  int last_ = 0;                   ///< rank of the last failure
  std::atomic<uint64_t> all_ = 0;  ///< failures; 0: nothing else need be looked at
};

}  // namespace pw
