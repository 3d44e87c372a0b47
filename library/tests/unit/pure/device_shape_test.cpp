// Shapes: what is refused, what is merged, and that chunks cover a layout exactly once.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/status.h"
#include "device/host/copy.h"
#include "device/shape.h"
#include "rounds.h"

namespace pw {
namespace {

pw_block block(uint64_t bytes, std::vector<uint64_t> count = {}, std::vector<int64_t> stride = {},
               uint64_t offset = 0) {
  pw_block b{};
  b.offset = offset;
  b.block_bytes = bytes;
  b.dims = static_cast<uint32_t>(count.size());
  for (uint32_t d = 0; d < b.dims && d < PW_MAX_DIMS; ++d) {
    b.count[d] = count[d];
    b.stride[d] = stride[d];
  }
  return b;
}

struct Refused {
  const char* name;
  pw_block to, from;
  uint64_t span;
  pw_status status;
  const char* says;
};

class RefusedBlocks : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedBlocks, SaysWhy) {
  const Refused& c = GetParam();
  try {
    join(c.to, c.span, "remote region", c.from, UINT64_MAX, "local region");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), c.status) << error.what();
    EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
  }
}

pw_block five_dims() {
  pw_block b = block(8);
  b.dims = 5;
  return b;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedBlocks,
    ::testing::Values(
        Refused{"past_end", block(4096, {}, {}, 1048064), block(4096), 1048576, PW_OUT_OF_RANGE,
                "4096 bytes at offset 1048064"},
        Refused{"offset_past_end", block(1, {}, {}, 11), block(1), 10, PW_OUT_OF_RANGE, "offset 11"},
        Refused{"strided_past_end", block(8, {4}, {32}), block(32), 103, PW_OUT_OF_RANGE, "104 bytes"},
        Refused{"negative_stride", block(8, {4}, {-32}), block(32), 1000, PW_INVALID_ARGUMENT, "stride -32"},
        Refused{"zero_stride", block(8, {4}, {0}), block(32), 1000, PW_INVALID_ARGUMENT, "stride 0"},
        Refused{"overlap", block(8, {4}, {7}), block(32), 1000, PW_INVALID_ARGUMENT, "overlap"},
        Refused{"interleaved_overlap", block(8, {4, 4}, {24, 16}), block(128), 1000, PW_INVALID_ARGUMENT,
                "overlap"},
        Refused{"undecided", block(1, {1 << 20, 1 << 20}, {1 << 30, (1 << 30) + 1}), block(8), UINT64_MAX,
                PW_INVALID_ARGUMENT, "nest"},
        Refused{"overlap_2d", block(8, {2, 4}, {24, 8}), block(64), 1000, PW_INVALID_ARGUMENT, "overlap"},
        Refused{"overflow", block(8, {uint64_t{1} << 40, uint64_t{1} << 40}, {int64_t{1} << 60, 8}), block(8),
                1000, PW_OUT_OF_RANGE, "overflows"},
        Refused{"five_dims", five_dims(), block(8), 1000, PW_INVALID_ARGUMENT, "at most 4"},
        Refused{"other_size", block(8), block(16), 1000, PW_INVALID_ARGUMENT, "takes 8 bytes"},
        Refused{"other_counts", block(8, {2, 4}, {100, 16}), block(8, {4, 2}, {100, 16}), 1000,
                PW_INVALID_ARGUMENT, "different counts"}),
    [](const auto& info) { return info.param.name; });

TEST(Layout, MergesWhatTouches) {
  const Layout dense = join(block(8, {4, 16}, {128, 8}), 512, "to", block(512), 512, "from");
  EXPECT_TRUE(dense.shape.contiguous());
  EXPECT_EQ(dense.shape.block_bytes, 512u);

  const Layout rows = join(block(8, {4, 16}, {256, 8}), 1024, "to", block(512), 512, "from");
  EXPECT_EQ(rows.shape.dims, 1u);
  EXPECT_EQ(rows.shape.block_bytes, 128u);
  EXPECT_EQ(rows.to[0], 256);
  EXPECT_EQ(rows.from[0], 128);

  const Layout planes = join(block(8, {3, 4, 5}, {400, 100, 20}), 2000, "to", block(480), 480, "from");
  EXPECT_EQ(planes.shape.dims, 1u) << "strides 400, 100, 20 with counts 4 and 5 are one run of 60 blocks";
  EXPECT_EQ(planes.shape.count[0], 60u);
}

TEST(Layout, AllowsTransposes) {
  const Layout layout = join(block(8, {4, 3}, {8, 32}), 96, "to", block(8, {4, 3}, {24, 8}), 96, "from");
  double from[4][3], to[3][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j) from[i][j] = 10 * i + j;
  host_copy({reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), layout});
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j) EXPECT_EQ(to[j][i], 10 * i + j);
}

// Offsets 0, 24 and 0, 16, 32 added: neither dimension lies within one stride of the other.
TEST(Layout, AllowsDimensionsThatInterleave) {
  const Layout layout = join(block(8, {2, 3}, {24, 16}), 64, "to", block(48), 48, "from");
  double from[6] = {1, 2, 3, 4, 5, 6}, to[8] = {};
  host_copy({reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), layout});
  EXPECT_EQ(std::vector<double>(to, to + 8), (std::vector<double>{1, 0, 2, 4, 3, 5, 0, 6}));
}

TEST(Layout, OfColumnsIsMergedAsItsTransposeIs) {
  const Layout columns =
      join(block(8, {16, 4}, {8, 256}), 1024, "to", block(8, {16, 4}, {8, 128}), 512, "from");
  EXPECT_EQ(columns.shape.dims, 1u);
  EXPECT_EQ(columns.shape.block_bytes, 128u);
  EXPECT_EQ(columns.to[0], 256);
  EXPECT_EQ(columns.from[0], 128);
}

// Two steps of the inner stride are nearly 64 bits.
TEST(Layout, OfHugeStridesIsNotMerged) {
  constexpr int64_t kHuge = int64_t{1} << 59;
  const pw_block wide = block(8, {2, 3}, {16, kHuge});
  EXPECT_EQ(join(wide, UINT64_MAX, "to", wide, UINT64_MAX, "from").shape.dims, 2u);
}

// Every shape of a small box, against a map of the bytes that its blocks cover.
TEST(Layout, RefusesExactlyTheShapesWhoseBlocksOverlap) {
  std::mt19937 random(5);
  int refused = 0, interleaved = 0;
  for (int round = 0; round < 5000; ++round) {
    pw_block b = block(1 + random() % 8);
    b.dims = 1 + random() % 4;
    for (uint32_t d = 0; d < b.dims; ++d) {
      b.count[d] = 1 + random() % 4;
      b.stride[d] = static_cast<int64_t>(1 + random() % 60);
    }
    std::vector<int> covered(1000);
    const Shape shape{b.block_bytes, b.dims, {b.count[0], b.count[1], b.count[2], b.count[3]}};
    for (uint64_t i = 0; i < shape.blocks(); ++i) {
      uint64_t at = 0, rest = i;
      for (uint32_t d = 0; d < b.dims; ++d) {
        at += rest % b.count[d] * static_cast<uint64_t>(b.stride[d]);
        rest /= b.count[d];
      }
      for (uint64_t byte = at; byte < at + b.block_bytes; ++byte) ++covered[byte];
    }
    const bool overlap = std::ranges::any_of(covered, [](int times) { return times > 1; });
    bool accepted = true;
    try {
      join(b, 1000, "to", block(shape.bytes()), 1000, "from");
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()).find("overlap"), std::string::npos) << error.what();
      accepted = false;
    }
    ASSERT_EQ(accepted, !overlap) << "round " << round;
    refused += overlap;
    interleaved += accepted && b.dims > 1;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(interleaved, 100);
}

// A random strided block in a random nesting order, with its extent at most a few hundred KiB.
pw_block random_block(std::mt19937& random, const Shape& shape) {
  pw_block b{};
  b.block_bytes = shape.block_bytes;
  b.dims = shape.dims;
  uint64_t inner = shape.block_bytes;
  for (uint32_t d = shape.dims; d-- > 0;) {
    b.count[d] = shape.count[d];
    b.stride[d] = static_cast<int64_t>(inner + random() % 3 * shape.block_bytes);
    inner = (shape.count[d] - 1) * static_cast<uint64_t>(b.stride[d]) + inner;
  }
  return b;
}

Shape random_shape(std::mt19937& random) {
  Shape shape;
  shape.block_bytes = std::vector<uint64_t>{1, 4, 8, 16, 24, 100, 5000}[random() % 7];
  shape.dims = random() % 5;
  for (uint32_t d = 0; d < shape.dims; ++d) shape.count[d] = 1 + random() % 5;
  return shape;
}

uint64_t end_of(const pw_block& b) {
  uint64_t end = b.block_bytes;
  for (uint32_t d = 0; d < b.dims; ++d) end += (b.count[d] - 1) * static_cast<uint64_t>(b.stride[d]);
  return end;
}

TEST(ChunkCursor, CoversEveryLayoutOnce) {
  std::mt19937 random(7);
  for (size_t round = 0; round < rounds(2000); ++round) {
    const Shape shape = random_shape(random);
    const pw_block to = random_block(random, shape), from = random_block(random, shape);
    const Layout layout = join(to, UINT64_MAX, "to", from, UINT64_MAX, "from");
    const uint64_t chunk_bytes = std::vector<uint64_t>{8, 64, 1024, 1 << 20}[random() % 4];

    std::vector<std::byte> source(end_of(from)), direct(end_of(to)), chunked(end_of(to)), bounce(chunk_bytes);
    for (auto& b : source) b = static_cast<std::byte>(random());
    host_copy({direct.data(), source.data(), layout});

    ChunkCursor cursor(layout, chunk_bytes);
    uint64_t moved = 0;
    for (Chunk chunk; cursor.next(chunk);) {
      const uint64_t bytes = chunk.layout.shape.bytes();
      ASSERT_LE(bytes, chunk_bytes);
      ASSERT_GT(bytes, 0u);
      moved += bytes;
      Copy in{bounce.data(), source.data() + chunk.from_offset, chunk.layout};
      in.layout.to = dense_strides(chunk.layout.shape);
      host_copy(in);
      Copy out{chunked.data() + chunk.to_offset, bounce.data(), chunk.layout};
      out.layout.from = dense_strides(chunk.layout.shape);
      host_copy(out);
    }
    ASSERT_EQ(moved, layout.shape.bytes());
    ASSERT_EQ(direct, chunked) << "round " << round;
  }
}

TEST(Slice, PartsMakeTheWhole) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    const Shape shape = random_shape(random);
    const pw_block to = random_block(random, shape), from = random_block(random, shape);
    const Layout layout = join(to, UINT64_MAX, "to", from, UINT64_MAX, "from");
    std::vector<std::byte> source(end_of(from)), whole(end_of(to)), parts(end_of(to));
    for (auto& b : source) b = static_cast<std::byte>(random());
    host_copy({whole.data(), source.data(), layout});
    const uint64_t length = layout.shape.contiguous() ? layout.shape.block_bytes : layout.shape.count[0];
    const uint64_t cut = random() % (length + 1);
    for (auto [first, count] : {std::pair{uint64_t{0}, cut}, std::pair{cut, length - cut}}) {
      if (count == 0) continue;
      uint64_t to_offset = 0, from_offset = 0;
      const Layout part = slice(layout, first, count, to_offset, from_offset);
      host_copy({parts.data() + to_offset, source.data() + from_offset, part});
    }
    ASSERT_EQ(whole, parts) << "round " << round;
  }
}

TEST(HostCopy, StreamingCopiesTheSameBytes) {
  std::mt19937 random(3);
  for (const uint64_t bytes : {1u, 4095u, 4096u, 4097u, 65536u, 100003u}) {
    for (const uint64_t shift : {0u, 1u, 13u, 64u}) {
      std::vector<std::byte> source(bytes + 128), target(bytes + 128), expected(bytes + 128);
      for (auto& b : source) b = static_cast<std::byte>(random());
      std::copy_n(source.begin() + 5, bytes, expected.begin() + static_cast<long>(shift));
      host_copy_streaming({target.data() + shift, source.data() + 5, contiguous_layout(bytes)});
      ASSERT_EQ(target, expected) << bytes << " bytes, shifted by " << shift;
    }
  }
}

}  // namespace
}  // namespace pw
