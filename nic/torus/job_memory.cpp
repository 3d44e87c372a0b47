#include "torus/job_memory.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/format.h"
#include "base/shared_memory.h"
#include "torus/failure.h"

namespace pw::torus {
namespace {

constexpr uint64_t kJoinTimeout = 10'000'000'000;

struct Abstract {
  explicit Abstract(const std::string& name) {
    address.sun_family = AF_UNIX;
    // A leading zero byte: the name is in no file system.
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t size;
};

Failure job_memory_failure(const char* problem, int error) {
  return {PW_NIC_BROKEN,
          format("torus: {} for the memory that this job's processes share{}", problem, lacking(error))};
}

Descriptor unix_socket(int flags) {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!socket) throw job_memory_failure("no socket", errno);
  return socket;
}

/// Returns the process at the other end, according to the kernel.
std::optional<ucred> credentials_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

/// A message of one byte and two descriptors.
struct DescriptorMessage {
  static constexpr size_t kBytes = CMSG_SPACE(2 * sizeof(int));
  DescriptorMessage() {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = kBytes;
  }
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[kBytes] = {};
  msghdr header{};
};

}  // namespace

// A process maps the memory once, however many endpoints it opens.
std::shared_ptr<JobMemory> JobMemory::at(const std::string& name, uint64_t bytes, uint64_t held,
                                         const std::function<void(std::byte*)>& make) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<JobMemory>> here;
  std::lock_guard lock(mutex);
  std::erase_if(here, [](const auto& entry) { return entry.second.expired(); });
  if (auto known = here[name].lock()) return known;
  const std::shared_ptr<JobMemory> job_memory(new JobMemory(name, bytes));
  const uint64_t deadline = now_ns() + kJoinTimeout;
  while (!job_memory->join(deadline) && !job_memory->create(held, make)) {
    if (now_ns() > deadline)
      throw Failure(PW_NIC_BROKEN, format("torus: the processes of this job at the socket @{} neither answer "
                                          "nor end; is one stopped?",
                                          name));
    usleep(1000);  // the process that has the name does not listen yet, or is about to end
  }
  here[name] = job_memory;
  return job_memory;
}

JobMemory::~JobMemory() {
  if (address_ != nullptr) munmap(address_, bytes_);
}

void JobMemory::map() {
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (mapped == MAP_FAILED) throw job_memory_failure("no room", errno);
  address_ = static_cast<std::byte*>(mapped);
}

// Returns false if there is no process to ask, or no longer.
bool JobMemory::join(uint64_t deadline) {
  const Descriptor socket = unix_socket(0);
  const uint64_t now = now_ns(), microseconds = (deadline > now ? deadline - now : 0) / 1000 + 1;
  const timeval limit{static_cast<time_t>(microseconds / 1'000'000),
                      static_cast<suseconds_t>(microseconds % 1'000'000)};
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const Abstract to(name_);
  if (::connect(socket.get(), to.get(), to.size) != 0) return false;
  const auto peer = credentials_of(socket.get());
  if (!peer || peer->uid != geteuid())
    throw Failure(PW_NIC_BROKEN,
                  format("torus: process {} of user {} has the socket @{}, by which this job's processes of "
                         "user {} meet; end it, or start the job under another number",
                         peer ? peer->pid : 0, peer ? peer->uid : 0, name_, geteuid()));
  DescriptorMessage got;
  const ssize_t bytes = recvmsg(socket.get(), &got.header, MSG_CMSG_CLOEXEC);
  if (bytes <= 0) return false;
  const cmsghdr* part = CMSG_FIRSTHDR(&got.header);
  std::array<int, 2> both{-1, -1};
  if (part != nullptr && part->cmsg_type == SCM_RIGHTS)
    std::memcpy(both.data(), CMSG_DATA(part), std::min(sizeof both, part->cmsg_len - CMSG_LEN(0)));
  memory_ = Descriptor(both[0]);
  listener_ = Descriptor(both[1]);
  if (!memory_ || !listener_) throw job_memory_failure("no descriptor is left", EMFILE);
  map();
  return true;
}

// Returns false if another process has the name.
bool JobMemory::create(uint64_t held, const std::function<void(std::byte*)>& make) {
  Descriptor listener = unix_socket(SOCK_NONBLOCK);
  const Abstract at(name_);
  if (bind(listener.get(), at.get(), at.size) != 0) {
    if (errno == EADDRINUSE) return false;
    throw job_memory_failure("no name", errno);
  }
  memory_ = make_shared_memory("peerway-torus", bytes_, held);
  if (!memory_)
    throw Failure(PW_NIC_BROKEN, format("torus: no {} bytes of shared memory for the state of this job{}",
                                        bytes_, why_no_shared_memory(errno)));
  map();
  make(address_);
  if (listen(listener.get(), SOMAXCONN) != 0) throw job_memory_failure("no listening socket", errno);
  listener_ = std::move(listener);
  return true;
}

bool JobMemory::hold(uint64_t offset, uint64_t bytes) const { return hold_memory(memory_, offset, bytes); }

void JobMemory::hand_out() const {
  for (;;) {
    const Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return;
    const auto peer = credentials_of(socket.get());
    if (!peer || peer->uid != geteuid()) continue;
    DescriptorMessage hand;
    cmsghdr* part = CMSG_FIRSTHDR(&hand.header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(2 * sizeof(int));
    const std::array<int, 2> both{memory_.get(), listener_.get()};
    std::memcpy(CMSG_DATA(part), both.data(), sizeof both);
    // A process that does not receive the message asks again.
    sendmsg(socket.get(), &hand.header, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void JobMemory::wake_all() const {
  const Descriptor socket = unix_socket(SOCK_NONBLOCK);
  const Abstract to(name_);
  [[maybe_unused]] const int connected = ::connect(socket.get(), to.get(), to.size);
}

}  // namespace pw::torus
