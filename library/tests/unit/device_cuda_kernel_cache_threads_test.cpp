// The cache of compiled device code, used by several threads at a time, as ranks use it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "device/cuda/kernel_cache.h"

namespace pw::cuda {
namespace {

class SharedKernelCache : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/peerway-cache-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(SharedKernelCache, CompilesOnceForManyAtATime) {
  std::atomic<int> compilations = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      EXPECT_EQ(cached_image(folder_, "a",
                             [&] {
                               ++compilations;
                               std::this_thread::sleep_for(std::chrono::milliseconds(50));
                               return std::string("image");
                             }),
                "image");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compilations, 1);
  for (const auto& file : std::filesystem::directory_iterator(folder_))
    EXPECT_EQ(file.path().string(), cache_file(folder_, "a"));
}

TEST_F(SharedKernelCache, ThoseThatWaitedInVainCompileAtTheSameTime) {
  std::atomic<int> begun = 0;
  std::latch holds(1), come(3), others(3);
  const auto first = [&]() -> std::string {
    holds.count_down();
    come.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until they wait for the lock
    throw Error(PW_INTERNAL, "no");
  };
  const auto compile = [&]() -> std::string {
    ++begun;
    others.arrive_and_wait();  // all three, or the test stands
    throw Error(PW_INTERNAL, "no");
  };
  std::vector<std::thread> threads;
  threads.emplace_back([&] { EXPECT_THROW(cached_image(folder_, "a", first), Error); });
  holds.wait();
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      come.count_down();
      EXPECT_THROW(cached_image(folder_, "a", compile), Error);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(begun, 3);
}

}  // namespace
}  // namespace pw::cuda
