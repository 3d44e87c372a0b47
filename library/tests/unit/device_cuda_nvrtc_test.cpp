// The compiler of device code: what it makes, and how its mistakes are told.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status.h"
#include "device/cuda/nvrtc.h"

namespace pw::cuda {
namespace {

class NvrtcCompile : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* setting = std::getenv("PEERWAY_NVRTC_LIBRARY");
    nvrtc_ = Nvrtc::load(nvrtc_candidates(setting != nullptr ? setting : ""), why_);
    if (nvrtc_ == nullptr) GTEST_SKIP() << why_;
  }
  std::unique_ptr<Nvrtc> nvrtc_;
  std::string why_;
};

// library/tests/python/test_device_code.py compiles them for each GPU.
TEST_F(NvrtcCompile, TheKernelsBecomeCodeOfAGpu) {
  const std::string image = nvrtc_->compile(kernel_sources(), nvrtc_->options(90));
  EXPECT_EQ(image.substr(1, 3), "ELF");
  for (const char* name : {"pw_copy_16", "pw_copy_8", "pw_copy_4", "pw_copy_2", "pw_copy_1"})
    EXPECT_NE(image.find(name), std::string::npos) << name;
}

TEST_F(NvrtcCompile, AGpuNewerThanTheCompilerGetsPtx) {
  auto options = nvrtc_->options(999);
  EXPECT_EQ(options[0].rfind("-arch=compute_", 0), 0u) << options[0];
  options.emplace_back("--device-debug");  // not optimized, which takes a fifth of the time
  EXPECT_NE(nvrtc_->compile(kernel_sources(), options).find(".target"), std::string::npos);
}

TEST_F(NvrtcCompile, AMistakeIsShownWithTheLog) {
  const KernelSource wrong[] = {{"wrong.cu", "this is no program"}};
  try {
    FAIL() << nvrtc_->compile(wrong, nvrtc_->options(90)).size();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("wrong.cu(1)"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace pw::cuda
