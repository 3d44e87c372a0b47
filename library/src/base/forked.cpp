#include "base/forked.h"

#include <pthread.h>
#include <unistd.h>

#include "base/format.h"
#include "base/status.h"

namespace pw {

std::atomic<bool> is_forked_child{false};

namespace {

std::atomic<int> guards{0};
std::atomic<int> guarded_process{0};

void begin_child() {
  if (guards.load() > 0) is_forked_child.store(true);
}

[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, begin_child);

}  // namespace

ForkGuard::ForkGuard() {
  guarded_process.store(::getpid());
  guards.fetch_add(1);
}

ForkGuard::~ForkGuard() { guards.fetch_sub(1); }

void refuse_in_forked_child(const char* call) {
  if (in_forked_child())
    throw Error(PW_UNSUPPORTED,
                format("{} was called in process {}, a child that process {} forked while it was in a "
                       "team; the team and its memory stay with the parent. Fork before the team is made, or "
                       "start a new program instead (exec; in Python multiprocessing with \"spawn\")",
                       call, ::getpid(), guarded_process.load()));
}

}  // namespace pw
