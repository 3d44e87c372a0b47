// Tests on the fake driver (fake_cuda/) as it is when nothing was done with it, with and without a device.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "built.h"
#include "device/cuda/cuda_device.h"
#include "fake_cuda/fake_cuda.h"

namespace pw::testing {

class FakeDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(kFakeCuda.c_str(), RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    reinterpret_cast<fake_cuda::Reset*>(dlsym(library_, "fake_cuda_reset"))();
    std::string why;
    driver_ = cuda::Driver::load(kFakeCuda, why);
    ASSERT_NE(driver_, nullptr) << why;
    pins_ = std::make_unique<cuda::Pins>(*driver_);
  }

  std::unique_ptr<cuda::CudaDevice> make_gpu(int index) {
    return std::make_unique<cuda::CudaDevice>(*driver_, index, *pins_,
                                              [](int, const auto&) { return std::string("an image"); });
  }

  /// The function's next call gives this result.
  void fail(const char* function, int result) {
    reinterpret_cast<fake_cuda::Fail*>(dlsym(library_, "fake_cuda_fail"))(function, result);
  }

  void* library_ = nullptr;
  std::unique_ptr<const cuda::Driver> driver_;
  std::unique_ptr<cuda::Pins> pins_;
};

class FakeGpuTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    if (!HasFatalFailure()) gpu_ = make_gpu(0);
  }

  std::unique_ptr<cuda::CudaDevice> gpu_;
};

}  // namespace pw::testing
