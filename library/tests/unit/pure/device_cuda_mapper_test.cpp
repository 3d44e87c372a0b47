// Mapping device memory for the CPU, on the fake driver and a fake GDRCopy.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "base/status.h"
#include "device/cuda/dmabuf.h"
#include "device/cuda/mapper.h"
#include "fake_gpu.h"

namespace pw::cuda {
namespace {

class CpuMapperTest : public pw::testing::FakeGpuTest {
 protected:
  void SetUp() override {
    FakeGpuTest::SetUp();
    memory_ = gpu_->allocate(100000);
  }
  void TearDown() override { unsetenv("FAKE_GDRCOPY_FAIL"); }

  // Bytes that the CPU stores are in the device's memory, and the other way round.
  void round_trip(CpuMapping& mapping) {
    std::byte out[5000], in[5000];
    for (size_t i = 0; i < sizeof out; ++i) out[i] = static_cast<std::byte>(i * 7);
    mapping.store(mapping.address() + 1003, out, sizeof out);
    EXPECT_EQ(std::memcmp(memory_.base + 1003, out, sizeof out), 0);
    memory_.base[2000] = std::byte{99};
    out[997] = std::byte{99};
    mapping.load(in, mapping.address() + 1003, sizeof in);
    EXPECT_EQ(std::memcmp(in, out, sizeof in), 0);
  }

  Allocation memory_;
};

TEST_F(CpuMapperTest, DmabufMapsTheAllocation) {
  const auto mapping = make_dmabuf_mapper()->map(*gpu_, memory_);
  EXPECT_NE(mapping->address(), memory_.base);
  round_trip(*mapping);
}

TEST_F(CpuMapperTest, ARefusedMapSaysWhatToInstall) {
  const std::string why = why_no_dmabuf_map(524);
  EXPECT_NE(why.find("errno 524"), std::string::npos) << why;
  EXPECT_NE(why.find("gdrdrv"), std::string::npos) << why;
  EXPECT_NE(why_no_dmabuf_map(ENOMEM).find("BAR1"), std::string::npos);
}

TEST_F(CpuMapperTest, GdrcopyMapsTheAllocation) {
  std::string why;
  const auto mapper = make_gdrcopy_mapper(kFakeGdrcopy, why);
  ASSERT_NE(mapper, nullptr) << why;
  const auto mapping = mapper->map(*gpu_, memory_);
  EXPECT_EQ(mapping->address(), memory_.base);
  round_trip(*mapping);
}

TEST_F(CpuMapperTest, GdrcopySaysWhyNot) {
  std::string why;
  EXPECT_EQ(make_gdrcopy_mapper("/nowhere/libgdrapi.so.2", why), nullptr);
  EXPECT_NE(why.find("/nowhere/libgdrapi.so.2 was not found"), std::string::npos) << why;
  EXPECT_EQ(make_gdrcopy_mapper("libm.so.6", why), nullptr);
  EXPECT_NE(why.find("GDRCopy 2.0"), std::string::npos) << why;
  setenv("FAKE_GDRCOPY_FAIL", "open", 1);
  EXPECT_EQ(make_gdrcopy_mapper(kFakeGdrcopy, why), nullptr);
  EXPECT_NE(why.find("modprobe gdrdrv"), std::string::npos) << why;
}

TEST_F(CpuMapperTest, TheFirstMapperThatCanIsTaken) {
  std::string why;
  std::vector<std::unique_ptr<CpuMapper>> mappers;
  mappers.push_back(make_gdrcopy_mapper(kFakeGdrcopy, why));
  mappers.push_back(make_dmabuf_mapper());
  EXPECT_EQ(map_for_cpu(mappers, "", *gpu_, memory_)->address(), memory_.base);
  setenv("FAKE_GDRCOPY_FAIL", "map", 1);
  EXPECT_NE(map_for_cpu(mappers, "", *gpu_, memory_)->address(), memory_.base);
  fail("cuMemGetHandleForAddressRange", 801);
  try {
    map_for_cpu(mappers, "something before", *gpu_, memory_);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.status(), PW_UNAVAILABLE);
    for (const char* part :
         {"cuda:0", "something before", "; mapping", "asking for a dma-buf", "CUDA_ERROR_801"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace pw::cuda
