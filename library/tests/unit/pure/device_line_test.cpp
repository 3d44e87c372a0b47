// Lines, as the threads of a CPU send and receive them: whole lines each. Teams of 16 threads are checked on
// a GPU (library/tests/gpu/programs/plan_check).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/steps.h"
#include "peerway/device.cuh"

namespace peerway::device {
namespace {

constexpr unsigned kGap = 16;  // bytes between words in memory

/// Both ends of a lane: a step that sends and one that receives, run by hand.
class Lane {
 public:
  Lane(unsigned words, unsigned unit, unsigned pieces)
      : unit_(unit),
        out_(words * (unit + kGap)),
        in_(out_.size()),
        slots_(2 * detail::lines_of(words)),
        send_(make(pw::StepKind::send_lines, words, pieces)),
        receive_(make(pw::StepKind::receive_lines, words, pieces)) {}

  void fill(unsigned seed) {
    for (size_t b = 0; b < out_.size(); ++b) out_[b] = static_cast<unsigned char>(seed + 31 * b + b / 251);
    std::fill(in_.begin(), in_.end(), static_cast<unsigned char>(0xee));
  }
  bool send(unsigned workers) { return run(send_, sent_, workers); }
  bool receive(unsigned workers) { return run(receive_, received_, workers); }

  /// Whether every word came, and nothing was stored between them.
  [[nodiscard]] bool right() const {
    std::vector<unsigned char> wanted(in_.size(), 0xee);
    for (size_t word = 0; word < wanted.size(); word += unit_ + kGap)
      std::copy_n(out_.begin() + static_cast<long>(word), unit_, wanted.begin() + static_cast<long>(word));
    return in_ == wanted;
  }

 private:
  /// A device step as the library makes it from the step of a plan.
  Step make(pw::StepKind kind, unsigned words, unsigned pieces) {
    const bool sends = kind == pw::StepKind::send_lines;
    auto* slots = reinterpret_cast<std::byte*>(slots_.data());
    auto* memory = reinterpret_cast<std::byte*>(sends ? out_.data() : in_.data());
    pw::ProgramStep step;
    step.kind = kind;
    step.to = sends ? slots : memory;
    step.from = sends ? memory : slots;
    step.layout.shape.block_bytes = unit_;
    step.layout.shape.dims = 1;
    step.layout.shape.count = {words};
    step.layout.to = {sends ? unit_ : unit_ + kGap};
    step.layout.from = {sends ? unit_ + kGap : unit_};
    step.pieces = pieces;
    step.unit = unit_;
    const auto turn = static_cast<int64_t>(slots_.size() / 2 * sizeof(Line));
    (sends ? step.to_odd_offset : step.from_odd_offset) = turn;
    pw::Program program;
    program.start = {step};
    return pw::make_steps(program, [](const void* address) { return reinterpret_cast<uint64_t>(address); })
        .front();
  }

  bool run(const Step& step, std::vector<Word>& epochs, unsigned workers) {
    epochs.resize(step.pieces);
    bool whole = true;
    for (unsigned worker = 0; worker < workers; ++worker)
      whole = detail::run_pieces(Thread{}, &step, 0, step.pieces, epochs.data(), guard_, worker, workers) &&
              whole;
    return whole;
  }

  unsigned unit_;
  std::vector<unsigned char> out_, in_;
  std::vector<Line> slots_;
  std::vector<Word> sent_, received_;
  Word stop_ = 0, report_ = 0, polled_ = 0;
  pw_guard guard_{&stop_, &report_, &polled_, 1000000};
  Step send_, receive_;
};

TEST(Lines, EveryWordOfEverySizeArrives) {
  for (const unsigned unit : {8u, 4u, 2u, 1u})
    for (unsigned words = 1; words < 80; ++words)
      for (const unsigned pieces : {1u, 3u, 7u}) {
        SCOPED_TRACE(testing::Message() << words << " words of " << unit << " bytes in " << pieces);
        Lane lane(words, unit, pieces);
        lane.fill(words);
        ASSERT_TRUE(lane.send(1));
        ASSERT_TRUE(lane.receive(2));
        ASSERT_TRUE(lane.right());
      }
}

TEST(Lines, EachEpochBringsItsOwn) {
  Lane lane(100, 8, 2);
  for (unsigned epoch = 1; epoch <= 5; ++epoch) {
    lane.fill(epoch);
    ASSERT_TRUE(lane.send(1)) << epoch;
    ASSERT_TRUE(lane.receive(1)) << epoch;
    ASSERT_TRUE(lane.right()) << epoch;
  }
  lane.fill(6);
  EXPECT_FALSE(lane.receive(1)) << "what was not sent does not arrive";
}

TEST(Lines, CarryFifteenWords) {
  EXPECT_EQ(sizeof(Line), 128u);
  EXPECT_EQ(detail::lines_of(0), 0u);
  EXPECT_EQ(detail::lines_of(1), 1u);
  EXPECT_EQ(detail::lines_of(15), 1u);
  EXPECT_EQ(detail::lines_of(16), 2u);
}

}  // namespace
}  // namespace peerway::device
