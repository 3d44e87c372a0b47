// The link between this rank's GPU and one that CUDA_VISIBLE_DEVICES hides, as NVML reports it.
#include <gtest/gtest.h>

#include "built.h"
#include "device/cuda/nvml.h"

namespace pw::cuda {
namespace {

Uuid gpu(unsigned byte) {
  Uuid uuid;
  uuid.fill(static_cast<std::byte>(byte));
  return uuid;
}

struct Case {
  unsigned own, hidden;  // what each says of itself: fake_nvml.cpp
  const char* link;      // empty: not reachable
  const char* why_not;   // a part of it
};

TEST(HiddenGpu, IsReachedWhereNvmlSaysSo) {
  const Case cases[] = {
      {0x10, 0x11, "nvlink", ""},
      {0x11, 0x10, "nvlink", ""},
      {0x10, 0x20, "pcie", ""},
      {0x10, 0x31, "", "the chipset does not forward it"},
      {0x10, 0x32, "", "this model of GPU does not support it"},
      {0x10, 0x33, "", "the PCIe topology does not forward it"},
      {0x10, 0x34, "", "(regkey) disables it"},
      {0x10, 0x35, "", "the driver does not support it"},
      {0x10, 0x36, "", "the driver does not say why"},
      {0x10, 0x41, "", "GPU-41414141-4141-4141-4141-414141414141 is a MIG slice"},
      {0x41, 0x10, "", "GPU-41414141-4141-4141-4141-414141414141 is a MIG slice"},
      {0x10, 0x50, "", "no permission), as where a control group keeps the GPUs of tasks apart"},
      {0x10, 0x60, "", "Not Found"},
  };
  for (const Case& c : cases) {
    const PeerAccess access = access_to_hidden(kFakeNvml, gpu(c.own), gpu(c.hidden));
    EXPECT_EQ(access.link, c.link) << access.why_not;
    EXPECT_EQ(access.reachable, *c.link != 0) << access.why_not;
    EXPECT_NE(access.why_not.find(c.why_not), std::string::npos) << access.why_not;
    EXPECT_EQ(access.why_not.empty(), access.reachable);
  }
}

TEST(HiddenGpu, CountsAmongTheGpusOfTheHost) {
  EXPECT_EQ(names_of_gpus(kFakeNvml), (std::vector<std::string>{"Fake GPU", "Fake GPU"}));
  setenv("FAKE_NVML_APART", "1", 1);
  EXPECT_EQ(names_of_gpus(kFakeNvml).size(), 1u) << "the other one may not be opened";
  unsetenv("FAKE_NVML_APART");
  setenv("FAKE_NVML_SLICES", "1", 1);
  EXPECT_TRUE(names_of_gpus(kFakeNvml).empty());
  unsetenv("FAKE_NVML_SLICES");
  EXPECT_TRUE(names_of_gpus("/no/such/library.so").empty());
}

TEST(HiddenGpu, HasItsUuidAsNvidiaSmiWritesIt) {
  Uuid uuid{};
  uuid[0] = std::byte{0x5b};
  uuid[15] = std::byte{0x0f};
  EXPECT_EQ(uuid_text(uuid), "GPU-5b000000-0000-0000-0000-00000000000f");
}

}  // namespace
}  // namespace pw::cuda
