// mapped: which pairs it serves and why not the others, and the maps of regions, on the fake driver.
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/cuda/pointer.h"
#include "fake_gpu.h"
#include "transport/mapped/mapped.h"

namespace pw {
namespace {

Pair pair_of(pw_device_kind local, pw_device_kind remote) {
  Pair pair;
  pair.local.kind = local;
  pair.remote.kind = remote;
  pair.remote_handle = remote == PW_HOST ? Handle::memfd : cuda::kFd;
  return pair;
}

Offer offer_of(Mapped& path, const Pair& pair, Region& local) {
  return Mapped::offer_for(pair, path.facts(pair, local));
}

class MappedTest : public testing::FakeGpuTest {
 protected:
  void SetUp() override {
    FakeGpuTest::SetUp();
    setenv("PEERWAY_GDRCOPY_LIBRARY", "/nowhere/libgdrapi.so.2", 1);
  }
  void TearDown() override { unsetenv("PEERWAY_GDRCOPY_LIBRARY"); }

  std::shared_ptr<Region> region() { return registry_.allocate(*gpu_, 100000); }
  void refuse_dma_bufs(int result) { fail("cuMemGetHandleForAddressRange", result); }

  ControlSegment control_;
  Registry registry_{control_};
  CpuMaps maps_;
};

TEST_F(MappedTest, ARegionIsMappedOnce) {
  const auto mapped_region = region();
  std::string why;
  CpuMapping* mapping = maps_.find(*mapped_region, why);
  ASSERT_NE(mapping, nullptr) << why;
  EXPECT_EQ(maps_.find(*mapped_region, why), mapping);
  mapping->address()[99999] = std::byte{7};
  EXPECT_EQ(mapped_region->address()[99999], std::byte{7});
}

TEST_F(MappedTest, TheReasonIsKeptForTheRegionAndNotForOthers) {
  const auto mapped_region = region();
  std::string why, again;
  refuse_dma_bufs(801);  // once
  EXPECT_EQ(maps_.find(*mapped_region, why), nullptr);
  EXPECT_EQ(maps_.find(*mapped_region, again), nullptr);
  EXPECT_EQ(why, again);
  EXPECT_NE(why.find("CUDA_ERROR_801"), std::string::npos) << why;
  EXPECT_NE(why.find("/nowhere/libgdrapi.so.2 was not found"), std::string::npos) << why;
  EXPECT_NE(maps_.find(*region(), why), nullptr);
}

TEST_F(MappedTest, GpuMemoryHereAndHostMemoryThatIsMappedAreServed) {
  Mapped path(maps_);
  const auto local = region();
  Pair pair = pair_of(PW_CUDA, PW_HOST);
  EXPECT_TRUE(offer_of(path, pair, *local).available);
  pair = pair_of(PW_CUDA, PW_HOST);
  pair.remote_handle = Handle::process;
  EXPECT_NE(offer_of(path, pair, *local).why_not.find("pw_region_allocate"), std::string::npos);
  EXPECT_TRUE(offer_of(path, pair, *local).suited);
  pair.same_process = true;
  EXPECT_TRUE(offer_of(path, pair, *local).available);
}

TEST_F(MappedTest, EveryOtherPairIsToldWhyNot) {
  Mapped path(maps_);
  bool suited = true;
  const auto reason = [&](Pair pair, Region& local) {
    const Offer offer = offer_of(path, pair, local);
    EXPECT_FALSE(offer.available);
    suited = offer.suited;
    return offer.why_not;
  };
  const auto gpu = region();
  const auto host = registry_.allocate(host_device(), 4096);
  EXPECT_NE(reason(pair_of(PW_CUDA, PW_CUDA), *gpu).find("only the owner"), std::string::npos);
  EXPECT_NE(reason(pair_of(PW_HOST, PW_CUDA), *host).find("only the owner"), std::string::npos);
  EXPECT_NE(reason(pair_of(PW_HOST, PW_HOST), *host).find("no GPU"), std::string::npos);
  Pair far = pair_of(PW_CUDA, PW_HOST);
  far.same_host = false;
  EXPECT_NE(reason(far, *gpu).find("another host"), std::string::npos);
  EXPECT_FALSE(suited);
  const auto refused = region();
  refuse_dma_bufs(801);
  EXPECT_NE(reason(pair_of(PW_CUDA, PW_HOST), *refused).find("801"), std::string::npos);
  EXPECT_TRUE(suited);
}

}  // namespace
}  // namespace pw
