// Regions and nothing else, by the header alone: what a trace must hold is known to the event.
//   regions loop N | deep N | killed N | threads N | turns N | fork N | idle
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "peerway/trace.hpp"

using peerway::trace::Region;

namespace {

void loop(int count) {
  for (int i = 0; i < count; ++i) const Region region(i % 2 == 0 ? "even" : "odd");
}

void deep(int levels) {
  if (levels == 0) return;
  const Region region("level");
  deep(levels - 1);
}

}  // namespace

int main(int, char** arguments) {
  const std::string scenario = arguments[1];
  const int count = arguments[2] != nullptr ? std::atoi(arguments[2]) : 0;
  if (scenario == "loop") loop(count);
  if (scenario == "deep") deep(count);
  if (scenario == "killed") {
    loop(count);
    const Region region("last");
    kill(getpid(), SIGKILL);
  }
  if (scenario == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(loop, count);
    for (auto& thread : threads) thread.join();
  }
  if (scenario == "turns") {  // each thread has its ring before the next asks for room; all are there at once
    std::vector<std::thread> threads;
    std::latch all(4);
    for (int i = 0; i < 4; ++i) {
      std::latch recorded(1);
      threads.emplace_back([&all, &recorded, count] {
        loop(count);
        recorded.count_down();
        all.arrive_and_wait();
      });
      recorded.wait();
    }
    for (auto& thread : threads) thread.join();
  }
  if (scenario == "fork") {
    const Region around("around");
    const pid_t child = fork();
    loop(count);
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  std::puts("done");
  return 0;
}
