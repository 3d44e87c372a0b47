// How copies are cut for the copy engine and for the kernels: pure decisions.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "device/cuda/engine.h"
#include "device/cuda/launch.h"
#include "device/cuda/runner.h"

namespace pw::cuda {
namespace {

Copy copy_of(uint64_t to, uint64_t from, uint64_t block, std::vector<uint64_t> count,
             std::vector<int64_t> to_stride, std::vector<int64_t> from_stride) {
  Copy copy{reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), {}};
  copy.layout.shape.block_bytes = block;
  copy.layout.shape.dims = static_cast<uint32_t>(count.size());
  std::copy(count.begin(), count.end(), copy.layout.shape.count.begin());
  std::copy(to_stride.begin(), to_stride.end(), copy.layout.to.begin());
  std::copy(from_stride.begin(), from_stride.end(), copy.layout.from.begin());
  return copy;
}

constexpr uint64_t kMaxPitch = 0x7fffffff;

TEST(CudaEngine, TakesRowsAndPlanesWhereTheyNest) {
  const auto split = engine_split(copy_of(0, 0, 16, {10, 20}, {2048, 64}, {1920, 48}).layout, kMaxPitch);
  EXPECT_EQ(split.row, 1);
  EXPECT_EQ(split.plane, 0);
}

TEST(CudaEngine, LoopsOverTheShorterDimensionWhereTheyDoNot) {
  const auto split = engine_split(copy_of(0, 0, 12, {9, 30}, {2000, 60}, {1996, 52}).layout, kMaxPitch);
  EXPECT_EQ(split.row, 1);
  EXPECT_EQ(split.plane, -1);
}

TEST(CudaEngine, ATransposedSideIsNotRowsOnBothSides) {
  const auto split = engine_split(copy_of(0, 0, 8, {25, 40}, {8, 200}, {320, 8}).layout, kMaxPitch);
  EXPECT_EQ(split.plane, -1);
  EXPECT_EQ(split.row, 1);
}

TEST(CudaEngine, APitchPastTheLimitIsLooped) {
  const Copy copy = copy_of(4096, 8192, 8, {4}, {1 << 20}, {16});
  constexpr uint64_t kLimit = (1 << 20) - 1;
  EXPECT_EQ(engine_split(copy.layout, kLimit).row, -1);
  int pieces = 0;
  for_each_engine_piece(copy, kLimit, [&](const EnginePiece& piece) {
    EXPECT_EQ(piece.to - copy.to, int64_t{pieces} << 20);
    EXPECT_EQ(piece.from - copy.from, int64_t{pieces} * 16);
    ++pieces;
    return true;
  });
  EXPECT_EQ(pieces, 4);
}

TEST(CudaEngine, OverlappingPlanesAreNotTaken) {
  // Planes two rows apart, but three rows high: they interleave.
  const auto split = engine_split(copy_of(0, 0, 4, {5, 3}, {128, 64}, {128, 64}).layout, kMaxPitch);
  EXPECT_EQ(split.plane, -1);
}

// All bytes of all pieces, as pairs of offsets, are those of the layout.
std::set<std::pair<uint64_t, uint64_t>> bytes_of(const Copy& copy) {
  std::set<std::pair<uint64_t, uint64_t>> bytes;
  const Shape& shape = copy.layout.shape;
  for (uint64_t n = 0; n < shape.blocks(); ++n) {
    uint64_t rest = n, to = reinterpret_cast<uint64_t>(copy.to), from = reinterpret_cast<uint64_t>(copy.from);
    for (uint32_t d = shape.dims; d-- > 0; rest /= shape.count[d]) {
      to += rest % shape.count[d] * static_cast<uint64_t>(copy.layout.to[d]);
      from += rest % shape.count[d] * static_cast<uint64_t>(copy.layout.from[d]);
    }
    for (uint64_t b = 0; b < shape.block_bytes; ++b) bytes.emplace(to + b, from + b);
  }
  return bytes;
}

TEST(CudaEngine, PiecesCoverRandomLayouts) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const auto dims = random() % 5;
    std::vector<uint64_t> count;
    std::vector<int64_t> to(dims), from(dims);
    int64_t to_inner = 4, from_inner = 4;
    for (uint32_t d = 0; d < dims; ++d) count.push_back(2 + random() % 3);
    for (uint32_t d = static_cast<uint32_t>(dims); d-- > 0;) {
      to[d] = to_inner + static_cast<int64_t>(random() % 2) * 4;
      from[d] = from_inner + static_cast<int64_t>(random() % 3);
      to_inner = to[d] * static_cast<int64_t>(count[d]);
      from_inner = from[d] * static_cast<int64_t>(count[d]);
    }
    const Copy copy = copy_of(1000, 5000, 4, count, to, from);
    std::set<std::pair<uint64_t, uint64_t>> covered;
    for_each_engine_piece(copy, kMaxPitch, [&](const EnginePiece& piece) {
      for (uint64_t z = 0; z < piece.depth; ++z)
        for (uint64_t y = 0; y < piece.height; ++y)
          for (uint64_t x = 0; x < piece.width; ++x)
            covered.emplace(
                reinterpret_cast<uint64_t>(piece.to) + (z * piece.to_rows + y) * piece.to_pitch + x,
                reinterpret_cast<uint64_t>(piece.from) + (z * piece.from_rows + y) * piece.from_pitch + x);
      return true;
    });
    EXPECT_EQ(covered, bytes_of(copy)) << "trial " << trial;
  }
}

TEST(CudaLaunch, DivisorsDivide) {
  std::mt19937 random(2);
  const auto check = [](uint32_t n, uint32_t count) {
    const peerway::device::Divisor by = divisor(count);
    const auto high = static_cast<uint32_t>((uint64_t{n} * by.magic) >> 32);
    EXPECT_EQ((high + n) >> by.shift, n / count) << n << " / " << count;
  };
  for (uint32_t count :
       {1u, 2u, 3u, 5u, 7u, 10u, 255u, 256u, 257u, 65535u, 65536u, 65537u, 0x7fffffffu, 0x80000000u}) {
    for (uint32_t n : {0u, 1u, 2u, 255u, 65535u, 65536u, 0x40000000u, 0x7fffffffu}) check(n, count);
    for (uint64_t multiple = 1; multiple < 100; ++multiple) {
      if (multiple * count > 0x7fffffff) break;
      check(static_cast<uint32_t>(multiple * count), count);
      check(static_cast<uint32_t>(multiple * count - 1), count);
    }
  }
  for (int trial = 0; trial < 100000; ++trial) check(random() >> 1, 1 + (random() >> (1 + random() % 31)));
}

TEST(CudaLaunch, WordsAreAsWideAsEverythingAligns) {
  EXPECT_EQ(word_bytes(copy_of(0, 16, 32, {4}, {64}, {48})), 16u);
  EXPECT_EQ(word_bytes(copy_of(0, 16, 32, {4}, {72}, {48})), 8u);
  EXPECT_EQ(word_bytes(copy_of(0, 4, 32, {4}, {64}, {48})), 4u);
  EXPECT_EQ(word_bytes(copy_of(0, 0, 6, {4}, {64}, {48})), 2u);
  EXPECT_EQ(word_bytes(copy_of(0, 0, 7, {4}, {64}, {48})), 1u);
  // Contiguous: single bytes before and after make up for what both sides share.
  EXPECT_EQ(word_bytes(copy_of(3, 19, 1000, {}, {}, {})), 16u);
  EXPECT_EQ(word_bytes(copy_of(3, 20, 1000, {}, {}, {})), 1u);
}

TEST(CudaLaunch, ContiguousCopiesHaveHeadAndTail) {
  const CopyLaunch launch = make_launch(copy_of(3, 19, 1000, {}, {}, {}), 132);
  EXPECT_EQ(launch.arguments.copy.head, 13u);
  EXPECT_EQ(launch.arguments.copy.words, (1000u - 13) / 16);
  EXPECT_EQ(launch.arguments.copy.tail, (1000u - 13) % 16);
  const CopyLaunch tiny = make_launch(copy_of(3, 19, 5, {}, {}, {}), 132);
  EXPECT_EQ(tiny.arguments.copy.head, 5u);
  EXPECT_EQ(tiny.arguments.copy.words, 0u);
  EXPECT_EQ(tiny.arguments.copy.tail, 0u);
  EXPECT_EQ(tiny.blocks, 1u);
}

TEST(CudaLaunch, TheGridGrowsWithTheGpu) {
  const Copy large = copy_of(0, 0, 1 << 30, {}, {}, {});
  EXPECT_EQ(make_launch(large, 132).blocks, 132 * kBlocksPerSm);
  EXPECT_EQ(make_launch(large, 10).blocks, 10 * kBlocksPerSm);
}

TEST(CudaLaunch, PartsFitALaunchAndCoverTheCopy) {
  const Copy bytes = copy_of(1, 2, (uint64_t{5} << 30) + 77, {}, {}, {});  // single-byte words
  uint64_t covered = 0;
  EXPECT_TRUE(for_each_launch(bytes, [&](const Copy& part) {
    EXPECT_TRUE(fits_one_launch(part));
    EXPECT_EQ(reinterpret_cast<uint64_t>(part.to), 1 + covered);
    EXPECT_EQ(reinterpret_cast<uint64_t>(part.from), 2 + covered);
    covered += part.layout.shape.bytes();
    return true;
  }));
  EXPECT_EQ(covered, (uint64_t{5} << 30) + 77);

  const Copy strided = copy_of(16, 32, 1, {3, 1 << 15, 1 << 16}, {int64_t{1} << 33, 1 << 18, 2},
                               {int64_t{1} << 34, 1 << 19, 3});
  uint64_t blocks = 0;
  EXPECT_TRUE(for_each_launch(strided, [&](const Copy& part) {
    EXPECT_TRUE(fits_one_launch(part));
    blocks += part.layout.shape.blocks();
    return true;
  }));
  EXPECT_EQ(blocks, strided.layout.shape.blocks());
}

// A face of packets, as its steps have it.
peerway::device::Step packets(StepKind kind, unsigned first, unsigned words, unsigned pieces) {
  peerway::device::Step step{};
  step.kind = kind;
  step.first = first;
  step.pieces = pieces;
  step.unit = 8;
  step.share = (words + pieces - 1) / pieces;
  step.copy.words = words;
  step.copy.to = reinterpret_cast<unsigned char*>(0x10000);
  step.copy.from = reinterpret_cast<const unsigned char*>(0x20000);
  step.copy.outer_to = step.copy.outer_from = 8;
  return step;
}

TEST(CudaPlan, PacketsOrLinesAloneBecomeMessages) {
  std::vector<peerway::device::Step> steps{packets(StepKind::send_packets, 0, 300, 2),
                                           packets(StepKind::receive_packets, 2, 5, 4)};
  steps[0].copy.outer_from = 640;
  steps[0].to_odd_offset = 4096;
  const auto messages = make_messages(steps);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].memory, steps[0].copy.from);
  EXPECT_EQ(messages[0].slots, steps[0].copy.to);
  EXPECT_EQ(messages[0].stride, 640);
  EXPECT_EQ(messages[0].block, 1u);
  EXPECT_EQ(messages[0].turn, 32u) << "lines";
  EXPECT_EQ(messages[0].sends, 1);
  EXPECT_EQ(messages[0].credit, nullptr) << "it is in step with the receiver";
  EXPECT_EQ(messages[1].memory, steps[1].copy.to);
  EXPECT_EQ(messages[1].slots, steps[1].copy.from);
  EXPECT_EQ(messages[1].sends, 0);
  steps[1].kind = StepKind::receive_lines;
  EXPECT_TRUE(make_messages(steps).empty()) << "a kernel has the code for one of them";
}

TEST(CudaPlan, BlocksOfWordsAndCreditsBelongToMessages) {
  peerway::device::Word credits[2] = {};
  auto step = packets(StepKind::send_lines, 0, 40, 2);
  step.words = 2;
  step.wait = {credits, 0, 1, 2};
  step.copy.inner_levels = 1;
  step.copy.inner[0] = {divisor(4), 8, 8};
  step.copy.outer_from = 640;
  const auto messages = make_messages(std::span(&step, 1));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].credit, credits);
  EXPECT_EQ(messages[0].block, 4u);
  EXPECT_EQ(messages[0].stride, 640);
}

TEST(CudaPlan, LeavesRoomForKernelsIfFewBlocksFillTheLinks) {
  constexpr uint64_t kMany = uint64_t{2} << 20;
  EXPECT_EQ(blocks_of_plan(1000, kMany, 132, false), 132U);
  EXPECT_EQ(blocks_of_plan(1000, kMany, 132, true), 49U);
  EXPECT_EQ(blocks_of_plan(1000, kMany - 1, 132, true), 132U);
  EXPECT_EQ(blocks_of_plan(40, kMany, 132, true), 40U);
  EXPECT_EQ(blocks_of_plan(40, kMany, 2, true), 1U);
  EXPECT_EQ(blocks_of_plan(0, 0, 132, true), 0U);
}

TEST(CudaPlan, LinesAreCountedWhole) {
  auto step = packets(StepKind::send_lines, 0, 7 * 15 + 1, 5);
  step.share = 30;
  const PlanMessage message = make_messages(std::span(&step, 1)).at(0);
  EXPECT_EQ(message.count, 8u);
  EXPECT_EQ(message.share, 2u);
  EXPECT_EQ(message.words, 7 * 15 + 1u);
}

TEST(CudaPlan, OtherStepsKeepTheirTable) {
  peerway::device::Word word = 0;
  const auto kept = [](const peerway::device::Step& step) {
    return make_messages(std::span(&step, 1)).empty();
  };
  auto step = packets(StepKind::send_packets, 0, 8, 1);
  EXPECT_FALSE(kept(step));
  step.words = 1;
  step.wait = {&word, 3, 1, 2};
  EXPECT_TRUE(kept(step)) << "it waits for a signal, not for a credit";
  step = packets(StepKind::send_packets, 0, 8, 1);
  step.unit = 4;
  EXPECT_TRUE(kept(step));
  step = packets(StepKind::send_packets, 0, 8, 1);
  step.copy.inner_levels = 1;
  step.copy.inner[0] = {divisor(4), 16, 16};
  EXPECT_TRUE(kept(step)) << "words at two strides";
  step = packets(StepKind::send_packets, 0, 8, 1);
  step.copy.outer_from = int64_t{1} << 31;
  EXPECT_TRUE(kept(step)) << "a stride that a message has no room for";
  EXPECT_TRUE(kept(packets(StepKind::copy, 0, 8, 1)));
}

}  // namespace
}  // namespace pw::cuda
