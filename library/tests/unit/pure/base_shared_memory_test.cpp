// Memory that processes share: it stays as long as they have it, whatever somebody does to its file.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/shared_memory.h"

namespace pw {
namespace {

// Touching mapped memory beyond the end of a file ends the process with SIGBUS.
TEST(SharedMemory, IsMadeShorterByNobody) {
  const Descriptor shared = make_shared_memory("peerway-test", 8192, 4096);
  ASSERT_TRUE(shared);
  for (const off_t bytes : {off_t{0}, off_t{4096}}) {
    EXPECT_EQ(ftruncate(shared.get(), bytes), -1);
    EXPECT_EQ(errno, EPERM);
  }
  void* mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, shared.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  static_cast<volatile char*>(mapped)[8191] = 1;
  munmap(mapped, 8192);
}

TEST(SharedMemory, IsHeldPieceByPiece) {
  const Descriptor shared = make_shared_memory("peerway-test", 3 * 4096, 4096);
  ASSERT_TRUE(shared);
  const auto held = [&] {
    struct stat found{};
    fstat(shared.get(), &found);
    return found.st_blocks * 512;
  };
  EXPECT_EQ(held(), 4096);
  EXPECT_TRUE(hold_memory(shared, 8192, 4096));
  EXPECT_EQ(held(), 2 * 4096);
}

}  // namespace
}  // namespace pw
