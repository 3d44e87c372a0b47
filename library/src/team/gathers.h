// The bootstrap server's record of the collective calls under way: which rank has sent what, and whether a
// collective call is complete or can never be. It holds the data of all_gathers. For collective calls in
// which ranks talk to their partners, it only checks that all ranks make the same call. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "team/message.h"

namespace pw {

class Gathers {
 public:
  explicit Gathers(int size) : next_(static_cast<size_t>(size)), gone_(static_cast<size_t>(size)) {}

  /// A message that the bootstrap server must send to one rank.
  struct Answer {
    int rank = 0;
    bool complete = false;
    std::shared_ptr<const Bytes> result;  ///< if complete: packed wire::Numbered, shared by all ranks
    wire::Failure failure;                ///< if not complete
  };

  /// Takes a rank's part. Throws Error(PW_INVALID_ARGUMENT) if it is not the next part of this rank. If
  /// lengths may differ, each part in the result follows its length.
  std::vector<Answer> contribute(int rank, const wire::Contribution& part);

  /// Ends a collective call for all ranks. Ranks that wait for the server's data receive the failure.
  std::vector<Answer> abort(const wire::Failure& failure);

  /// Records that a rank is gone or takes part no more; `why` says why. Collectives that need its data fail.
  std::vector<Answer> lose(int rank, const std::string& why, pw_status status = PW_PEER_LOST);

 private:
  struct Gather {
    Bytes all;  ///< packed wire::Numbered; filled in as ranks contribute
    std::vector<bool> given;
    size_t count = 0;
    size_t bytes = 0;          ///< per rank, or the total so far if lengths differ
    std::vector<Bytes> parts;  ///< used if lengths differ
    CallKind kind = CallKind::barrier;
    int first = 0;           ///< the rank that contributed first; the others are compared with it
    size_t first_bytes = 0;  ///< bytes that it contributed
    std::optional<wire::Refusal> failure;
  };
  Gather& open(int rank, const wire::Contribution& part);
  void complete(uint64_t sequence, Gather& gather, std::vector<Answer>& answers);
  [[nodiscard]] std::optional<wire::Refusal> refusal_of(const Gather& gather, int rank,
                                                        const wire::Contribution& part) const;
  void keep(Gather& gather, size_t index, ByteView data);
  static void join_parts(uint64_t sequence, Gather& gather);
  void fail(uint64_t sequence, Gather& gather, wire::Refusal refusal, std::vector<Answer>& answers);
  bool over(uint64_t sequence, const Gather& gather) const;

  std::map<uint64_t, Gather> gathers_;
  std::vector<uint64_t> next_;                      ///< the next sequence number of each rank
  std::vector<std::optional<wire::Refusal>> gone_;  ///< why the rank is gone
};

}  // namespace pw
