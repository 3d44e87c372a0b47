// How the target of a staged transfer handles a request, and how it reports failures.
#include <gtest/gtest.h>

#include "base/status.h"
#include "device/host/host.h"
#include "transport/staged/request.h"

namespace pw {
namespace {

TEST(LiesInside, TheLastByteCounts) {
  Shape shape;
  shape.block_bytes = 8;
  EXPECT_TRUE(lies_inside(shape, {}, 92, 100));
  EXPECT_FALSE(lies_inside(shape, {}, 93, 100));
  shape.dims = 2;
  shape.count = {3, 2, 0, 0};
  const Strides strides = {40, 8, 0, 0};  // ends at 2 * 40 + 8 + 8
  EXPECT_TRUE(lies_inside(shape, strides, 4, 100));
  EXPECT_FALSE(lies_inside(shape, strides, 5, 100));
}

TEST(LiesInside, NothingWrapsAround) {
  Shape shape;
  shape.block_bytes = UINT64_MAX;
  EXPECT_FALSE(lies_inside(shape, {}, 8, 1 << 20));
  shape.block_bytes = 8;
  shape.dims = 4;
  shape.count = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
  EXPECT_FALSE(lies_inside(shape, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, 0, UINT64_MAX));
  shape.dims = 1;
  shape.count = {2, 0, 0, 0};
  EXPECT_FALSE(lies_inside(shape, {-8, 0, 0, 0}, 0, 100)) << "a negative stride";
  shape.count = {0, 0, 0, 0};
  EXPECT_FALSE(lies_inside(shape, {8, 0, 0, 0}, 0, 100)) << "a count of zero";
}

TEST(LiesInside, NothingIsCopiedOverAndOver) {
  Shape shape;
  shape.block_bytes = 8;
  shape.dims = 2;
  shape.count = {uint64_t{1} << 40, uint64_t{1} << 40, 0, 0};
  EXPECT_FALSE(lies_inside(shape, {0, 0, 0, 0}, 0, 100));
}

class StagingTarget : public ::testing::Test {
 protected:
  [[nodiscard]] StagedRequest request(uint64_t offset, uint64_t bytes) const {
    return {Op::put, region->slot(), region->generation(), offset, contiguous_layout(bytes)};
  }
  ControlSegment control;
  Registry registry{control};
  std::shared_ptr<Region> region = registry.allocate(host_device(), 4096);
};

TEST_F(StagingTarget, FindsTheFirstByte) {
  const Target target(request(96, 4000), registry);
  EXPECT_EQ(target.status(), PW_OK);
  EXPECT_EQ(target.address(), region->address() + 96);
}

TEST_F(StagingTarget, RefusesWhatLeavesTheRegion) {
  const Target target(request(97, 4000), registry);
  EXPECT_EQ(target.status(), PW_OUT_OF_RANGE);
  EXPECT_EQ(target.address(), nullptr);
}

TEST_F(StagingTarget, ChecksTheSideThatIsItsOwn) {
  StagedRequest strided = request(0, 8);
  strided.layout.shape.dims = 1;
  strided.layout.shape.count = {2, 0, 0, 0};
  strided.layout.to = {4096, 0, 0, 0};
  strided.layout.from = {8, 0, 0, 0};
  EXPECT_EQ(Target(strided, registry).status(), PW_OUT_OF_RANGE);
  strided.op = Op::get;
  EXPECT_EQ(Target(strided, registry).status(), PW_OK);
}

TEST_F(StagingTarget, RefusesAClosedRegion) {
  const StagedRequest old = request(0, 8);
  region.reset();
  EXPECT_EQ(Target(old, registry).status(), PW_STALE_KEY);
}

TEST_F(StagingTarget, LetsGoOfARegionThatIsWantedBack) {
  Target target(request(0, 8), registry);
  EXPECT_FALSE(target.wanted_back());
  region->retire();
  EXPECT_TRUE(target.wanted_back());
  target.let_go();
  EXPECT_EQ(target.status(), PW_STALE_KEY);
  region.reset();  // returns, because nobody holds it
}

TEST(Failures, AreToldOnce) {
  std::atomic<uint64_t> told{0};
  EXPECT_EQ(tell_failure(0, told, 3), PW_OK);
  EXPECT_EQ(tell_failure(failure_word(1, PW_STALE_KEY), told, 3), PW_STALE_KEY);
  EXPECT_NE(std::string(last_error_message()).find("rank 3"), std::string::npos);
  EXPECT_EQ(tell_failure(failure_word(1, PW_STALE_KEY), told, 3), PW_OK);
  EXPECT_EQ(tell_failure(failure_word(2, PW_DEVICE), told, 3), PW_DEVICE);
}

}  // namespace
}  // namespace pw
