// Keeps failures towards each rank for everyone who must learn of them. A path reports a failure only once,
// to the first reader of its mark's outcome. Open requests and the next flush find it here.
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

  /// Returns the number of failures recorded towards the rank so far (PW_ANY_RANK: towards all ranks).
  [[nodiscard]] uint64_t count(int rank) const;

  /// Returns the outcome of the marks and records failures among them.
  pw_status outcome(Marks& marks);

  /// Returns PW_OK, or the last failure towards the rank (PW_ANY_RANK: any rank) if there were more than
  /// `seen`.
  pw_status since(int rank, uint64_t seen) const;

  /// For a flush of the rank: returns a failure that no earlier flush has reported, or PW_OK.
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
  std::atomic<uint64_t> all_ = 0;  ///< number of failures towards all ranks; if it is 0, nothing else need be
                                   ///< read
};

}  // namespace pw
