// The threads of a block of a kernel, as contexts of one thread of a CPU that take turns at barriers and
// shuffles. A barrier or shuffle that some do not reach ends the process with a word. Each thread of the CPU
// can run a block of its own.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct FakeGrid {
  unsigned x, y, z;
};
static thread_local FakeGrid threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim{1, 1, 1}, gridDim{1, 1, 1};

namespace fake_block {

#ifndef FAKE_BLOCK_THREADS
#define FAKE_BLOCK_THREADS 33  // a whole warp, and one that is not
#endif
constexpr unsigned kWarp = 32, kMostThreads = FAKE_BLOCK_THREADS;
constexpr size_t kStack = 256 << 10;

enum class State { new_one, ready, at_barrier, at_shuffle, waits_for_launch, ended };

// ucontext begins a thread on its stack, and no more: with each of its turns come two calls of the kernel.
struct Thread {
  jmp_buf turn;  // where it goes on
  State state;
  unsigned lanes;  // that take part in the shuffle
  unsigned from;   // the thread whose value this one takes
  uint64_t shown, taken;
  char* stack;
};

static thread_local Thread threads[kMostThreads];
static thread_local jmp_buf turns;
static thread_local unsigned running;
static thread_local void (*body)(void*);
static thread_local void* body_argument;

static void give_turn(State state) {
  threads[running].state = state;
  if (_setjmp(threads[running].turn) == 0) _longjmp(turns, 1);
}

static thread_local void (*launch_before)();

// Waits for the launch before the kernel, which `run` executes if it has not run yet. It runs as late as it
// can: all threads of the block come to a wait, to a barrier or to their ends before, so a thread of the
// first block that needs what that launch does, and does not wait, finds nothing.
static void wait_for_launch(void (*run)()) {
  launch_before = run;
  give_turn(State::waits_for_launch);
}

static void enter() {
  body(body_argument);
  give_turn(State::ended);
}

static void begin(Thread& thread) {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = thread.stack;
  context.uc_stack.ss_size = kStack;
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
  setcontext(&context);
}

// The thread that is running goes on until it gives its turn back. No local variable lives across the jump.
[[gnu::noinline]] static void take_turn() {
  if (_setjmp(turns) != 0) return;
  Thread& thread = threads[running];
  if (thread.state == State::new_one)
    begin(thread);
  else
    _longjmp(thread.turn, 1);
}

static bool lanes_wait(unsigned warp, unsigned lanes) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const unsigned thread = warp * kWarp + lane;
    if (thread >= blockDim.x || threads[thread].state != State::at_shuffle) return false;
  }
  return true;
}

// Lets those go on that wait for nobody any more. False: there are none.
static bool release() {
  bool barrier = true, some = false, goes_on[kMostThreads] = {};
  for (unsigned i = 0; i < blockDim.x; ++i)
    barrier = barrier && (threads[i].state == State::at_barrier || threads[i].state == State::ended);
  for (unsigned i = 0; i < blockDim.x; ++i)
    goes_on[i] = (threads[i].state == State::at_barrier && barrier) ||
                 (threads[i].state == State::at_shuffle && lanes_wait(i / kWarp, threads[i].lanes));
  for (unsigned i = 0; i < blockDim.x; ++i) {
    if (goes_on[i] && threads[i].state == State::at_shuffle)
      threads[i].taken = threads[threads[i].from].shown;
  }
  for (unsigned i = 0; i < blockDim.x; ++i) {
    if (goes_on[i]) threads[i].state = State::ready;
    some = some || goes_on[i];
  }
  return some;
}

// The same for those that wait for the launch before the kernel.
static bool release_by_launch() {
  bool some = false;
  for (unsigned i = 0; i < blockDim.x; ++i) {
    if (threads[i].state != State::waits_for_launch) continue;
    threads[i].state = State::ready;
    some = true;
  }
  if (some) launch_before();
  return some;
}

/// The stacks of a block's threads, which the next block takes over.
static char* spare_stacks;

/// One block; each of its threads calls `call(argument)`.
static void run(void (*call)(void*), void* argument) {
  char* stacks = __atomic_exchange_n(&spare_stacks, nullptr, __ATOMIC_ACQUIRE);
  if (stacks == nullptr) stacks = static_cast<char*>(std::malloc(kMostThreads * kStack));
  for (unsigned i = 0; i < kMostThreads; ++i) threads[i].stack = stacks + i * kStack;
  body = call;
  body_argument = argument;
  for (unsigned i = 0; i < blockDim.x; ++i) threads[i].state = State::new_one;
  for (;;) {
    unsigned ended = 0;
    for (running = 0; running < blockDim.x; ++running) {
      threadIdx.x = running;
      if (const State state = threads[running].state; state == State::new_one || state == State::ready)
        take_turn();
      ended += threads[running].state == State::ended ? 1 : 0;
    }
    if (ended == blockDim.x) break;
    if (release() || release_by_launch()) continue;
    std::fputs("fake GPU: a barrier or shuffle that not all threads of the block reach\n", stderr);
    std::abort();
  }
  std::free(__atomic_exchange_n(&spare_stacks, stacks, __ATOMIC_RELEASE));
}

}  // namespace fake_block

static inline void __syncthreads() { fake_block::give_turn(fake_block::State::at_barrier); }

namespace fake_block {

/// `value` of the lane `from` of this warp, which all `lanes` call.
template <class T>
T exchange(unsigned lanes, T value, unsigned from) {
  const unsigned me = running, lane = me % kWarp;
  if ((lanes >> lane & 1) == 0) {
    std::fputs("fake GPU: a shuffle by a lane that its mask does not have\n", stderr);
    std::abort();
  }
  Thread& mine = threads[me];
  mine.lanes = lanes;
  mine.from = from < kWarp && me - lane + from < blockDim.x ? me - lane + from : me;
  std::memcpy(&mine.shown, &value, sizeof value);
  give_turn(State::at_shuffle);
  std::memcpy(&value, &mine.taken, sizeof value);
  return value;
}

/// Each thread of a warp goes on when all have come.
static inline void wait_for_warp() {
  const unsigned first = running / kWarp * kWarp,
                 count = blockDim.x - first < kWarp ? blockDim.x - first : kWarp;
  exchange(count == kWarp ? ~0u : (1u << count) - 1, 0, running % kWarp);
}

}  // namespace fake_block

template <class T>
T __shfl_sync(unsigned lanes, T value, int lane) {
  return fake_block::exchange(lanes, value, static_cast<unsigned>(lane));
}

template <class T>
T __shfl_down_sync(unsigned lanes, T value, int distance) {
  return fake_block::exchange(lanes, value,
                              fake_block::running % fake_block::kWarp + static_cast<unsigned>(distance));
}

template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int mask) {
  return fake_block::exchange(lanes, value,
                              fake_block::running % fake_block::kWarp ^ static_cast<unsigned>(mask));
}
