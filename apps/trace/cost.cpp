// What an operation costs: prints nanoseconds, one number. cost.py runs it with and without a trace.
//   cost put ROUNDS        a put of 8 B by a rank to itself: the median of ROUNDS blocks of 1,000
//   cost pingpong ROUNDS   8 B and a signal, there and back, halved: the median of ROUNDS
//   cost region ROUNDS     a region of the program: the median of ROUNDS blocks of 1,000
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
constexpr int kBlock = 1000;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Body>
double time_of(int rounds, int operations, Body&& body) {
  std::vector<double> times;
  for (int round = 0; round < rounds + rounds / 10; ++round) {
    const auto began = Clock::now();
    body(round);
    const std::chrono::duration<double, std::nano> took = Clock::now() - began;
    if (round >= rounds / 10) times.push_back(took.count() / operations);  // the first warm up
  }
  return median(times);
}

}  // namespace

int main(int, char** arguments) {
  const std::string what = arguments[1];
  const int rounds = std::atoi(arguments[2]);
  double ns = 0;
  if (what == "region") {
    ns = time_of(rounds, kBlock, [](int) {
      for (int i = 0; i < kBlock; ++i) const peerway::trace::Region region("region");
    });
    std::printf("%.3f\n", ns);
    return 0;
  }
  auto team = peerway::Team::from_launcher();
  auto context = peerway::Context(team);
  const auto region = context.allocate({PW_HOST, 0}, 4096);
  auto signal = context.signal();
  const auto regions = team.all_gather(region.key());
  const auto signals = team.all_gather(signal.key());
  const int other = what == "put" ? 0 : 1 - team.rank();
  const auto remote = context.import(regions[static_cast<size_t>(other)]);
  const auto theirs = context.import(signals[static_cast<size_t>(other)]);
  const auto to = remote.span(0, 8);
  const auto from = region.span(2048, 8);
  if (what == "put") {
    ns = time_of(rounds, kBlock, [&](int) {
      for (int i = 0; i < kBlock; ++i) peerway::check(context.put(to, from));
    });
  } else {
    uint64_t turn = 0;
    ns = time_of(rounds, 2, [&](int) {
      ++turn;
      if (team.rank() == 1) peerway::check(signal.wait(turn));
      peerway::check(context.put(to, from, peerway::raise(theirs)));
      if (team.rank() == 0) peerway::check(signal.wait(turn));
    });
  }
  team.barrier();
  if (team.rank() == 0) std::printf("%.3f\n", ns);
  return 0;
}
