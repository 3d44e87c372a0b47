// The cache of compiled device code, and how the compiler is found.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"

namespace pw::cuda {
namespace {

class KernelCache : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/peerway-cache-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    chmod(folder_.c_str(), 0700);
    std::filesystem::remove_all(folder_);
  }
  std::string get(const std::string& key) {
    return cached_image(folder_, key, [&] {
      ++compilations_;
      return "image of " + key + std::string("\0\n", 2);
    });
  }
  std::string lock_of(const std::string& key) { return cache_file(folder_, key) + ".lock"; }
  /// Starts a process that compiles for ever, and returns when it does.
  pid_t process_that_compiles(const std::string& key) {
    int begun[2];
    EXPECT_EQ(pipe(begun), 0);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      cached_image(folder_, key, [&]() -> std::string {
        close(begun[1]);
        while (true) pause();
      });
    }
    close(begun[1]);
    char nothing = 0;
    EXPECT_EQ(read(begun[0], &nothing, 1), 0);  // the end, since nobody has the other end any more
    close(begun[0]);
    return child;
  }
  static void kill_and_reap(pid_t process) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  static bool has_open(pid_t process, const std::string& path) {
    std::error_code ended;
    for (const auto& file :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", ended))
      if (std::filesystem::read_symlink(file.path(), ended) == path) return true;
    return false;
  }
  std::string folder_;
  int compilations_ = 0;
};

TEST_F(KernelCache, CompilesOnceAKey) {
  EXPECT_EQ(get("a"), get("a"));
  EXPECT_EQ(compilations_, 1);
  EXPECT_NE(get("b"), get("a"));
  EXPECT_EQ(compilations_, 2);
}

TEST_F(KernelCache, AProcessThatIsKilledWhileItCompilesLeavesALockThatTheNextRemoves) {
  kill_and_reap(process_that_compiles("a"));
  EXPECT_TRUE(std::filesystem::exists(lock_of("a")));
  get("a");
  EXPECT_EQ(compilations_, 1);
  EXPECT_FALSE(std::filesystem::exists(lock_of("a")));
}

TEST_F(KernelCache, AProcessThatWaitsForOneThatIsKilledCompiles) {
  const pid_t killed = process_that_compiles("a");
  const pid_t waiting = fork();
  if (waiting == 0) _exit(get("a").starts_with("image of a") ? 0 : 1);
  int status = -1;
  while (!has_open(waiting, lock_of("a")) && waitpid(waiting, &status, WNOHANG) == 0) usleep(1000);
  kill_and_reap(killed);
  waitpid(waiting, &status, 0);
  EXPECT_EQ(status, 0);
  get("a");
  EXPECT_EQ(compilations_, 0);  // in this process
  EXPECT_FALSE(std::filesystem::exists(lock_of("a")));
}

TEST_F(KernelCache, AProcessThatCannotCompileHoldsNobodyUp) {
  EXPECT_THROW(cached_image(folder_, "a", []() -> std::string { throw Error(PW_INTERNAL, "no"); }), Error);
  EXPECT_EQ(get("a").rfind("image of a", 0), 0u);
}

TEST_F(KernelCache, ADamagedFileIsCompiledAnew) {
  const std::string image = get("a");
  const std::string path = cache_file(folder_, "a");
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('x');
  EXPECT_EQ(get("a"), image);
  EXPECT_EQ(compilations_, 2);
  std::filesystem::resize_file(path, 20);
  EXPECT_EQ(get("a"), image);
  EXPECT_EQ(compilations_, 3);
  EXPECT_EQ(get("a"), image);
  EXPECT_EQ(compilations_, 3);
}

TEST_F(KernelCache, AFileUnderTheSameNameOfAnotherKeyIsNotTaken) {
  get("a");
  std::filesystem::copy_file(cache_file(folder_, "a"), cache_file(folder_, "b"));
  EXPECT_EQ(get("b").rfind("image of b", 0), 0u);
  EXPECT_EQ(compilations_, 2);
}

TEST_F(KernelCache, AFileThatOthersCanWriteIsNotTaken) {
  get("a");
  chmod(cache_file(folder_, "a").c_str(), 0666);
  get("a");
  EXPECT_EQ(compilations_, 2);
}

TEST_F(KernelCache, WorksWithoutAFolder) {
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "in the way";
  EXPECT_EQ(cached_image(file + "/kernels", "a", [] { return std::string("image"); }), "image");
}

TEST(Nvrtc, SaysWhatWasTried) {
  std::string why;
  const std::vector<std::string> candidates = {"/nowhere/libnvrtc.so.13"};
  EXPECT_EQ(Nvrtc::load(candidates, why), nullptr);
  EXPECT_NE(why.find("/nowhere/libnvrtc.so.13"), std::string::npos) << why;
  EXPECT_NE(why.find("nvidia-cuda-nvrtc"), std::string::npos) << why;
}

TEST(Nvrtc, ASettingIsTheOnlyCandidate) {
  EXPECT_EQ(nvrtc_candidates("/a/libnvrtc.so"), std::vector<std::string>{"/a/libnvrtc.so"});
  EXPECT_GE(nvrtc_candidates("").size(), 2u);
}

}  // namespace
}  // namespace pw::cuda
