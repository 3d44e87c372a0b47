// The offers of both paths of UCX depend on the facts of a pair alone.
#include <gtest/gtest.h>

#include "team/team.h"
#include "transport/ucx/direct.h"
#include "transport/ucx/staged.h"

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

class UcxOffer : public ::testing::Test {
 protected:
  UcxOffer() {
    pair.same_host = false;
    facts.running = facts.key = facts.memory = true;
  }
  Nobody team;
  ControlSegment control;
  Registry registry{control};
  const ProcessFacts process = facts_of_process(control);
  Importer importer{control, 0, {&process, 1}};
  Progress progress{team, control};
  AttachmentNumbers attachments;
  Surroundings surroundings{team, control, importer, registry, progress, attachments};
  ucx::Ucx ucx{surroundings};
  UcxDirect direct{ucx};
  UcxStaged staged{surroundings, ucx};
  Pair pair;
  ucx::Facts facts;
};

TEST_F(UcxOffer, BothServeAnyPairWhereUcxRuns) {
  EXPECT_TRUE(UcxDirect::offer_for(pair, facts).available);
  EXPECT_TRUE(UcxStaged::offer_for(pair, facts).available);
  pair.local.kind = pair.remote.kind = PW_CUDA;
  EXPECT_TRUE(UcxDirect::offer_for(pair, facts).available);
  EXPECT_TRUE(UcxStaged::offer_for(pair, facts).available);
}

TEST_F(UcxOffer, WithoutUcxTheReasonIsGiven) {
  facts.running = facts.key = false;
  facts.why_not = "at rank 4: no UCX was found";
  for (const auto offer_for : {&UcxDirect::offer_for, &UcxStaged::offer_for}) {
    EXPECT_FALSE(offer_for(pair, facts).available);
    EXPECT_EQ(offer_for(pair, facts).why_not, facts.why_not);
    pair.same_host = false;
    EXPECT_TRUE(offer_for(pair, facts).suited);
    pair.same_host = true;
    EXPECT_FALSE(offer_for(pair, facts).suited);
  }
}

TEST_F(UcxOffer, OnlyTheDirectPathNeedsUcxToSeeTheGpu) {
  pair.remote.kind = PW_CUDA;
  facts.memory = facts.key = false;
  facts.why_not = "UCX at rank 1 could not register this memory";
  facts.why_no_memory = "UCX 1.13.1 sees no cuda memory";
  EXPECT_FALSE(UcxDirect::offer_for(pair, facts).available);
  EXPECT_EQ(UcxDirect::offer_for(pair, facts).why_not, "UCX 1.13.1 sees no cuda memory");
  EXPECT_TRUE(UcxStaged::offer_for(pair, facts).available);
}

TEST_F(UcxOffer, AContextThatHasNotStartedUcxMakesNoKeysAndHasNothingUnderWay) {
  EXPECT_EQ(ucx.engine(), nullptr);
  Key key;
  ucx.attach_signals(key);
  EXPECT_TRUE(key.attached.empty());
  EXPECT_EQ(direct.mark(0), Mark{0});
  EXPECT_EQ(staged.mark(0), Mark{0});
}

}  // namespace
}  // namespace pw
