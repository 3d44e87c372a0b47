// Whether a plugin keeps the laws of peerway/nic.h and the promises that it states: what `peerway nic-check`
// asks. Two processes take part: the near end, which calls the plugin as a program would, and the far end,
// whose memory is the target and which calls nothing while bytes should move.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace pw::nic::check {

enum class Outcome : uint8_t { right, wrong, absent };

struct Verdict {
  std::string law;  ///< what was looked at, in a few words
  Outcome outcome;
  std::string found;  ///< with what to do about it, where it is wrong
};

/// Serves the far end until the socket is closed. Throws Error when the plugin cannot be loaded.
void serve_far_end(const std::string& plugin, uint64_t job, int socket);

/// Checks the plugin, with a far end at the other end of `socket` that `kill_far_end` ends suddenly. `tell`
/// is called with each verdict as it is reached. Throws Error when the plugin cannot be loaded, or when a
/// process of the check is lost.
void check(const std::string& plugin, uint64_t job, const std::string& configuration, int socket,
           const std::function<void()>& kill_far_end, const std::function<void(const Verdict&)>& tell);

}  // namespace pw::nic::check
