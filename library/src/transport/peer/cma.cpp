#include "transport/peer/cma.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/format.h"
#include "base/status.h"
#include "device/host/copy.h"

namespace pw {
namespace {

constexpr size_t kPieces = 1024;  // the kernel's limit for one call (UIO_MAXIOV)

// Checks whether the system call is available at all. Only the first transfer shows whether it may reach a
// process.
std::string find_why_not() {
  uint64_t from = 1, to = 0;
  const iovec local{&to, sizeof to}, remote{&from, sizeof from};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof to) return {};
  return "the kernel refuses cross-memory attach" + errno_text(errno) +
         "; in a container allow process_vm_readv and process_vm_writev (CAP_SYS_PTRACE or a seccomp profile "
         "with them)";
}

// Collects pieces of both sides and passes them to the kernel in batches.
class Batch {
 public:
  Batch(Op op, pid_t process) : op_(op), process_(process) {}

  int add(std::byte* local, std::byte* remote, uint64_t bytes) {
    local_[count_] = {local, bytes};
    remote_[count_] = {remote, bytes};
    bytes_ += bytes;
    return ++count_ == kPieces ? send() : 0;
  }

  /// Returns 0 or errno.
  int send() {
    size_t first = 0;
    while (bytes_ > 0) {
      const auto call = op_ == Op::put ? process_vm_writev : process_vm_readv;
      const ssize_t moved =
          call(process_, local_ + first, count_ - first, remote_ + first, count_ - first, 0);
      if (moved < 0) return errno;
      if (moved == 0) return EFAULT;
      bytes_ -= static_cast<uint64_t>(moved);
      first = skip(first, static_cast<size_t>(moved));
    }
    count_ = 0;
    return 0;
  }

 private:
  // The kernel may stop early (a call moves at most 2 GiB); this skips what was moved.
  size_t skip(size_t first, size_t moved) {
    while (moved > 0 && moved >= local_[first].iov_len) moved -= local_[first++].iov_len;
    if (moved > 0)
      for (iovec* piece : {&local_[first], &remote_[first]}) {
        piece->iov_base = static_cast<std::byte*>(piece->iov_base) + moved;
        piece->iov_len -= moved;
      }
    return first;
  }

  Op op_;
  pid_t process_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
  iovec local_[kPieces];
  iovec remote_[kPieces];
};

}  // namespace

PeerCma::PeerCma() : Path(Completes::at_start), why_not_(find_why_not()) {}

Offer PeerCma::offer_for(const Pair& pair) const {
  if (pair.local.kind != PW_HOST || pair.remote.kind != PW_HOST)
    return Offer::unsuited("cross-memory attach reaches host memory only");
  if (!pair.same_host) return Offer::unsuited("the peer is on another host");
  if (!why_not_.empty()) return Offer::hindered(why_not_);
  return Offer::yes();
}

pw_status PeerCma::start(const Transfer& transfer) {
  const Key& key = transfer.remote->key;
  auto* remote = reinterpret_cast<std::byte*>(key.exported.address + transfer.remote_offset);
  std::byte* local = transfer.local->address() + transfer.local_offset;
  const Copy copy = copy_between(transfer, local, remote);
  Batch batch(transfer.op, key.exported.process);
  const uint64_t block = transfer.layout.shape.block_bytes;
  int error = 0;
  for_each_block(copy, [&](std::byte* to, const std::byte* from) {
    if (error != 0) return;
    auto* source = const_cast<std::byte*>(from);
    error = transfer.op == Op::put ? batch.add(source, to, block) : batch.add(to, source, block);
  });
  if (error == 0) error = batch.send();
  if (error == 0) return PW_OK;
  const int rank = transfer.remote->rank();
  if (error == ESRCH)
    return fail(PW_PEER_LOST, format("rank {} (process {}) has ended", rank, key.exported.process));
  if (error == EPERM)
    return fail(PW_DENIED, format("the kernel refuses cross-memory attach to rank {} (process {}); both must "
                                  "run as one user, and kernel.yama.ptrace_scope be 0 or 1",
                                  rank, key.exported.process));
  return fail(
      PW_SYSTEM,
      format("cross-memory {} of {} bytes with rank {}{}; the memory may have been freed while "
             "registered",
             transfer.op == Op::put ? "put" : "get", transfer.layout.shape.bytes(), rank, errno_text(error)));
}

}  // namespace pw
