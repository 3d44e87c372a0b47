// The processes of the conformance tests and the memory between them: one near end and several far ends. All
// processes map the memory that one of them registers, so that they see what a NIC stores without asking
// anybody.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/descriptor.h"
#include "nic/check/check.h"
#include "nic/job.h"
#include "peerway/nic.h"

namespace pw::nic::check {

inline constexpr uint32_t kFars = 3, kRanks = 1 + kFars;  ///< rank 0 is the near end
inline constexpr auto kPoison = std::byte{0xA5};

/// Memory of one rank. The registered part begins `from` bytes after its begin; the rest is a guard area that
/// nothing may touch.
class Arena {
 public:
  /// Makes it with a descriptor, or without: a NIC must accept both.
  Arena(uint64_t from, uint64_t room, bool with_descriptor);
  ~Arena();
  Arena(const Arena&) = delete;

  static constexpr uint64_t kRoom = uint64_t{1} << 20;
  static constexpr uint64_t kGuardBehind = 4096;

  [[nodiscard]] bool there() const { return base_ != nullptr; }
  [[nodiscard]] std::byte* at(uint64_t offset) const {
    return base_ + from_ + offset;
  }  ///< of what is registered
  [[nodiscard]] uint64_t* word(uint64_t offset) const { return reinterpret_cast<uint64_t*>(at(offset)); }
  [[nodiscard]] uint64_t room() const { return room_; }
  [[nodiscard]] uint64_t from() const { return from_; }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] uint64_t bytes() const { return from_ + room_ + kGuardBehind; }
  [[nodiscard]] pw_nic_span span() const;

 private:
  uint64_t from_, room_;
  Descriptor descriptor_;
  std::byte* base_ = nullptr;
};

class Stand {
 public:
  /// Forks the processes. `near` runs in the near end, with the sockets to the far ends, and reports to this
  /// process through `report`.
  Stand(const Options& options, uint64_t job, const std::function<void(Stand& stand)>& near);
  ~Stand();
  Stand(const Stand&) = delete;

  const Options& options;
  const Job job;  ///< with a secret, because a NIC may require one
  std::array<Arena, kRanks> arena;
  Arena huge;  ///< of the first far end: more than 4 GiB, of which only little is ever touched
  std::array<Descriptor, kRanks> far;   ///< in the near end: the socket to each far end
  std::array<pid_t, kRanks> process{};  ///< of the far ends; set in the near end, too
  Descriptor report;  ///< here: reports of the near end; in the near end: the other end of that socket

  static constexpr uint64_t kHugeRoom = (uint64_t{4} << 30) + (1u << 20);

  /// Waits for the end of the near end. Returns "" if it ended by itself, else how it ended.
  std::string how_near_ended();

 private:
  pid_t spawn(const std::function<void()>& body);
};

/// Serves a far end until the socket is closed.
void serve_far_end(Stand& stand, uint32_t rank, int socket);

}  // namespace pw::nic::check
