// Records which operations failed, for each rank that they were started towards. A path reports a failure
// only once: to whoever first reads the outcome of a mark. But several may have to learn of it: every open
// request, and the next flush of that rank. So whoever reads an outcome records the failure here.
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
  explicit Failures(int ranks) : by_rank_(static_cast<size_t>(ranks)) {}

  /// Returns the number of failures recorded towards the rank so far (PW_ANY_RANK: towards all ranks).
  [[nodiscard]] uint64_t count(int rank) const;

  /// Returns the outcome of the marks, and records every failure among them.
  pw_status outcome(Marks& marks);

  /// Returns the last failure towards the rank (PW_ANY_RANK: any rank) if count() is greater than `seen`, an
  /// earlier count(); else PW_OK.
  pw_status since(int rank, uint64_t seen) const;

  /// Returns a failure towards the rank that no earlier flush has reported, or PW_OK. Failures before this
  /// call count as reported from now on.
  pw_status take_for_flush(int rank);

 private:
  struct RankFailures {
    uint64_t count = 0;
    uint64_t flushed = 0;      ///< `count` at the last flush
    pw_status status = PW_OK;  ///< of the last failure; `why` is its message
    std::string why;
  };
  void record(int rank, pw_status status);

  mutable std::mutex mutex_;
  std::vector<RankFailures> by_rank_;
  int last_ = 0;                   ///< rank of the last failure
  std::atomic<uint64_t> all_ = 0;  ///< number of failures towards all ranks; while it is 0, by_rank_ is not
                                   ///< read
};

}  // namespace pw
