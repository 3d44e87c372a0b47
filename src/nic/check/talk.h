// What the two processes of a conformance test say to one another, over a socket: the near end asks, the far
// end answers.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "peerway/nic.h"

namespace pw::nic::check {

enum class Ask : uint8_t {
  open,    ///< an endpoint: text is its configuration -> address
  memory,  ///< `bytes` bytes of memory, all kPoison, registered but for `offset` bytes on each side -> key
  read,    ///< `bytes` bytes of the whole memory from `offset` on
  await,   ///< until the word at `offset` of what is registered is `value`: what it is at last
  watch,   ///< `value` rounds of a block of `bytes` and its word: the round whose word was before its block
  forget,  ///< deregister the memory, and keep it
  close,
};

struct Request {
  Ask ask = Ask::open;
  uint64_t offset = 0, bytes = 0, value = 0;
  std::string text;
};

struct Reply {
  pw_nic_status status = PW_NIC_OK;
  uint64_t value = 0;
  std::string why;
  Bytes bytes;
};

inline constexpr auto kPoison = std::byte{0xA5};
inline constexpr uint64_t kPatience_ns = 5'000'000'000;  ///< after which something will not come any more

/// The word that marks round `v`: both halves alike, so that a torn one shows.
inline uint64_t word_of(uint64_t v) { return v << 32 | v; }

/// Where a watched block and its word lie in what is registered.
inline constexpr uint64_t kWatchedWord = 0, kWatchedBlock = 64;

/// Throw Error when the other process is gone.
void send(int socket, const Request& request);
void send(int socket, const Reply& reply);
bool receive(int socket, Request& request);  ///< false at the end
Reply receive_reply(int socket);

}  // namespace pw::nic::check
