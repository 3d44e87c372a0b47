// The tests of this folder run under ASan and UBSan only: TSan would find nothing in them, because none
// starts a thread. The kernel sees to that: here a thread cannot be started.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <system_error>
#include <thread>

namespace {

/// clone() fails with EPERM where it asks for a thread, and clone3(), whose flags no filter can read, as if
/// the kernel were too old for it: then glibc calls clone(). New processes are left alone; LeakSanitizer
/// makes one.
bool forbid_threads() {
  constexpr auto kNumber = offsetof(seccomp_data, nr);
  constexpr auto kFlags =
      offsetof(seccomp_data, args);  // the lower half: both our architectures are little-endian
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Pure, NoTestHereCanStartAThread) {
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
}

}  // namespace

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  if (!forbid_threads()) {
    std::perror("unit_pure: threads cannot be forbidden by a seccomp filter");
    return 1;
  }
  const int status = RUN_ALL_TESTS();
  if (status != 0)
    std::fputs(
        "unit_pure: no thread can be started here; a test with threads belongs in the folder above, for "
        "TSan\n",
        stderr);
  return status;
}
