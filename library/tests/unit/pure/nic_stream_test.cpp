// Words behind their data and flushes behind arrival, over a NIC that lets things happen in every order that
// its guarantees allow; and over NICs that guarantee more than they keep, where the same checks must fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "held_nic.h"
#include "nic/endpoint.h"
#include "nic/stream.h"
#include "rounds.h"

namespace pw::nic {
namespace {

constexpr uint32_t kBoth = PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS;
constexpr uint64_t kRounds = 12, kWords = 4;

const pw_nic_ops& ops() {
  static const pw_nic_ops all = held::make_ops();
  return all;
}

/// The completion of a put or a flush.
struct Completion : pw_nic_done {
  Completion() {
    call = [](pw_nic_done* done, pw_nic_status with) { static_cast<Completion*>(done)->hear(with); };
  }
  void hear(pw_nic_status with) {
    ++times;
    status = with;
    if (then) then();
  }
  int times = 0;
  pw_nic_status status = PW_NIC_OK;
  std::function<void()> then;
};

/// Puts rounds of data to a peer, each followed by a word with the number of the round, and checks that what
/// is seen there is never ahead of the data.
class Writer {
 public:
  struct Target {
    uint64_t data[kRounds + 1][kWords] = {};
    uint64_t word = 0;
  };

  Writer(Endpoint& from, Endpoint& to)
      : out_(from.add(span(source_))),
        in_(to.add(span(target_))),
        stream_(from.open(to.facts())),
        remote_(stream_->import(in_->key())) {}

  /// Starts the next operation; false when there is none, or no room for it.
  bool step(bool together, bool with_flush) {
    if (all_started()) return false;
    if (flush_due_) {
      auto completion = std::make_unique<Completion>();
      completion->then = [this, r = round_ - 1] { flushed(r); };
      if (stream_->flush(completion.get()) != PW_NIC_OK) return false;
      flushes_.push_back(std::move(completion));
      flush_due_ = false;
      return true;
    }
    for (uint64_t& each : source_.data[round_]) each = round_;
    const WordStore word{remote_.get(), offsetof(Target, word), round_};
    const uint64_t at = offsetof(Target, data) + round_ * sizeof source_.data[0];
    const uint64_t half = sizeof source_.data[0] / 2;
    switch (place_) {
      case 0:
        if (put(at, source_.data[round_], nullptr, half) != PW_NIC_OK) return false;
        break;
      case 1:
        if (together) {
          if (stream_->put_word(*remote_, at + half, source_.data[round_] + kWords / 2, out_.get(), half,
                                word, told_of(round_)) != PW_NIC_OK)
            return false;
          ++place_;
        } else if (put(at + half, source_.data[round_] + kWords / 2, out_.get(), half) != PW_NIC_OK) {
          return false;
        }
        break;
      default:
        if (stream_->store_word(word) != PW_NIC_OK) return false;
    }
    if (++place_ < 3) return true;
    place_ = 0;
    ++round_;
    flush_due_ = with_flush || round_ > kRounds;
    return true;
  }
  [[nodiscard]] bool all_started() const { return round_ > kRounds && !flush_due_; }
  [[nodiscard]] bool over() const {
    return all_started() &&
           std::ranges::all_of(flushes_, [](const auto& completion) { return completion->times == 1; });
  }
  [[nodiscard]] bool failed() const { return !wrong_.empty(); }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  [[nodiscard]] uint64_t word() const { return target_.word; }
  [[nodiscard]] Stream& stream() { return *stream_; }

  void poll() { expect(target_.word, "a word was seen before its data"); }

 private:
  static pw_nic_span span(Target& target) {
    return {sizeof(pw_nic_span), &target, sizeof target, PW_NIC_HOST, 0, -1, 0};
  }
  pw_nic_done* told_of(uint64_t round) {
    puts_.push_back(std::make_unique<Completion>());
    // The memory is the writer's own again: what arrives from now on would be wrong.
    puts_.back()->then = [this, round] {
      for (uint64_t i = kWords / 2; i < kWords; ++i) source_.data[round][i] = ~round;
    };
    return puts_.back().get();
  }
  pw_nic_status put(uint64_t at, const void* data, Memory* memory, uint64_t bytes) {
    return stream_->put(*remote_, at, data, memory, bytes, memory == nullptr ? nullptr : told_of(round_));
  }
  void flushed(uint64_t until) {
    expect(until, "a flush was done before its data arrived");
    if (target_.word < until) wrong_ = "a flush was done before its word arrived";
  }
  void expect(uint64_t until, const char* otherwise) {
    for (uint64_t r = 1; r <= std::min(until, kRounds); ++r)
      for (const uint64_t each : target_.data[r])
        if (each != r) wrong_ = otherwise;
  }

  std::string wrong_;
  Target source_, target_;
  std::vector<std::unique_ptr<Completion>> flushes_,
      puts_;  // outlive the stream, which calls them at its end
  std::unique_ptr<Memory> out_, in_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<RemoteMemory> remote_;
  uint64_t round_ = 1;
  int place_ = 0;
  bool flush_due_ = false;
};

struct Pair {
  explicit Pair(uint32_t states, uint32_t keeps) {
    world.states = states;
    world.keeps = keeps;
    held::opening = &world;
    const auto plugin = Plugin::of(&ops(), "(test)");
    a = std::make_unique<Endpoint>(plugin, Job{1, {}}, "");
    b = std::make_unique<Endpoint>(plugin, Job{1, {}}, "");
  }
  held::World world;
  std::unique_ptr<Endpoint> a, b;
};

/// Both endpoints write to one another, and everything happens in an order that the seed draws. Returns what
/// went wrong.
std::string run_by_seed(uint32_t states, uint32_t keeps, uint32_t seed) {
  Pair pair(states, keeps);
  std::mt19937 random(seed);
  const auto draw = [&](size_t below) { return random() % below; };
  pair.world.room = seed % 3 == 0 ? 3 : 64;
  Writer there(*pair.a, *pair.b), back(*pair.b, *pair.a);
  const uint32_t hurry = 1 + seed % 5;  // how seldom the NIC gets on
  constexpr int kMostSteps = 400'000;
  int steps = 0;
  for (; steps < kMostSteps && !(there.over() && back.over()); ++steps) {
    switch (draw(4 + hurry)) {
      case 0:
        pair.a->progress();
        break;
      case 1:
        pair.b->progress();
        break;
      case 2:
        there.step(draw(2) == 0, draw(4) == 0);
        break;
      case 3:
        back.step(draw(2) == 0, draw(4) == 0);
        break;
      default:
        if (const auto events = pair.world.possible(); !events.empty())
          pair.world.happen(events[draw(events.size())]);
    }
    there.poll();
    back.poll();
    if (there.failed()) return there.wrong();
    if (back.failed()) return back.wrong();
  }
  if (steps == kMostSteps) return "it never ended";
  if (there.word() != kRounds || back.word() != kRounds) return "words are missing at the end";
  return "";
}

/// One writer's first operations; every order of the parts of all operations is tried, up to a number.
class EveryOrder {
 public:
  EveryOrder(uint32_t states, uint32_t keeps) : states_(states), keeps_(keeps) {}

  std::string run(size_t most) {
    do {
      ++tried_;
      if (const std::string wrong = once(); !wrong.empty()) return wrong;
    } while (next() && tried_ < most);
    return "";
  }
  [[nodiscard]] size_t tried() const { return tried_; }

 private:
  size_t choose(size_t below) {
    constexpr size_t kDeep = 14;  // then the oldest goes first
    if (at_ == kDeep) return 0;
    if (at_ == choices_.size()) choices_.push_back({0, below});
    return std::min(choices_[at_++].first, below - 1);  // a slow run may have looked for a sign of life
  }
  bool next() {
    while (!choices_.empty() && ++choices_.back().first == choices_.back().second) choices_.pop_back();
    return !choices_.empty();
  }
  std::string once() {
    at_ = 0;
    Pair pair(states_, keeps_);
    pair.world.whole = true;
    Writer writer(*pair.a, *pair.b);
    for (int i = 0; i < 4; ++i) writer.step(false, true);  // two puts, a word, a flush
    for (int turn = 0; turn < 80; ++turn) {                // a marker may be looked for again and again
      while (pair.a->progress() + pair.b->progress() > 0) {
      }
      writer.poll();
      if (writer.failed()) return writer.wrong();
      const auto events = pair.world.possible();
      if (events.empty()) break;
      pair.world.happen(events[choose(events.size())]);
    }
    if (writer.word() != 1) return "the word is missing at the end";
    return "";
  }

  uint32_t states_, keeps_;
  std::vector<std::pair<size_t, size_t>> choices_;
  size_t at_ = 0, tried_ = 0;
};

class Guarantees : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Guarantees, WordsAndFlushesAreBehindTheirDataWhateverTheOrder) {
  for (uint32_t seed = 0; seed < rounds(150); ++seed)
    ASSERT_EQ(run_by_seed(GetParam(), GetParam(), seed), "") << "seed " << seed;
}

TEST_P(Guarantees, EveryOrderOfAShortSequenceIsRight) {
  EveryOrder every(GetParam(), GetParam());
  EXPECT_EQ(every.run(rounds(4000)), "") << "after " << every.tried();
  EXPECT_GT(every.tried(), 0u);
}

TEST_P(Guarantees, ANicThatKeepsMoreThanItStatesIsRightToo) {
  for (uint32_t seed = 0; seed < 20; ++seed)
    ASSERT_EQ(run_by_seed(GetParam(), kBoth, seed), "") << "seed " << seed;
}

TEST_P(Guarantees, APeerThatIsGoneEndsEverything) {
  Pair pair(GetParam(), GetParam());
  Writer writer(*pair.a, *pair.b);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer.step(false, false));
  std::vector<std::unique_ptr<Completion>> completions;
  for (int i = 0; i < 3; ++i) {
    completions.push_back(std::make_unique<Completion>());
    ASSERT_EQ(writer.stream().flush(completions.back().get()), PW_NIC_OK);
  }
  pair.world.kill(pair.world.nics[1].get());
  for (int i = 0; i < 10; ++i) pair.a->progress();
  for (const auto& each : completions) {
    EXPECT_EQ(each->times, 1);
    EXPECT_EQ(each->status, PW_NIC_UNREACHABLE);
  }
  Completion late;
  EXPECT_EQ(writer.stream().flush(&late), PW_NIC_UNREACHABLE);
}

TEST_P(Guarantees, AStreamThatGoesLeavesNothingForTheNicToCall) {
  Pair pair(GetParam(), GetParam());
  uint64_t target[2] = {};
  const auto memory = pair.b->add({sizeof(pw_nic_span), target, sizeof target, PW_NIC_HOST, 0, -1, 0});
  Completion completion;
  {
    const auto stream = pair.a->open(pair.b->facts());
    const auto remote = stream->import(memory->key());
    ASSERT_EQ(stream->put(*remote, 0, &kRounds, nullptr, sizeof kRounds, nullptr), PW_NIC_OK);
    ASSERT_EQ(stream->store_word({remote.get(), 8, 1}), PW_NIC_OK);
    ASSERT_EQ(stream->flush(&completion), PW_NIC_OK);
    pair.a->progress();
  }
  for (auto events = pair.world.possible(); !events.empty(); events = pair.world.possible())
    pair.world.happen(events[0]);
  for (int i = 0; i < 10; ++i) pair.a->progress();
  EXPECT_EQ(completion.times, 1);
}

TEST_P(Guarantees, ANicThatPrefersGetsComesToThePuts) {
  Pair pair(GetParam(), GetParam());
  Writer there(*pair.a, *pair.b), back(*pair.b, *pair.a);
  constexpr int kMostSteps = 2'000'000;  // a get that is asked for again at once would always be there
  int steps = 0;
  for (; steps < kMostSteps && !(there.over() && back.over()); ++steps) {
    while (there.step(false, true) || back.step(false, true)) {
    }
    pair.a->progress();
    pair.b->progress();
    const auto events = pair.world.possible();
    if (events.empty()) continue;
    const auto get = std::ranges::find_if(events, [](const auto& each) { return !each.operation->is_put; });
    pair.world.happen(get != events.end() ? *get : events.front());
  }
  EXPECT_LT(steps, kMostSteps) << "its gets kept it from its puts";
  EXPECT_EQ(there.wrong() + back.wrong(), "");
}

INSTANTIATE_TEST_SUITE_P(All, Guarantees,
                         ::testing::Values(0u, PW_NIC_PUTS_IN_ORDER, PW_NIC_GETS_BEHIND_PUTS, kBoth));

// The negative control: the same check, and a NIC that does not keep what it states.
void expect_caught(uint32_t states, uint32_t keeps) {
  std::string wrong;
  for (uint32_t seed = 0; seed < 150 && wrong.empty(); ++seed) wrong = run_by_seed(states, keeps, seed);
  EXPECT_NE(wrong, "");
  EXPECT_NE(wrong, "it never ended");
  EXPECT_NE(EveryOrder(states, keeps).run(4000), "");
}

TEST(LyingNic, PutsThatAreNotInOrderAreSeen) {
  expect_caught(kBoth, PW_NIC_GETS_BEHIND_PUTS);
  expect_caught(PW_NIC_PUTS_IN_ORDER, 0);
}

TEST(LyingNic, GetsThatOvertakePutsAreSeen) {
  expect_caught(kBoth, PW_NIC_PUTS_IN_ORDER);
  expect_caught(PW_NIC_GETS_BEHIND_PUTS, 0);
}

}  // namespace
}  // namespace pw::nic
