// Tables of the elements that a node owns and of their places in memory, for each distribution.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/mapping/mapping.h"

namespace pwx {
namespace {

using Ranges = std::vector<Range>;

struct CutDim {
  const char* name;
  pwx_kind kind;
  long first, last;
  int parts;
  long width;
  std::vector<long> sizes;    ///< of gblock
  std::vector<Ranges> owned;  ///< of each part
};

void PrintTo(const CutDim& dim, std::ostream* to) { *to << dim.name; }

/// A dimension of a template, with the memory that it points to.
struct MappedDim {
  explicit MappedDim(const CutDim& of, int at = 0) : starts(1, of.first) {
    for (const long size : of.sizes) starts.push_back(starts.back() + size);
    dim.kind = of.kind;
    dim.nodes_dim = of.kind == PWX_DUPLICATED ? -1 : 0;
    dim.parts = of.parts;
    dim.at = at;
    dim.first = of.first;
    dim.last = of.last;
    dim.starts = starts.data();
    settle(dim, of.width, "it");
  }
  MappedDim(const MappedDim&) = delete;
  std::vector<long> starts;
  pwx_template_dim dim{};
};

const CutDim kCuts[] = {
    {"duplicated", PWX_DUPLICATED, 0, 7, 1, 0, {}, {{{0, 7}}}},
    {"block that divides", PWX_BLOCK, 0, 7, 4, 0, {}, {{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}}},
    {"block that does not divide", PWX_BLOCK, 0, 8, 4, 0, {}, {{{0, 2}}, {{3, 5}}, {{6, 8}}, {}}},
    {"block from 1", PWX_BLOCK, 1, 7, 2, 0, {}, {{{1, 4}}, {{5, 7}}}},
    {"block below 0", PWX_BLOCK, -3, 2, 3, 0, {}, {{{-3, -2}}, {{-1, 0}}, {{1, 2}}}},
    {"more nodes than indices", PWX_BLOCK, 0, 1, 4, 0, {}, {{{0, 0}}, {{1, 1}}, {}, {}}},
    {"block(5)", PWX_BLOCK, 0, 7, 3, 5, {}, {{{0, 4}}, {{5, 7}}, {}}},
    {"one node", PWX_BLOCK, 0, 9, 1, 0, {}, {{{0, 9}}}},
    {"cyclic", PWX_CYCLIC, 0, 6, 3, 0, {}, {{{0, 0}, {3, 3}, {6, 6}}, {{1, 1}, {4, 4}}, {{2, 2}, {5, 5}}}},
    {"cyclic(2)", PWX_CYCLIC, 1, 9, 2, 2, {}, {{{1, 2}, {5, 6}, {9, 9}}, {{3, 4}, {7, 8}}}},
    {"cyclic(4) with an empty part", PWX_CYCLIC, 0, 4, 3, 4, {}, {{{0, 3}}, {{4, 4}}, {}}},
    {"gblock", PWX_GBLOCK, 0, 9, 3, 0, {2, 5, 3}, {{{0, 1}}, {{2, 6}}, {{7, 9}}}},
    {"gblock with empty parts", PWX_GBLOCK, 1, 4, 4, 0, {0, 3, 0, 1}, {{}, {{1, 3}}, {}, {{4, 4}}}},
};

class Cuts : public ::testing::TestWithParam<CutDim> {};

TEST_P(Cuts, EachPartOwnsItsIndicesAndEachIndexHasOneOwner) {
  const CutDim& of = GetParam();
  for (int part = 0; part < of.parts; ++part) {
    const MappedDim mapped(of, part);
    const Ranges owned = owned_by(mapped.dim, part);
    EXPECT_EQ(owned, of.owned[static_cast<size_t>(part)]) << "part " << part;
    for (const Range& range : owned)
      for (long index = range.first; index <= range.last; ++index)
        EXPECT_EQ(owner_of(mapped.dim, index), part);
    if (of.kind != PWX_CYCLIC) {
      const Range all{mapped.dim.owned_first, mapped.dim.owned_last};
      if (owned.empty())
        EXPECT_EQ(all.count(), 0) << "part " << part;
      else
        EXPECT_EQ(all, owned.front()) << "part " << part;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Cuts, ::testing::ValuesIn(kCuts));

std::string refusal(const CutDim& of) {
  try {
    const MappedDim mapped(of);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(CutDims, ThatDoNotFitAreRefused) {
  EXPECT_EQ(refusal({"", PWX_BLOCK, 0, 7, 2, 3, {}, {}}),
            "it has 8 indices, but block(3) on 2 nodes holds only 6; use block(4) or block");
  EXPECT_EQ(refusal({"", PWX_GBLOCK, 0, 7, 2, 0, {3, 4}, {}}),
            "it has 8 indices, but the sizes of gblock add up to 7; they must be the same");
  EXPECT_EQ(refusal({"", PWX_CYCLIC, 0, 7, 2, -1, {}, {}}), "it has blocks of -1; they must be at least 1");
}

/// An array of one dimension.
struct Line {
  Line(const CutDim& of, long size, long offset, long lo, long hi) : mapped(of) {
    nodes.ndims = 1;
    nodes.size[0] = nodes.total = of.parts;
    t.ndims = 1;
    t.nodes = &nodes;
    t.dim[0] = mapped.dim;
    a.ndims = 1;
    a.element_bytes = 8;
    a.on = &t;
    a.dim[0].size = size;
    a.dim[0].template_dim = of.kind == PWX_DUPLICATED ? -1 : 0;
    a.dim[0].offset = offset;
    a.dim[0].shadow[0] = lo;
    a.dim[0].shadow[1] = hi;
  }
  Line(const Line&) = delete;
  MappedDim mapped;
  pwx_nodes nodes{};
  pwx_template t{};
  pwx_array a{};
};

struct PlacedCase {
  const char* name;
  CutDim cut;
  long size, offset, lo, hi;
  std::vector<Placed> placed;  ///< of each part
};
void PrintTo(const PlacedCase& placed_case, std::ostream* to) { *to << placed_case.name; }

CutDim block(long first, long last, int parts) { return {"", PWX_BLOCK, first, last, parts, 0, {}, {}}; }

const PlacedCase kPlaced[] = {
    {"block", block(0, 7, 2), 8, 0, 0, 0, {{{0, 3}, 0, 4}, {{4, 7}, 4, 4}}},
    {"shadow", block(0, 8, 2), 9, 0, 1, 2, {{{0, 4}, -1, 8}, {{5, 8}, 4, 8}}},
    {"offset 1", block(0, 7, 2), 7, 1, 1, 1, {{{0, 2}, -1, 6}, {{3, 6}, 2, 6}}},
    {"template from 1", block(1, 8, 2), 8, 1, 0, 0, {{{0, 3}, 0, 4}, {{4, 7}, 4, 4}}},
    {"shorter than the template",
     block(0, 7, 4),
     3,
     0,
     0,
     0,
     {{{0, 1}, 0, 2}, {{2, 2}, 2, 2}, {{0, -1}, 0, 2}, {{0, -1}, 0, 2}}},
    {"full shadow", block(0, 7, 2), 8, 0, -1, -1, {{{0, 3}, 0, 8}, {{4, 7}, 0, 8}}},
    {"gblock", {"", PWX_GBLOCK, 0, 5, 2, 0, {1, 5}, {}}, 6, 0, 1, 1, {{{0, 0}, -1, 3}, {{1, 5}, 0, 7}}},
    {"cyclic",
     {"", PWX_CYCLIC, 0, 6, 3, 0, {}, {}},
     7,
     0,
     0,
     0,
     {{{0, 6}, 0, 3}, {{1, 4}, 0, 3}, {{2, 5}, 0, 3}}},
    {"not distributed", {"", PWX_DUPLICATED, 0, 0, 1, 0, {}, {}}, 5, 0, 1, 0, {{{0, 4}, -1, 6}}},
};

class Placings : public ::testing::TestWithParam<PlacedCase> {};

TEST_P(Placings, MemoryHoldsWhatIsOwnedWithItsShadow) {
  const PlacedCase& of = GetParam();
  const Line line(of.cut, of.size, of.offset, of.lo, of.hi);
  for (int part = 0; part < of.cut.parts; ++part) {
    const Placed placed = place(line.a, 0, part);
    const Placed& wanted = of.placed[static_cast<size_t>(part)];
    EXPECT_EQ(placed.owned, wanted.owned) << part;
    EXPECT_EQ(placed.base, wanted.base) << part;
    EXPECT_EQ(placed.ld, wanted.ld) << part;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Placings, ::testing::ValuesIn(kPlaced));

// For any distribution, each element has one owner and is inside its memory, and no two share a place.
TEST(Placing, NoTwoElementsShareAPlace) {
  for (const CutDim& cut : kCuts)
    for (const long offset : {cut.first, cut.first + 1}) {
      const long size = cut.last - offset + 1;
      const bool shadow = cut.kind != PWX_CYCLIC;
      const Line line(cut, size, offset, shadow ? 2 : 0, shadow ? 1 : 0);
      std::vector<int> seen(static_cast<size_t>(size), 0);
      for (int part = 0; part < cut.parts; ++part) {
        const Placed placed = place(line.a, 0, part);
        std::vector<int> used(static_cast<size_t>(placed.ld), 0);
        for (const Range& range : owned_subscripts(line.a, 0, part))
          for (long i = range.first; i <= range.last; ++i) {
            const long at = position(line.a, 0, placed, i);
            ASSERT_TRUE(at >= 0 && at < placed.ld) << cut.name << " part " << part << " element " << i;
            ++used[static_cast<size_t>(at)];
            ++seen[static_cast<size_t>(i)];
          }
        for (const int uses : used) EXPECT_LE(uses, 1) << cut.name;
      }
      for (const int owners : seen) EXPECT_EQ(owners, 1) << cut.name;
    }
}

}  // namespace
}  // namespace pwx
