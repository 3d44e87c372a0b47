// What a reflect moves between nodes, simulated in one process for all distributions that have shadows.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/mapping/halo_boxes.h"

namespace pwx {
namespace {

/// A two-dimensional array over two-dimensional nodes, with the memory of all nodes.
struct Plane {
  struct Side {
    pwx_kind kind;
    long size;
    int parts;
    std::vector<long> sizes;
    long lo, hi, offset;
  };

  Plane(const Side& rows, const Side& columns) {
    const Side* sides[] = {&rows, &columns};
    nodes.ndims = t.ndims = a.ndims = 2;
    nodes.total = rows.parts * columns.parts;
    t.nodes = &nodes;
    a.on = &t;
    a.name = "a";
    a.element_bytes = sizeof(int64_t);
    for (int d = 0; d < 2; ++d) {  // the template's first dimension is the array's last
      const Side& side = *sides[1 - d];
      auto& start = starts[d];
      start.assign(1, 0);
      for (const long size : side.sizes) start.push_back(start.back() + size);
      pwx_template_dim& dim = t.dim[d];
      dim.kind = side.kind;
      dim.nodes_dim = d;
      dim.parts = nodes.size[d] = side.parts;
      dim.last = side.size + side.offset - 1;
      dim.starts = start.data();
      settle(dim, 0, "t");
      pwx_array_dim& of = a.dim[1 - d];
      of.size = side.size;
      of.template_dim = d;
      of.offset = side.offset;
      of.shadow[0] = side.lo;
      of.shadow[1] = side.hi;
    }
  }
  Plane(const Plane&) = delete;

  [[nodiscard]] std::array<Placed, 2> placed(int node) const {
    const Parts parts = parts_at(a, coordinates_of(nodes, node).data());
    return {place(a, 0, parts[0]), place(a, 1, parts[1])};
  }

  pwx_nodes nodes{};
  pwx_template t{};
  pwx_array a{};
  std::vector<long> starts[2];
};

int64_t value_at(long i, long j) { return i * 1000 + j + 1; }

long wrap(long i, long size) { return ((i % size) + size) % size; }

uint64_t offset_of(const pw_block& block, uint64_t number) {
  uint64_t offset = block.offset;
  for (uint32_t d = block.dims; d-- > 0; number /= block.count[d])
    offset += number % block.count[d] * static_cast<uint64_t>(block.stride[d]);
  return offset;
}

/// Moves all boxes and compares each node's memory with the whole array. Returns the elements moved.
uint64_t play(const Plane& plane, bool periodic, bool corners) {
  const pwx_array& a = plane.a;
  std::vector<std::vector<int64_t>> memories;
  for (int node = 0; node < plane.nodes.total; ++node) {
    const auto placed = plane.placed(node);
    auto& memory = memories.emplace_back(static_cast<size_t>(placed[0].ld * placed[1].ld), -1);
    for (long i = placed[0].owned.first; i <= placed[0].owned.last; ++i)
      for (long j = placed[1].owned.first; j <= placed[1].owned.last; ++j)
        memory[static_cast<size_t>((i - placed[0].base) * placed[1].ld + j - placed[1].base)] =
            value_at(i, j);
  }
  Widths widths = whole_shadow(a);
  for (auto& width : widths) width.periodic = periodic ? 1 : 0;
  uint64_t moved = 0;
  for (int node = 0; node < plane.nodes.total; ++node)
    for (const Box& box : needs_of(a, node, widths, corners))
      for (const BlockPair& pair : blocks_of(a, box, node)) {
        uint64_t count = 1;
        for (uint32_t d = 0; d < pair.to.dims; ++d) count *= pair.to.count[d];
        auto* to = reinterpret_cast<std::byte*>(memories[static_cast<size_t>(node)].data());
        const auto* from =
            reinterpret_cast<const std::byte*>(memories[static_cast<size_t>(box.owner)].data());
        for (uint64_t n = 0; n < count; ++n)
          std::copy_n(from + offset_of(pair.from, n), pair.from.block_bytes, to + offset_of(pair.to, n));
        moved += count * pair.to.block_bytes / sizeof(int64_t);
      }
  for (int node = 0; node < plane.nodes.total; ++node) {
    const auto placed = plane.placed(node);
    if (placed[0].owned.count() == 0 || placed[1].owned.count() == 0) continue;
    for (long i = placed[0].owned.first - a.dim[0].shadow[0]; i <= placed[0].owned.last + a.dim[0].shadow[1];
         ++i)
      for (long j = placed[1].owned.first - a.dim[1].shadow[0];
           j <= placed[1].owned.last + a.dim[1].shadow[1]; ++j) {
        const bool own_i = i >= placed[0].owned.first && i <= placed[0].owned.last;
        const bool own_j = j >= placed[1].owned.first && j <= placed[1].owned.last;
        const bool inside = i >= 0 && i < a.dim[0].size && j >= 0 && j < a.dim[1].size;
        const bool filled = (own_i || own_j || corners) && (inside || periodic);
        const int64_t element =
            memories[static_cast<size_t>(node)]
                    [static_cast<size_t>((i - placed[0].base) * placed[1].ld + j - placed[1].base)];
        EXPECT_EQ(element, filled ? value_at(wrap(i, a.dim[0].size), wrap(j, a.dim[1].size)) : -1)
            << "node " << node << ", element " << i << ", " << j;
      }
  }
  return moved;
}

const Plane::Side kSides[] = {
    {PWX_BLOCK, 8, 2, {}, 1, 1, 0},
    {PWX_BLOCK, 7, 3, {}, 2, 1, 0},
    {PWX_BLOCK, 3, 4, {}, 1, 1, 0},
    {PWX_BLOCK, 5, 1, {}, 1, 2, 0},
    {PWX_BLOCK, 6, 3, {}, 1, 0, 2},
    {PWX_GBLOCK, 9, 3, {1, 6, 2}, 2, 2, 0},
    {PWX_GBLOCK, 6, 4, {1, 0, 1, 4}, 3, 2, 0},
};

TEST(Pieces, EveryHaloGetsItsElements) {
  for (const auto& rows : kSides)
    for (const auto& columns : kSides)
      for (const bool periodic : {false, true})
        for (const bool corners : {false, true}) {
          const Plane plane(rows, columns);
          play(plane, periodic, corners);
          ASSERT_FALSE(::testing::Test::HasFailure())
              << rows.size << " of " << rows.parts << " by " << columns.size << " of " << columns.parts
              << (periodic ? ", periodic" : "") << (corners ? ", corners" : "");
        }
}

TEST(Pieces, NoMoreMovesThanIsNeeded) {
  const Plane plane(kSides[0], kSides[0]);
  EXPECT_EQ(play(plane, false, false), 4u * 8u) << "two faces of 4 a node";
  EXPECT_EQ(play(plane, false, true), 4u * 9u);
  EXPECT_EQ(play(plane, true, false), 4u * 16u);
  EXPECT_EQ(play(plane, true, true), 4u * 20u);
}

TEST(Pieces, WidthsThatDoNotFitAreRefused) {
  const Plane plane({PWX_BLOCK, 8, 2, {}, 1, 1, 0}, {PWX_BLOCK, 8, 2, {}, 0, 0, 0});
  const auto refusal = [&](Widths widths) -> std::string {
    try {
      check_widths(plane.a, widths);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({{{1, 1, 1}, {0, 0, 1}}}), "");
  EXPECT_EQ(refusal({{{1, 2, 0}, {0, 0, 0}}}),
            "reflect of dimension 0 of a with a width of 1:2, but its shadow is 1:1; widen the shadow");
  // A shadow may be 0 at run time; the compiler refuses an array that declares none.
  const Plane bare({PWX_BLOCK, 8, 2, {}, 0, 0, 0}, {PWX_BLOCK, 8, 2, {}, 0, 0, 0});
  EXPECT_NO_THROW(check_widths(bare.a, whole_shadow(bare.a)));
}

TEST(Pieces, TooManyDimensionsAreCut) {
  std::vector<BoxDim> dims;
  long to = 8, from = 8;
  for (int d = 0; d < 6; ++d) {
    dims.insert(dims.begin(), {2, to * 2, from * 3});
    to *= 4;
    from *= 6;
  }
  const auto blocks = blocks_of(dims, 8, 16, 24);
  ASSERT_EQ(blocks.size(), 4u) << "two dimensions of two are cut";
  for (const BlockPair& pair : blocks) EXPECT_EQ(pair.to.dims, 4u);
  EXPECT_EQ(blocks[0].to.offset, 16u);
  EXPECT_EQ(blocks[0].from.offset, 24u);
}

}  // namespace
}  // namespace pwx
