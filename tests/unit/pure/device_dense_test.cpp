// Dense packets: what one end sends in words of its size the other receives in words of another.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "device/steps.h"
#include "peerway/device.cuh"

namespace peerway::device {
namespace {

constexpr unsigned kGap = 16;  // bytes between words in memory

/// Ends of a lane of `bytes` bytes in `pieces` pieces: a step that sends and one that receives, run by hand.
class Lane {
 public:
  Lane(unsigned bytes, unsigned unit_there, unsigned unit_here, unsigned pieces)
      : bytes_(bytes), out_(2 * kGap * bytes + 64), in_(out_.size()) {
    const unsigned packets = dense_packets(static_cast<unsigned>(pw::dense_share(bytes, pieces)));
    slots_.resize(2 * pieces * packets);
    send_ = make(StepKind::send_dense, unit_there, pieces);
    receive_ = make(StepKind::receive_dense, unit_here, pieces);
    send_.copy.from = out_.data();
    send_.copy.to = receive_from();
    receive_.copy.from = receive_from();
    receive_.copy.to = in_.data();
    send_.to_turn = receive_.from_turn = static_cast<long long>(pieces * packets * sizeof(DensePacket));
  }

  void fill(unsigned seed) {
    for (unsigned b = 0; b < bytes_; ++b)
      out_[at(b, send_.unit)] = static_cast<unsigned char>(seed + 31 * b + b / 251);
    std::fill(in_.begin(), in_.end(), static_cast<unsigned char>(0xee));
  }
  bool send(unsigned workers) { return run(send_, sent_, workers); }
  bool receive(unsigned workers) { return run(receive_, received_, workers); }

  /// Whether every byte came, and nothing was stored between the words.
  bool right() const {
    std::vector<unsigned char> wanted(in_.size(), 0xee);
    for (unsigned b = 0; b < bytes_; ++b) wanted[at(b, receive_.unit)] = out_[at(b, send_.unit)];
    return in_ == wanted;
  }

 private:
  Step make(StepKind kind, unsigned unit, unsigned pieces) const {
    Step step{};
    step.kind = kind;
    step.pieces = pieces;
    step.unit = unit;
    step.words = 1;
    step.share = static_cast<unsigned>(pw::dense_share(bytes_, pieces)) / unit;
    step.copy.words = bytes_ / unit;
    step.copy.outer_to = step.copy.outer_from = unit + kGap;
    return step;
  }
  unsigned char* receive_from() { return reinterpret_cast<unsigned char*>(slots_.data()); }
  static unsigned at(unsigned byte, unsigned unit) { return byte / unit * (unit + kGap) + byte % unit; }
  bool run(const Step& step, std::vector<Word>& epochs, unsigned workers) {
    epochs.resize(step.pieces);
    bool whole = true;
    for (unsigned worker = 0; worker < workers; ++worker)
      whole = detail::run_pieces(Thread{}, &step, 0, step.pieces, epochs.data(), guard_, worker, workers) &&
              whole;
    return whole;
  }

  unsigned bytes_;
  std::vector<unsigned char> out_, in_;
  std::vector<DensePacket> slots_;
  std::vector<Word> sent_, received_;
  Word stop_ = 0, report_ = 0, polled_ = 0;
  pw_guard guard_{&stop_, &report_, &polled_, 1000000};
  Step send_{}, receive_{};
};

TEST(Dense, EachEndHasItsOwnWords) {
  for (const unsigned there : {16u, 8u})
    for (const unsigned here : {16u, 8u})
      for (unsigned words = 1; words < 80; ++words)
        for (const unsigned pieces : {1u, 3u}) {
          const unsigned bytes = words * std::max(there, here);
          SCOPED_TRACE(testing::Message()
                       << bytes << " bytes, " << there << " to " << here << ", " << pieces);
          Lane lane(bytes, there, here, pieces);
          lane.fill(words);
          ASSERT_TRUE(lane.send(1));
          ASSERT_TRUE(lane.receive(2));
          ASSERT_TRUE(lane.right());
        }
}

// The flag has eight bits: slots are filled every other epoch, so the one before is never taken for new.
TEST(Dense, AFlagOfOneByteTellsEpochsApart) {
  Lane lane(1000, 8, 8, 2);
  for (unsigned epoch = 1; epoch <= 600; ++epoch) {
    lane.fill(epoch);
    ASSERT_TRUE(lane.send(1)) << epoch;
    ASSERT_TRUE(lane.receive(1)) << epoch;
    ASSERT_TRUE(lane.right()) << epoch;
  }
  lane.fill(601);
  EXPECT_FALSE(lane.receive(1)) << "what was not sent does not arrive";
}

TEST(Dense, PacketsCarryFifteenBytesOfSixteen) {
  EXPECT_EQ(dense_packets(0), 0u);
  EXPECT_EQ(dense_packets(1), 1u);
  EXPECT_EQ(dense_packets(15), 1u);
  EXPECT_EQ(dense_packets(16), 2u);
  EXPECT_EQ(dense_packets(15 * 1000), 1000u);
}

}  // namespace
}  // namespace peerway::device
