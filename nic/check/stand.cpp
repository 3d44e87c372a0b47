#include "nic/check/stand.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "base/random.h"
#include "base/status.h"

namespace pw::nic::check {

// ---- memory ----

Arena::Arena(uint64_t from, uint64_t room, bool with_descriptor) : from_(from), room_(room) {
  int flags = MAP_SHARED | MAP_NORESERVE;
  if (with_descriptor) {
    descriptor_ = Descriptor(memfd_create("peerway-nic-check", MFD_CLOEXEC));
    if (!descriptor_ || ftruncate(descriptor_.get(), static_cast<off_t>(bytes())) != 0) return;
  } else {
    flags |= MAP_ANONYMOUS;
  }
  void* mapped = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, flags, descriptor_.get(), 0);
  if (mapped != MAP_FAILED) base_ = static_cast<std::byte*>(mapped);
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, bytes());
}

pw_nic_span Arena::span() const {
  pw_nic_span span{};
  span.size = sizeof span;
  span.address = at(0);
  span.bytes = room_;
  span.descriptor = descriptor_.get();
  span.descriptor_offset = descriptor_ ? from_ : 0;
  return span;
}

// ---- processes ----

namespace {

// Makes the child end with its parent, and restores the default for signals that Python handles.
void be_a_child() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGCHLD, SIGPIPE})
    signal(number, SIG_DFL);
}

}  // namespace

pid_t Stand::spawn(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(PW_SYSTEM, "no process for the tests" + errno_text(errno));
  if (child > 0) return child;
  be_a_child();
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peerway: %s\n", error.what());
    _exit(1);
  }
  _exit(0);  // skips the exit handlers of Python and of the plugin
}

// The arenas have no descriptor, begin at a page of their file, or begin within a page.
Stand::Stand(const Options& o, uint64_t j, const std::function<void(Stand&)>& near)
    : options(o),
      job{j, random_bytes<PW_NIC_SECRET_BYTES>()},
      arena{Arena{4096, Arena::kRoom, false}, Arena{4096, Arena::kRoom, true},
            Arena{4096, Arena::kRoom, false}, Arena{4096 + 136, Arena::kRoom, true}},
      huge(4096, kHugeRoom, true) {
  for (const Arena& each : arena)
    if (!each.there()) throw Error(PW_NO_MEMORY, "no shared memory for the tests" + errno_text(errno));
  const auto pair = [](int type) {
    int both[2];
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, both) != 0)
      throw Error(PW_SYSTEM, "no socket for the tests" + errno_text(errno));
    return std::pair(Descriptor(both[0]), Descriptor(both[1]));
  };
  for (uint32_t rank = 1; rank < kRanks; ++rank) {
    auto [mine, theirs] = pair(SOCK_STREAM);
    // Clang 14 accepts bindings only by name.
    process[rank] = spawn([&, &here = mine, socket = theirs.get()] {
      for (Descriptor& other : far) other.reset();
      here.reset();
      serve_far_end(*this, rank, socket);
    });
    far[rank] = std::move(mine);
  }
  auto [mine, theirs] = pair(SOCK_STREAM);
  process[0] = spawn([&, &to = theirs, &here = mine] {
    here.reset();
    report = std::move(to);
    near(*this);
  });
  report = std::move(mine);
  for (Descriptor& each : far) each.reset();  // only the near end keeps them, so that they close when it ends
}

Stand::~Stand() {
  for (const pid_t child : process)
    if (child > 0) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
}

std::string Stand::how_near_ended() {
  int status = 0;
  waitpid(process[0], &status, 0);
  process[0] = 0;
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGINT) throw Error(PW_CLOSED, "interrupted");
    return format("its process was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return WEXITSTATUS(status) == 0 ? "" : format("its process ended with status {}", WEXITSTATUS(status));
}

}  // namespace pw::nic::check
