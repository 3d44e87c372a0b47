// The description of a region that a NIC's plugin gets, and the memory that its descriptor stands for.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "fake_gpu.h"
#include "memory/region.h"
#include "transport/nic/memory_description.h"

namespace pw::nic {
namespace {

class NicMemoryDescriptionTest : public testing::FakeGpuTest {
 protected:
  ControlSegment control_;
  Registry registry_{control_};
};

TEST_F(NicMemoryDescriptionTest, OfAGpuHasADmaBufWithTheRegionsBytes) {
  const auto whole = registry_.allocate(*gpu_, 100000);
  Region part(*gpu_, whole->allocation(), whole->address() + 5000, 1000, Access::read_write, nullptr,
              control_);
  const MemoryDescription description(part);
  EXPECT_EQ(description.nic_span().kind, PW_NIC_CUDA);
  EXPECT_EQ(description.nic_span().device, 0);
  EXPECT_EQ(description.nic_span().address, part.address());
  EXPECT_EQ(description.nic_span().bytes, 1000u);
  ASSERT_GE(description.nic_span().descriptor, 0);
  void* map = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, description.nic_span().descriptor, 0);
  ASSERT_NE(map, MAP_FAILED);
  part.address()[0] = std::byte{7};
  EXPECT_EQ(static_cast<std::byte*>(map)[description.nic_span().descriptor_offset], std::byte{7});
  munmap(map, 8192);
}

TEST_F(NicMemoryDescriptionTest, OfAGpuWhoseDriverHasNoDmaBufHasNone) {
  const auto region = registry_.allocate(*gpu_, 100000);
  fail("cuMemGetHandleForAddressRange", 801);
  const MemoryDescription description(*region);
  EXPECT_EQ(description.nic_span().kind, PW_NIC_CUDA);
  EXPECT_EQ(description.nic_span().descriptor, -1);
}

TEST_F(NicMemoryDescriptionTest, OfSharedHostMemoryHasItsFile) {
  const auto region = registry_.allocate(host_device(), 5000);
  EXPECT_GE(MemoryDescription(*region).nic_span().descriptor, 0);
  alignas(64) std::byte own[64];
  const auto registered = registry_.add(own, sizeof own);
  EXPECT_EQ(MemoryDescription(*registered).nic_span().descriptor, -1);
  EXPECT_EQ(MemoryDescription(*registered).nic_span().address, own);
}

}  // namespace
}  // namespace pw::nic
