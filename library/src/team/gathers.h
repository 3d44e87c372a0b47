// The hub's record of the collectives of all ranks that are under way: who has sent what, and when one is
// complete or can never be. It carries the data of all_gathers; of the others, in which ranks talk to their
// partners, it only compares that all ranks call the same. Pure.
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

  /// What the hub has to send to one rank.
  struct Answer {
    int rank = 0;
    bool complete = false;
    std::shared_ptr<const Bytes> result;  ///< complete: packed wire::Numbered, shared by all ranks
    wire::Failure failure;                ///< otherwise
  };

  /// A rank's part arrives. Throws Error(PW_INVALID_ARGUMENT) when it is not the one that is next for this
  /// rank. Where lengths differ, the result has the length of each part in front of it.
  std::vector<Answer> contribute(int rank, const wire::Contribution& part);

  /// A rank has ended a collective for all. Where it needs the hub's data, all are answered so.
  std::vector<Answer> object(const wire::Failure& failure);

  /// A rank is gone, or takes part no more; `why` describes it. All that need data which it has not given
  /// will fail.
  std::vector<Answer> lose(int rank, const std::string& why, pw_status status = PW_PEER_LOST);

 private:
  struct Gather {
    Bytes all;  ///< packed wire::Numbered; the ranks' places are filled as they give
    std::vector<bool> given;
    size_t count = 0;
    size_t bytes = 0;          ///< of each rank, or of all so far where lengths differ
    std::vector<Bytes> parts;  ///< where lengths differ
    Collective kind = Collective::barrier;
    int first = 0;           ///< the rank that gave first, which the others are compared with
    size_t first_bytes = 0;  ///< that it gave
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
  std::vector<uint64_t> next_;                      ///< the next sequence of each rank
  std::vector<std::optional<wire::Refusal>> gone_;  ///< why
};

}  // namespace pw
