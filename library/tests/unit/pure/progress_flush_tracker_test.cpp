// The flush tracker: which operations each flush covers, and when the next is due.
#include <gtest/gtest.h>

#include "progress/flush_tracker.h"

namespace pw {
namespace {

void start(FlushTracker& flushes, int operations) {
  for (int i = 0; i < operations; ++i) {
    flushes.accept();
    flushes.issue();
  }
}

TEST(FlushTracker, NothingIsCompleteFromTheStart) {
  FlushTracker flushes;
  EXPECT_TRUE(flushes.all_complete());
  EXPECT_EQ(flushes.want(), Mark{0});
  EXPECT_FALSE(flushes.wanting());
  EXPECT_FALSE(flushes.due());
}

TEST(FlushTracker, AFlushCoversWhatWasIssuedBeforeIt) {
  FlushTracker flushes;
  start(flushes, 3);
  const Mark first = flushes.want();
  EXPECT_TRUE(flushes.due());
  flushes.begin();
  EXPECT_FALSE(flushes.due());  // one at a time
  start(flushes, 2);
  const Mark second = flushes.want();
  EXPECT_FALSE(flushes.reached(first));
  flushes.end();
  EXPECT_TRUE(flushes.reached(first));
  EXPECT_FALSE(flushes.reached(second));
  EXPECT_FALSE(flushes.all_complete());
  EXPECT_TRUE(flushes.due());
  flushes.begin();
  flushes.end();
  EXPECT_TRUE(flushes.reached(second));
  EXPECT_TRUE(flushes.all_complete());
  EXPECT_FALSE(flushes.wanting());
}

TEST(FlushTracker, WhatWaitsForRoomIsFlushedOnceItWasIssued) {
  FlushTracker flushes;
  start(flushes, 1);
  flushes.accept();
  const Mark mark = flushes.want();
  EXPECT_TRUE(flushes.wanting());
  EXPECT_FALSE(flushes.due());
  flushes.issue();
  EXPECT_TRUE(flushes.due());
  flushes.begin();
  flushes.end();
  EXPECT_TRUE(flushes.reached(mark));
}

TEST(FlushTracker, OneThatIsPutOffIsDueAgain) {
  FlushTracker flushes;
  start(flushes, 1);
  flushes.want();
  flushes.begin();
  EXPECT_TRUE(flushes.under_way());
  flushes.put_off();
  EXPECT_FALSE(flushes.under_way());
  EXPECT_TRUE(flushes.due());
}

TEST(FlushTracker, GivingUpEndsTheWaitForWhatIsWanted) {
  FlushTracker flushes;
  start(flushes, 4);
  const Mark mark = flushes.want();
  start(flushes, 1);
  flushes.give_up();
  EXPECT_TRUE(flushes.reached(mark));
  EXPECT_FALSE(flushes.all_complete());
  EXPECT_FALSE(flushes.wanting());
}

}  // namespace
}  // namespace pw
