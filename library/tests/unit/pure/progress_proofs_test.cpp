// Marks by proofs: which operations each proof is of, and when the next is due.
#include <gtest/gtest.h>

#include "progress/proofs.h"

namespace pw {
namespace {

void start(Proofs& proofs, int operations) {
  for (int i = 0; i < operations; ++i) {
    proofs.accept();
    proofs.issue();
  }
}

TEST(Proofs, NothingIsCompleteFromTheStart) {
  Proofs proofs;
  EXPECT_TRUE(proofs.all_complete());
  EXPECT_EQ(proofs.want(), Mark{0});
  EXPECT_FALSE(proofs.wanting());
  EXPECT_FALSE(proofs.due());
}

TEST(Proofs, AProofIsOfWhatWasIssuedBeforeIt) {
  Proofs proofs;
  start(proofs, 3);
  const Mark first = proofs.want();
  EXPECT_TRUE(proofs.due());
  proofs.begin();
  EXPECT_FALSE(proofs.due());  // one at a time
  start(proofs, 2);
  const Mark second = proofs.want();
  EXPECT_FALSE(proofs.reached(first));
  proofs.end();
  EXPECT_TRUE(proofs.reached(first));
  EXPECT_FALSE(proofs.reached(second));
  EXPECT_FALSE(proofs.all_complete());
  EXPECT_TRUE(proofs.due());
  proofs.begin();
  proofs.end();
  EXPECT_TRUE(proofs.reached(second));
  EXPECT_TRUE(proofs.all_complete());
  EXPECT_FALSE(proofs.wanting());
}

TEST(Proofs, WhatWaitsForRoomIsProvenOnceItWasIssued) {
  Proofs proofs;
  start(proofs, 1);
  proofs.accept();
  const Mark mark = proofs.want();
  EXPECT_TRUE(proofs.wanting());
  EXPECT_FALSE(proofs.due());
  proofs.issue();
  EXPECT_TRUE(proofs.due());
  proofs.begin();
  proofs.end();
  EXPECT_TRUE(proofs.reached(mark));
}

TEST(Proofs, OneThatIsPutOffIsDueAgain) {
  Proofs proofs;
  start(proofs, 1);
  proofs.want();
  proofs.begin();
  EXPECT_TRUE(proofs.under_way());
  proofs.put_off();
  EXPECT_FALSE(proofs.under_way());
  EXPECT_TRUE(proofs.due());
}

TEST(Proofs, WhereThereIsNoneAnyMoreWhatIsWantedIsOver) {
  Proofs proofs;
  start(proofs, 4);
  const Mark mark = proofs.want();
  start(proofs, 1);
  proofs.give_up();
  EXPECT_TRUE(proofs.reached(mark));
  EXPECT_FALSE(proofs.all_complete());
  EXPECT_FALSE(proofs.wanting());
}

}  // namespace
}  // namespace pw
