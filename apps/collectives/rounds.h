// Times the rounds of an operation, and prints a line of JSON for each number of bytes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <vector>

inline constexpr uint64_t kSizes[] = {8, 1024, 65536, 1048576, 16777216};

/// Runs so many rounds, after as many that do not count, and returns the microseconds of one.
template <typename Round>
double microseconds(uint64_t rounds, Round&& round) {
  for (uint64_t n = 0; n < rounds; ++n) round();
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t n = 0; n < rounds; ++n) round();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
  return took.count() / static_cast<double>(rounds);
}

/// About 50 ms of rounds in each of five samples; `print` says whether this rank prints them.
template <typename Round>
void measure(const char* library, uint64_t bytes, bool print, Round&& round) {
  const uint64_t rounds = std::max<uint64_t>(20, std::min<uint64_t>(20000, 50'000'000 / (bytes + 2500)));
  if (print)
    std::printf(R"({"what": "all_reduce", "library": "%s", "bytes": %llu, "us": [)", library,
                static_cast<unsigned long long>(bytes));
  for (int sample = 0; sample < 5; ++sample) {
    const double us = microseconds(rounds, round);
    if (print) std::printf("%s%.3f", sample == 0 ? "" : ", ", us);
  }
  if (print) std::puts("]}");
}
