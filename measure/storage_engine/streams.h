// Several streams of one node that start together, on request also with those of other nodes, and what the
// process used meanwhile.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "words.h"

namespace pw::storage {

inline uint64_t now_ns() {
  using namespace std::chrono;
  return static_cast<uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

// What the kernel says of this process: CPU time, and the bytes that it caused to be fetched from below the
// page cache.
struct Usage {
  uint64_t cpu_us = 0, user_us = 0, fetched = 0;

  static Usage now() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    Usage usage;
    const auto us = [](const timeval& time) {
      return static_cast<uint64_t>(time.tv_sec) * 1000000 + static_cast<uint64_t>(time.tv_usec);
    };
    usage.user_us = us(used.ru_utime);
    usage.cpu_us = usage.user_us + us(used.ru_stime);
    if (FILE* const file = std::fopen("/proc/self/io", "r")) {
      char line[128];
      while (std::fgets(line, sizeof line, file))
        if (std::sscanf(line, "read_bytes: %lu", &usage.fetched) == 1) break;
      std::fclose(file);
    }
    return usage;
  }
};

// Says "ready" to the parent process, and waits for a line from it, which says that other nodes are ready.
// It does not come where that process has ended, and then this one does as well.
inline void await_others() noexcept {
  constexpr char ready[] = "ready\n";
  char line = 0;
  if (write(STDOUT_FILENO, ready, sizeof ready - 1) > 0)
    while (read(STDIN_FILENO, &line, 1) < 0 && errno == EINTR) continue;
}

// Takes note of what was used until all streams are ready: their preparation is not of what is measured.
struct AllReady {
  Usage& before;
  bool hold;
  void operator()() noexcept {
    if (hold) await_others();
    before = Usage::now();
  }
};

struct Stream {
  std::barrier<AllReady>& together;  // wait on it once all is open
  int number;
  uint64_t began = 0, ended = 0;

  void begin() {
    together.arrive_and_wait();
    began = now_ns();
  }
};

struct Together {
  uint64_t ns = 0;                                // from the first begin to the last end
  std::vector<uint64_t> each_ns;                  // of each stream
  uint64_t cpu_us = 0, user_us = 0, fetched = 0;  // of the process
};

// Runs `body` once a stream. It must call begin() exactly once, or throw before it. The first failure is
// thrown here. With `hold` they begin when await_others() has ended.
inline Together run_streams(int count, bool hold, const std::function<void(Stream&)>& body) {
  Usage before;
  std::barrier<AllReady> together(count, AllReady{before, hold});
  std::vector<Stream> streams;
  std::vector<std::exception_ptr> failures(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) streams.push_back({together, i});
  {
    std::vector<std::jthread> threads;
    for (Stream& stream : streams)
      threads.emplace_back([&] {
        try {
          body(stream);
          stream.ended = now_ns();
        } catch (...) {
          failures[static_cast<size_t>(stream.number)] = std::current_exception();
          if (!stream.began) together.arrive_and_drop();  // the others must not wait for it
        }
      });
  }
  const Usage after = Usage::now();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  Together total;
  uint64_t first = UINT64_MAX, last = 0;
  for (const Stream& stream : streams) {
    first = std::min(first, stream.began);
    last = std::max(last, stream.ended);
    total.each_ns.push_back(stream.ended - stream.began);
  }
  total.ns = last - first;
  total.cpu_us = after.cpu_us - before.cpu_us;
  total.user_us = after.user_us - before.user_us;
  total.fetched = after.fetched - before.fetched;
  return total;
}

}  // namespace pw::storage
