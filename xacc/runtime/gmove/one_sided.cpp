#include "xacc/runtime/gmove/one_sided.h"

#include <cstring>
#include <set>
#include <utility>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/key_table.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/program/bounce_buffer.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

using peerway::check;

/// Elements between this rank and another one, or itself. They are packed from `packed` on in the bounce
/// buffer.
struct RankMove {
  int rank;  ///< the other rank
  long target_offset = 0, source_offset = 0;
  Move steps;
  size_t packed = 0;
};

/// The work of this rank for one gmove. The far side is the one whose owners need not execute the gmove.
class OneSided {
 public:
  OneSided(const Assignment& assignment, const Side& far, bool far_on_gpus)
      : assignment_(assignment), far_(far), far_is_target_(&far == &assignment.target) {
    if (far.distributed()) {
      array_ = far.section.array->state->common_id;
      on_gpus_ = array_.id != 0 && far_on_gpus && gpu() != nullptr;
    }
    if (on_gpus_) wait_for_unqueued();
  }

  /// Everything is read before anything is stored: the two sides may overlap.
  void get() {
    collect();
    for (const RankMove& move : moves_)
      if (move.rank == me_) pack(move);
    move_far();
    for (const RankMove& move : moves_) unpack(move);
  }

  void put() {
    collect();
    for (const RankMove& move : moves_) pack(move);
    move_far();
    for (const RankMove& move : moves_)
      if (move.rank == me_) unpack(move);
  }

 private:
  [[nodiscard]] bool one_element() const { return assignment_.broadcasts_one && !far_is_target_; }
  [[nodiscard]] size_t elements(const RankMove& move) const {
    return one_element() ? 1 : assignment_.elements(move.steps);
  }

  void collect() {
    size_t bytes = 0;
    const MustExecute must{!far_is_target_, far_is_target_,
                           far_is_target_ ? "all that own the right side of a gmove out must"
                                          : "all that own the left side of a gmove in must"};
    assignment_.each_pair(
        must, [&](int to, int from) { return (far_is_target_ ? from : to) == me_; },
        [&](int to, int from, const Owned& wanted, const Owned& given, const Move& move) {
          moves_.push_back({far_is_target_ ? to : from, wanted.base, given.base, move, bytes});
          bytes += elements(moves_.back()) * assignment_.element_bytes;
        });
    if (bytes > 0) span_ = bounce().take(bytes);
  }

  [[nodiscard]] std::byte* packed(const RankMove& move) const { return bounce().at(span_) + move.packed; }

  void pack(const RankMove& move) const {
    std::byte* next = packed(move);
    const std::byte* from = assignment_.source.memory();
    if (one_element()) return void(std::memcpy(next, from + move.source_offset, assignment_.element_bytes));
    assignment_.each_element(move.steps, move.target_offset, move.source_offset, [&](long, long source) {
      std::memcpy(next, from + source, assignment_.element_bytes);
      next += assignment_.element_bytes;
    });
  }

  void unpack(const RankMove& move) const {
    const std::byte* next = packed(move);
    std::byte* to = assignment_.target.memory();
    assignment_.each_element(move.steps, move.target_offset, move.source_offset, [&](long target, long) {
      std::memcpy(to + target, next, assignment_.element_bytes);
      if (!one_element()) next += assignment_.element_bytes;
    });
  }

  /// Does all moves with other ranks, and returns when they are complete at both ends.
  void move_far() {
    std::set<int> others;
    for (const RankMove& move : moves_)
      if (move.rank != me_) others.insert(move.rank);
    try {
      move_with(others);
    } catch (const peerway::Error& error) {  // we may know the key of an array that no longer exists
      if (error.status() != peerway::Status::stale_key) throw;
      for (const int rank : others) forget_published(rank, id());
      move_with(others);
    }
  }

  void move_with(const std::set<int>& others) {
    for (const RankMove& move : moves_) {
      if (move.rank == me_) continue;
      peerway::Remote& remote = remote_of(move.rank);
      for (const BlockPair& pair : blocks(move)) {
        const peerway::Block<pw_region> here{span_.of, pair.from};
        check(far_is_target_ ? program().context.put(remote.block(pair.to), here)
                             : program().context.get(here, remote.block(pair.to)));
      }
    }
    for (const int rank : others) check(program().context.flush(rank));
  }

  [[nodiscard]] uint64_t id() const { return on_gpus_ ? array_.on_gpus() : array_.id; }

  [[nodiscard]] peerway::Remote& remote_of(int rank) const {
    if (array_.id == 0)
      refuse(
          "gmove ", far_is_target_ ? "out to " : "in from ", far_.name(),
          ", which was allocated before this program was known to reach it; call pwx_gmove_one_sided first");
    peerway::Remote* const remote = on_gpus_ ? published(rank, id()) : published(rank, array_);
    if (remote == nullptr)
      refuse("gmove ", far_is_target_ ? "out to " : "in from ", far_.name(), ", which is ",
             on_gpus_ ? "not present on the GPU" : "no longer allocated", " at node ", rank + 1,
             "; let a barrier, or post and wait, stand between this gmove and ",
             on_gpus_ ? "the directives there that make it present and remove it"
                      : text("the end of ", far_.name(), " at that node"));
    return *remote;
  }

  /// The blocks of one move: `to` of each pair is in the far memory, `from` in the bounce buffer.
  [[nodiscard]] std::vector<BlockPair> blocks(const RankMove& move) const {
    const size_t dims = one_element() ? 0 : assignment_.dims, bytes = assignment_.element_bytes;
    Move packed;
    long stride = static_cast<long>(bytes);
    for (size_t d = dims; d-- > 0; stride *= static_cast<long>(packed[d].target.size())) {
      packed[d].target = far_is_target_ ? move.steps[d].target : move.steps[d].source;
      for (size_t i = 0; i < packed[d].target.size(); ++i)
        packed[d].source.push_back(static_cast<long>(i) * stride);
    }
    return blocks_of(packed, dims, bytes, far_is_target_ ? move.target_offset : move.source_offset,
                     static_cast<long>(span_.offset + move.packed));
  }

  const Assignment& assignment_;
  const Side& far_;
  const bool far_is_target_;
  const int me_ = program().rank();
  CommonId array_;
  bool on_gpus_ = false;
  peerway::Span<pw_region> span_{};
  std::vector<RankMove> moves_;
};

}  // namespace

void get_from_owners(const Assignment& assignment, bool from_gpus) {
  OneSided(assignment, assignment.source, from_gpus).get();
}

void put_to_owners(const Assignment& assignment, bool to_gpus) {
  OneSided(assignment, assignment.target, to_gpus).put();
}

}  // namespace pwx
