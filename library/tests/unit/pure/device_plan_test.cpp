// The pieces of a plan's copies, shared by any number of workers; here they run one after another.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "peerway/device.cuh"

namespace peerway::device {
namespace {

constexpr unsigned kHead = 3, kTail = 5, kWords = 37;
constexpr unsigned kBytes = kHead + kWords * sizeof(Word) + kTail;
constexpr unsigned kMostPieces = 7;

/// A copy of bytes that have all values, and the words around it.
struct SharedCopy : testing::Test {
  SharedCopy() {
    std::iota(from.begin(), from.end(), static_cast<unsigned char>(1));
    step.kind = StepKind::copy;
    step.unit = sizeof(Word);
    step.early = 1;
    step.rank = 1;
    step.copy.to = to.data() + sizeof(Word);
    step.copy.from = from.data() + sizeof(Word);
    step.copy.words = kWords;
    step.copy.outer_to = step.copy.outer_from = sizeof(Word);
    step.copy.head = kHead;
    step.copy.tail = kTail;
    step.mark = {marks.data(), 100, 10, 0};
  }

  void in_pieces(unsigned pieces) {
    step.pieces = pieces;
    step.share = (kWords + pieces - 1) / pieces;
  }
  void with_one_mark() {
    step.words = 1;
    step.finished = &finished;
  }
  void with_a_mark_for_each_piece() { step.words = step.pieces; }

  bool run(unsigned worker, unsigned workers) {
    return detail::run_pieces(Thread{}, &step, 0, step.pieces, epochs.data(), guard, worker, workers);
  }

  /// Whether what was to be copied, and nothing else, is at the target; which is empty after that.
  bool copied() {
    std::vector<unsigned char> wanted(to.size(), 0);
    std::copy_n(from.begin() + sizeof(Word) - kHead, kBytes, wanted.begin() + sizeof(Word) - kHead);
    const bool same = to == wanted;
    to.assign(to.size(), 0);
    return same;
  }

  std::vector<unsigned char> from = std::vector<unsigned char>(kBytes + 16),
                             to = from;  // with 8 bytes around
  std::array<Word, kMostPieces> marks{}, waits{}, epochs{};
  Word finished = 0;
  Word stop = 0, report = 0, polled = 0;
  pw_guard guard{&stop, &report, &polled, 1000000};
  Step step{};
};

TEST_F(SharedCopy, AnyNumberOfWorkersCopiesAllOfIt) {
  for (unsigned pieces = 1; pieces <= kMostPieces; ++pieces)
    for (unsigned workers = 1; workers <= kMostPieces + 1; ++workers) {
      SCOPED_TRACE(testing::Message() << pieces << " pieces, " << workers << " workers");
      in_pieces(pieces);
      with_one_mark();
      for (unsigned worker = 0; worker < workers; ++worker) EXPECT_TRUE(run(worker, workers));
      EXPECT_TRUE(copied());
      epochs.fill(0);
      finished = 0;
    }
}

TEST_F(SharedCopy, TheWorkersMayChangeFromStartToStart) {
  in_pieces(5);
  with_one_mark();
  Word epoch = 0;
  for (const unsigned workers : {1u, 5u, 2u, 3u, 4u, 1u}) {
    const Word before = marks[0];
    for (unsigned worker = 0; worker < workers; ++worker) {
      EXPECT_EQ(marks[0], before) << "before the last has finished";
      EXPECT_TRUE(run(worker, workers));
    }
    ++epoch;
    EXPECT_EQ(marks[0], 100 + epoch * 10) << workers << " workers";
    EXPECT_TRUE(copied());
    for (unsigned piece = 0; piece < 5; ++piece) EXPECT_EQ(epochs[piece], epoch) << "piece " << piece;
  }
}

TEST_F(SharedCopy, EachPieceHasItsOwnMarkAndWait) {
  in_pieces(5);
  with_a_mark_for_each_piece();
  step.wait = {waits.data(), 0, 1, 0};
  waits.fill(1);
  EXPECT_TRUE(run(1, 2));
  EXPECT_EQ(marks, (std::array<Word, kMostPieces>{0, 110, 0, 110}));
  EXPECT_TRUE(run(0, 2));
  EXPECT_EQ(marks, (std::array<Word, kMostPieces>{110, 110, 110, 110, 110}));
  EXPECT_TRUE(copied());
}

TEST_F(SharedCopy, NothingIsStoredBeforeTheTargetMayBeWritten) {
  in_pieces(3);
  with_a_mark_for_each_piece();
  step.wait = {waits.data(), 0, 1, 0};
  for (const unsigned early : {1u, 0u}) {
    step.early = early;
    EXPECT_FALSE(run(0, 1));
    EXPECT_EQ(to, std::vector<unsigned char>(to.size(), 0));
    EXPECT_EQ(marks, (std::array<Word, kMostPieces>{}));
    for (unsigned piece = 0; piece < 3; ++piece)
      EXPECT_NE(epochs[piece] & kCancelled, 0u) << "piece " << piece;
    epochs.fill(0);
  }
}

TEST_F(SharedCopy, ACancelledPieceCancelsAllThatItsWorkerDoes) {
  in_pieces(4);
  with_one_mark();
  epochs[2] = kCancelled;
  EXPECT_FALSE(run(0, 2));
  EXPECT_EQ(to, std::vector<unsigned char>(to.size(), 0));
  EXPECT_EQ(finished, 0u);
  EXPECT_EQ(epochs[0], kCancelled);
  EXPECT_EQ(epochs[2], kCancelled);
  EXPECT_EQ(epochs[1], 0u) << "of the other worker";
}

TEST_F(SharedCopy, TheSourceTurnsWithTheEpoch) {
  in_pieces(2);
  step.early = 0;
  step.copy.head = step.copy.tail = 0;
  step.copy.words = 2;
  step.share = 1;
  step.mark = {};
  step.to_odd_offset = 16;
  step.from_odd_offset = 32;
  ASSERT_TRUE(run(0, 1));
  EXPECT_TRUE(std::equal(from.begin() + 40, from.begin() + 56, to.begin() + 24)) << "epoch 1 is odd";
  to.assign(to.size(), 0);
  ASSERT_TRUE(run(0, 1));
  EXPECT_TRUE(std::equal(from.begin() + 8, from.begin() + 24, to.begin() + 8));
}

}  // namespace
}  // namespace peerway::device
