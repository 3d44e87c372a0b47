// The probes of both paths of UCX are pure: from the facts of a pair to yes, or to a reason.
#include <gtest/gtest.h>

#include "path/ucx/direct.h"
#include "path/ucx/staged.h"
#include "team/team.h"

namespace pw {
namespace {

class Nobody final : public Team {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] uint64_t job() const override { return 1; }
  [[nodiscard]] Secret secret_for(std::string_view) const override { return {}; }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t) override {
    return {mine.begin(), mine.end()};
  }
  [[nodiscard]] bool lost(int) const noexcept override { return false; }
  [[nodiscard]] int any_lost() const noexcept override { return -1; }
  [[nodiscard]] std::string describe_loss(int) const override { return {}; }
  [[nodiscard]] std::shared_ptr<void> on_loss(std::function<void(int)>) override { return nullptr; }
};

class UcxProbe : public ::testing::Test {
 protected:
  UcxProbe() {
    pair.same_host = false;
    pair.ucx_running = pair.ucx_key = pair.ucx_device_memory = true;
  }
  Nobody team;
  ControlSegment control;
  Registry registry{control};
  Importer importer{control, 0, {make_card(control)}};
  ucx::Ucx ucx;
  Progress progress{team, control};
  Surroundings surroundings{team, control, importer, registry, progress};
  UcxDirect direct{ucx};
  UcxStaged staged{surroundings, ucx};
  Pair pair;
};

TEST_F(UcxProbe, BothServeAnyPairWhereUcxRuns) {
  EXPECT_TRUE(direct.probe(pair).available);
  EXPECT_TRUE(staged.probe(pair).available);
  pair.local.kind = pair.remote.kind = PW_CUDA;
  EXPECT_TRUE(direct.probe(pair).available);
  EXPECT_TRUE(staged.probe(pair).available);
}

TEST_F(UcxProbe, WithoutUcxTheReasonIsGiven) {
  pair.ucx_running = pair.ucx_key = false;
  pair.why_no_ucx = "at rank 4: no UCX was found";
  for (const Path* path : {static_cast<const Path*>(&direct), static_cast<const Path*>(&staged)}) {
    EXPECT_FALSE(path->probe(pair).available);
    EXPECT_EQ(path->probe(pair).why_not, pair.why_no_ucx);
    pair.same_host = false;
    EXPECT_TRUE(path->probe(pair).suited);
    pair.same_host = true;
    EXPECT_FALSE(path->probe(pair).suited);
  }
}

TEST_F(UcxProbe, OnlyTheDirectPathNeedsUcxToSeeTheGpu) {
  pair.remote.kind = PW_CUDA;
  pair.ucx_device_memory = pair.ucx_key = false;
  pair.why_no_ucx = "UCX at rank 1 could not register this memory";
  pair.why_no_ucx_device_memory = "UCX 1.13.1 has no CUDA support";
  EXPECT_FALSE(direct.probe(pair).available);
  EXPECT_EQ(direct.probe(pair).why_not, "UCX 1.13.1 has no CUDA support");
  EXPECT_TRUE(staged.probe(pair).available);
}

TEST_F(UcxProbe, AContextThatHasNotStartedUcxMakesNoKeysAndHasNothingUnderWay) {
  EXPECT_EQ(ucx.engine(), nullptr);
  EXPECT_TRUE(ucx.key_of(control).empty());
  EXPECT_EQ(direct.mark(0), Mark{0});
  EXPECT_EQ(staged.mark(0), Mark{0});
}

}  // namespace
}  // namespace pw
