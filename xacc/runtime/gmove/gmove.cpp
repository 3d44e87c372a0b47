// gmove: elements go from the node that owns them to the nodes that want them. In a collective gmove all of
// them send and receive messages; with in or out, only the executing nodes read or write.
#include <cstring>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/gmove/assignment.h"
#include "xacc/runtime/gmove/one_sided.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

class Collective {
 public:
  explicit Collective(const Assignment& assignment) : assignment_(assignment) {}

  void run() {
    const int me = program().rank();
    assignment_.check_views();
    assignment_.each_pair(
        {true, true, "do it outside of the task, or as gmove in or out"},
        [&](int to, int from) { return to == me || from == me; },
        [&](int to, int from, const Owned& wanted, const Owned& given, const Move& move) {
          add(to, from, wanted, given, move);
        });
    deliver();
  }

 private:
  struct Packed {
    int rank;
    std::vector<std::byte> data;
    std::vector<long> to;  ///< incoming: where each element goes
  };

  void add(int to, int from, const Owned& wanted, const Owned& given, const Move& move) {
    const int me = program().rank();
    const size_t count = assignment_.elements(move), bytes = assignment_.element_bytes;
    if (from == me) {
      auto& packed =
          (to == me ? own_ : out_).emplace_back(Packed{to, std::vector<std::byte>(count * bytes), {}});
      const std::byte* memory = assignment_.source.memory();
      std::byte* next = packed.data.data();
      assignment_.each_element(move, wanted.base, given.base, [&](long, long source) {
        std::memcpy(next, memory + source, bytes);
        next += bytes;
      });
    }
    if (to != me) return;
    auto& packed =
        from == me ? own_.back() : in_.emplace_back(Packed{from, std::vector<std::byte>(count * bytes), {}});
    packed.to.reserve(count);
    assignment_.each_element(move, wanted.base, given.base,
                             [&](long target, long) { packed.to.push_back(target); });
  }

  /// Sends and receives everything. All outgoing elements were packed before any is stored, since the two
  /// sides may overlap.
  void deliver() {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (const Packed& packed : out_) out.push_back({packed.rank, packed.data.data(), packed.data.size()});
    for (Packed& packed : in_) in.push_back({packed.rank, packed.data.data(), packed.data.size()});
    program().mail.exchange(out, in);
    std::byte* into = assignment_.target.memory();
    for (const auto* list : {&own_, &in_})
      for (const Packed& packed : *list)
        for (size_t i = 0; i < packed.to.size(); ++i)
          std::memcpy(into + packed.to[i], packed.data.data() + i * assignment_.element_bytes,
                      assignment_.element_bytes);
  }

  const Assignment& assignment_;
  std::vector<Packed> own_, out_, in_;
};

}  // namespace
}  // namespace pwx

extern "C" {

void pwx_gmove(pwx_gmove_mode mode, const pwx_section* target, const pwx_section* source,
               const pwx_where* where) {
  if (target->array != nullptr) pwx_written(target->array);
  pwx::guarded(where, [&] {
    const pwx::Assignment assignment(*target, *source);
    if (mode == PWX_COLLECTIVE) return pwx::Collective(assignment).run();
    if (mode == PWX_IN || mode == PWX_IN_FROM_GPUS)
      pwx::get_from_owners(assignment, mode == PWX_IN_FROM_GPUS);
    else
      pwx::put_to_owners(assignment, mode == PWX_OUT_TO_GPUS);
    // Wait until the other executing nodes have read from this memory, or written to it, too.
    pwx::barrier(pwx::program(), pwx::program().executing());
  });
}

}  // extern "C"
