#include "nic/check/deadline.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace pw::nic::check {

uint64_t longest_wait_ns = 2'000'000'000;

namespace {

std::atomic<uint64_t> ticks{0};             // how often the watchdog's thread has woken
std::atomic<const char*> entered{nullptr};  // the function of the plugin that is running; null: none is
std::atomic<uint64_t> entered_at{0};        // `ticks` when it was called
std::atomic<int> watchdog_thread{0};        // 0 until the thread runs

constexpr auto kTick_ns = static_cast<long>(Watchdog::kTick_s * 1e9);

// The watchdog's thread. It counts its own wakeups instead of reading the clock: if the machine is too busy
// to run it, the plugin's call was probably held up, too.
void watch(void (*hung)(const char* entry)) {
  watchdog_thread = gettid();
  for (const timespec tick{0, kTick_ns};;) {
    nanosleep(&tick, nullptr);
    const uint64_t now = ticks.fetch_add(1) + 1;
    const char* entry = entered.load();
    if (entry != nullptr &&
        static_cast<double>(now - entered_at.load()) * Watchdog::kTick_s > Watchdog::kHung_s)
      hung(entry);
  }
}

}  // namespace

void Watchdog::start(void (*hung)(const char* entry)) {
  sigset_t all, before;  // the program's signals must not be handled by this thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(watch, hung).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  while (watchdog_thread.load() == 0) usleep(100);
}

void Watchdog::enter(const char* entry) {
  entered_at.store(ticks.load(std::memory_order_relaxed), std::memory_order_relaxed);
  entered.store(entry, std::memory_order_release);
}

double Watchdog::leave() {
  entered.store(nullptr, std::memory_order_release);
  return static_cast<double>(ticks.load(std::memory_order_relaxed) -
                             entered_at.load(std::memory_order_relaxed)) *
         kTick_s;
}

int Watchdog::thread() { return watchdog_thread.load(); }

}  // namespace pw::nic::check
