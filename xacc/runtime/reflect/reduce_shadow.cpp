// reduce_shadow: halos are sent to the owners of their elements, which add them.
#include <algorithm>
#include <array>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/mapping/halo_boxes.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

/// Sends the boxes of a reflect backwards, and adds them; those at corners only if asked for.
void add_shadows(const pwx_array& a, Combine add, const Widths& widths, bool corners) {
  const pwx_nodes& nodes = *a.on->nodes;
  const int me = program().rank();
  auto* memory = static_cast<std::byte*>(a.state->memory.address());
  struct Bundle {
    int rank;
    std::vector<pw_block> blocks;
    std::vector<std::byte> data;
  };
  std::vector<Bundle> out, in, own;
  const auto each_run = [](const pw_block& block, auto&& body) {
    std::array<uint64_t, PW_MAX_DIMS> at{};
    for (;;) {
      auto offset = static_cast<int64_t>(block.offset);
      for (size_t d = 0; d < block.dims; ++d) offset += static_cast<int64_t>(at[d]) * block.stride[d];
      body(offset);
      size_t d = block.dims;
      while (d > 0 && ++at[d - 1] == block.count[d - 1]) at[--d] = 0;
      if (d == 0) return;
    }
  };
  for (int holder = 0; holder < nodes.total; ++holder)
    for (const auto& box : needs_of(a, holder, widths, corners)) {
      const int from = nodes.ranks[holder], to = nodes.ranks[box.owner];
      if (from != me && to != me) continue;
      Bundle bundle{from == me ? to : from, {}, {}};
      Bundle target{from, {}, {}};
      for (const BlockPair& pair : blocks_of(a, box, holder)) {
        if (from == me)
          each_run(pair.to, [&](int64_t offset) {
            bundle.data.insert(bundle.data.end(), memory + offset, memory + offset + pair.to.block_bytes);
          });
        target.blocks.push_back(pair.from);
        uint64_t bytes = pair.from.block_bytes;
        for (size_t d = 0; d < pair.from.dims; ++d) bytes *= pair.from.count[d];
        if (from != me) target.data.resize(target.data.size() + bytes);
      }
      if (from == me && to == me) {
        target.data = std::move(bundle.data);
        own.push_back(std::move(target));
      } else if (from == me) {
        out.push_back(std::move(bundle));
      } else {
        in.push_back(std::move(target));
      }
    }
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (const Bundle& box : out) sends.push_back({box.rank, box.data.data(), box.data.size()});
  for (Bundle& box : in) receives.push_back({box.rank, box.data.data(), box.data.size()});
  program().mail.exchange(sends, receives);
  for (const auto* list : {&own, &in})
    for (const Bundle& box : *list) {
      const std::byte* next = box.data.data();
      for (const pw_block& block : box.blocks)
        each_run(block, [&](int64_t offset) {
          add(memory + offset, memory + offset, next, block.block_bytes / a.element_bytes);
          next += block.block_bytes;
        });
    }
}

}  // namespace
}  // namespace pwx

extern "C" {

void pwx_reduce_shadow(pwx_array* a, pwx_type type, const pwx_width* widths, int flags,
                       const pwx_where* where) {
  pwx_written(a);
  pwx::guarded(where, [&] {
    pwx::allocated(*a, "reduce_shadow");
    if (pwx::size_of(type) != a->element_bytes)
      pwx::refuse("reduce_shadow of ", a->name, ", whose elements are no numbers of C");
    pwx::Widths given = pwx::whole_shadow(*a);
    if (widths != nullptr) std::copy_n(widths, a->ndims, given.begin());
    pwx::check_widths(*a, given);
    const bool corners = (flags & PWX_REFLECT_ORTHOGONAL) == 0;
    if (a->on->nodes->member != 0) pwx::add_shadows(*a, pwx::combine_of(PWX_SUM, type), given, corners);
  });
}

}  // extern "C"
