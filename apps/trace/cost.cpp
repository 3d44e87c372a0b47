// What an operation costs: prints nanoseconds, one number. trace_cost.py runs it with and without a trace.
//   cost put ROUNDS        a put of 8 B by a rank to itself: the median of ROUNDS blocks of 1,000
//   cost pingpong ROUNDS   8 B and a signal, there and back, halved: the median of ROUNDS blocks of 10, since
//                          the clock of the machine may tell no less than 10 ns
//   cost region ROUNDS     a region of the program: the median of ROUNDS blocks of 1,000
//   cost WHAT ROUNDS pairs prints two numbers of a program that is traced: while recording is stopped, and
//   while
//                          it is not; it switches every 50 rounds, so that both have the same load of the
//                          machine
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <peerway/peerway.hpp>
#include <peerway/trace.hpp>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBlock = 1000, kTurns = 10, kStretch = 50;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// As `peerway trace stop` and `start` do.
void record(bool on) {
  if (on)
    __atomic_and_fetch(pw_trace_word, ~static_cast<uint32_t>(PW_TRACE_STOPPED), __ATOMIC_RELAXED);
  else
    __atomic_or_fetch(pw_trace_word, static_cast<uint32_t>(PW_TRACE_STOPPED), __ATOMIC_RELAXED);
}

struct Costs {
  double all, off, on;
};

template <typename Body>
Costs time_of(int rounds, int operations, bool pairs, Body&& body) {
  std::vector<double> all, off, on;
  for (int round = 0; round < rounds + rounds / 10; ++round) {
    const bool recorded = round / kStretch % 2 != 0;
    if (pairs && round % kStretch == 0) record(recorded);
    const auto began = Clock::now();
    body(round);
    const std::chrono::duration<double, std::nano> took = Clock::now() - began;
    if (round < rounds / 10 || round % kStretch == 0) continue;  // the first warm up
    (pairs ? recorded ? on : off : all).push_back(took.count() / operations);
  }
  if (!pairs) return {median(all), 0, 0};
  record(true);
  return {0, median(off), median(on)};
}

void print(const Costs& costs, bool pairs) {
  if (pairs)
    std::printf("%.3f %.3f\n", costs.off, costs.on);
  else
    std::printf("%.3f\n", costs.all);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string operation = arguments[1];
  const int rounds = std::atoi(arguments[2]);
  const bool pairs = count > 3 && peerway::trace::recording;
  if (operation == "region") {
    print(time_of(rounds, kBlock, pairs,
                  [](int) {
                    for (int i = 0; i < kBlock; ++i) const peerway::trace::Region region("region");
                  }),
          pairs);
    return 0;
  }
  auto team = peerway::Team::from_launcher();
  auto context = peerway::Context(team);
  const auto region = context.allocate({PW_HOST, 0}, 4096);
  auto signal = context.signal();
  const auto regions = team.all_gather(region.key());
  const auto signals = team.all_gather(signal.key());
  const int other = operation == "put" ? 0 : 1 - team.rank();
  const auto remote = context.import(regions[static_cast<size_t>(other)]);
  const auto theirs = context.import(signals[static_cast<size_t>(other)]);
  const auto to = remote.span(0, 8);
  const auto from = region.span(2048, 8);
  Costs costs{};
  if (operation == "put") {
    costs = time_of(rounds, kBlock, pairs, [&](int) {
      for (int i = 0; i < kBlock; ++i) peerway::check(context.put(to, from));
    });
  } else {
    uint64_t turn = 0;
    costs = time_of(rounds, 2 * kTurns, pairs, [&](int) {
      for (int i = 0; i < kTurns; ++i) {
        ++turn;
        if (team.rank() == 1) peerway::check(signal.wait(turn));
        peerway::check(context.put(to, from, peerway::notify(theirs)));
        if (team.rank() == 0) peerway::check(signal.wait(turn));
      }
    });
  }
  team.barrier();
  if (team.rank() == 0) print(costs, pairs);
  return 0;
}
