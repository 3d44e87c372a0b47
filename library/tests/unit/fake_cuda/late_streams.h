// Streams of the fake driver that do their work late: with FAKE_CUDA_LATE=N in the environment a piece of
// work begins N milliseconds after it was queued, unless somebody waits for its stream before that. So a
// program that does not wait where it must sees memory from before; one that polls goes on, as on a GPU.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fake_cuda {

using Clock = std::chrono::steady_clock;

struct LateStream {
  struct Work {
    Clock::time_point due;
    std::function<void()> run;
  };
  std::deque<Work> work;
  uint64_t queued = 0, finished = 0;
  uint64_t awaited = 0;  // up to this one without delay
};

/// A point in the work of a stream; of none: always reached.
struct Reached {
  LateStream* stream = nullptr;
  uint64_t number = 0;
};

/// One per process, never freed, because threads use it until the end.
struct LateStreams {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<LateStream*> all;
};
inline LateStreams& late_streams() {
  static auto& streams = *new LateStreams;
  return streams;
}

inline std::chrono::milliseconds late_by() {
  static const char* const text = std::getenv("FAKE_CUDA_LATE");
  return std::chrono::milliseconds(text != nullptr ? std::atoi(text) : 0);
}

inline void run_late(LateStream& stream) {
  LateStreams& streams = late_streams();
  std::unique_lock lock(streams.mutex);
  for (;;) {
    if (stream.work.empty()) {
      streams.changed.wait(lock);
    } else if (stream.awaited <= stream.finished && Clock::now() < stream.work.front().due) {
      streams.changed.wait_until(lock, Clock::time_point(stream.work.front().due));
    } else {
      const std::function<void()> run = std::move(stream.work.front().run);
      stream.work.pop_front();
      lock.unlock();
      run();
      lock.lock();
      ++stream.finished;
      streams.changed.notify_all();
    }
  }
}

/// Null for a stream that does its work at once.
inline LateStream* new_late_stream(int priority) {
  if (late_by().count() == 0 || priority < 0) return nullptr;
  auto* const stream = new LateStream;
  const std::lock_guard lock(late_streams().mutex);
  late_streams().all.push_back(stream);
  std::thread(run_late, std::ref(*stream)).detach();
  return stream;
}

inline void add(LateStream& stream, std::function<void()> run) {
  const std::lock_guard lock(late_streams().mutex);
  stream.work.push_back({Clock::now() + late_by(), std::move(run)});
  ++stream.queued;
  late_streams().changed.notify_all();
}

inline Reached reached(LateStream& stream) {
  const std::lock_guard lock(late_streams().mutex);
  return {&stream, stream.queued};
}

inline bool is_finished(const LateStream& stream) {
  const std::lock_guard lock(late_streams().mutex);
  return stream.finished == stream.queued;
}

inline void wait(const Reached& point) {
  if (point.stream == nullptr) return;
  LateStream& stream = *point.stream;
  std::unique_lock lock(late_streams().mutex);
  stream.awaited = std::max(stream.awaited, point.number);
  late_streams().changed.notify_all();
  late_streams().changed.wait(lock, [&] { return stream.finished >= point.number; });
}

inline void finish(LateStream& stream) { wait(reached(stream)); }

inline void finish_all() {
  std::vector<LateStream*> all;
  {
    const std::lock_guard lock(late_streams().mutex);
    all = late_streams().all;
  }
  for (LateStream* stream : all) finish(*stream);
}

}  // namespace fake_cuda
