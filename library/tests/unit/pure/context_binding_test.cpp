// Which GPU a rank gets, under any launcher.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/status.h"
#include "context/binding.h"
#include "memory/importer.h"

namespace pw {
namespace {

class Binding : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("PEERWAY_DEVICE"); }
};

TEST_F(Binding, IsByTheLocalRankModuloTheGpus) {
  EXPECT_EQ(bound_gpu(0, 2), 0);
  EXPECT_EQ(bound_gpu(1, 2), 1);
  EXPECT_EQ(bound_gpu(5, 2), 1);
  EXPECT_EQ(bound_gpu(3, 1), 0) << "the launcher shows each rank one GPU";
  EXPECT_EQ(bound_gpu(3, 0), 0) << "asking for that device then says that there is none";
}

TEST_F(Binding, IsByTheSettingWhereThereIsOne) {
  ::setenv("PEERWAY_DEVICE", "3", 1);
  EXPECT_EQ(bound_gpu(0, 4), 3);
  EXPECT_EQ(bound_gpu(0, 0), 3) << "asking for that device then says that there is none";
  for (const char* number : {"3", "4294967296"}) try {  // the second is 0 in 32 bits
      ::setenv("PEERWAY_DEVICE", number, 1);
      bound_gpu(0, 1);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_BAD_CONFIG);
      EXPECT_NE(
          std::string(error.what()).find(std::string("is ") + number + ", but this process sees 1 GPU,"),
          std::string::npos)
          << error.what();
    }
}

TEST(LocalRank, CountsTheRanksBeforeItOnItsHost) {
  ControlSegment control;
  std::vector<ProcessFacts> processes(5);
  for (size_t rank = 0; rank < processes.size(); ++rank) processes[rank].host_id = rank % 2;
  const int expected[] = {0, 0, 1, 1, 2};
  for (int rank = 0; rank < 5; ++rank)
    EXPECT_EQ(Importer(control, rank, processes).local_rank(), expected[rank]);
}

}  // namespace
}  // namespace pw
