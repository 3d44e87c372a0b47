// The messages of a team: bytes to structs and back. Pure, and fuzzed, because anybody who can reach the
// bootstrap server's socket can send to it.
//
// On the wire: header (u32 bytes of payload, u16 magic, u8 version, u8 type), a 16-byte seal, the payload;
// all little endian. The first three messages of a connection prove that both ends know the job's secret:
//   client -> server  hello      rank, size, the client's nonce  sealed: its sender knows the secret, or
//                                                                repeats a hello of one that does
//   server -> client  challenge  the server's nonce              sealed with both nonces: the server knows it
//   client -> server  join       identity of the rank            sealed with both nonces: the client knows it
// The server answers a hello with a wrong seal by an unsealed refusal, and closes the connection.
// Connections between two ranks (team/peer_connections.h) begin alike, with another secret and an empty join.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/siphash.h"
#include "peerway/peerway.h"
#include "team/call_kinds.h"

namespace pw::wire {

inline constexpr uint8_t kVersion = 6;
inline constexpr size_t kHeaderBytes = 8;
inline constexpr size_t kSealBytes = sizeof(Digest);
inline constexpr size_t kHelloBytes = 24;  ///< payload of a hello
inline constexpr size_t kMaxHello = kHeaderBytes + kSealBytes + kHelloBytes;
inline constexpr size_t kMaxHandshake = 1024;  ///< bytes of payload before a connection is authenticated
inline constexpr size_t kMaxContribution = size_t{64} << 20;      ///< bytes of one rank in one all_gather
inline constexpr size_t kMaxResult = (size_t{1} << 32) - 1 - 64;  ///< bytes of all ranks together
inline constexpr uint32_t kMaxRanks = 1u << 20;
inline constexpr uint64_t kGoodbyeTime =
    1'000'000'000;  ///< ns: the longest time for the last messages of a rank that leaves

/// Bit in the number of a collective call among some ranks; the bootstrap server never sees such a collective
/// call.
inline constexpr uint64_t kOfSome = uint64_t{1} << 63;

enum class Type : uint8_t {
  hello = 1,
  challenge,
  join,
  welcome,
  refuse,
  contribute,  ///< a Contribution
  result,
  failure,
  lost,
  goodbye,
  abandon,
  exchange,  ///< between ranks: an ExchangePart
  abort,     ///< a Failure: a collective call ends for all ranks
  fence,     ///< between ranks: a number, which is returned after all earlier messages
  fenced,    ///< the answer: that number
};

struct Header {
  Type type = Type::hello;
  uint32_t bytes = 0;
};

using HeaderBytes = std::array<std::byte, kHeaderBytes>;
using Nonce = std::array<std::byte, 16>;

struct Hello {
  uint32_t rank = 0;
  uint32_t size = 0;
  Nonce nonce{};
};

/// The identity of a rank: what others need to watch its process and to name it in messages.
struct Identity {
  int32_t process = 0;
  uint64_t host = 0;     ///< equal values: the same boot of the same kernel and the same process-id namespace
  uint64_t network = 0;  ///< equal values on one host: the same network namespace
  std::string host_name;
  std::string addresses;  ///< where it listens to other ranks, separated by spaces
};

/// The reason of a failure, for the ranks that it concerns.
struct Refusal {
  pw_status status = PW_INTERNAL;
  std::string text;
};

/// The result of a collective call: the parts of all ranks, and its number.
struct Numbered {
  uint64_t sequence = 0;
  ByteView data;  ///< points into the parsed message
};

/// One rank's part of a collective call, and which call of its program that is. If ranks talk to their
/// partners, it has no data and only reports the call.
struct Contribution {
  uint64_t sequence = 0;  ///< the collective calls of a team are numbered in the order of the calls
  CallKind kind = CallKind::barrier;
  ByteView data;  ///< points into the parsed message
};

/// A message to a partner in an exchange, and which call of the sender's program that is.
struct ExchangePart {
  uint64_t number = 0;  ///< of the exchange
  CallKind kind = CallKind::plan;
  uint64_t place = 0;  ///< how many collective calls with this rank the sender had begun before
  ByteView data;       ///< points into the parsed message
};

struct Failure {
  uint64_t sequence = 0;
  Refusal refusal;
};

enum class How : uint8_t {
  none = 0,      ///< not lost; never sent
  departed = 1,  ///< left in good order, with a goodbye
  died = 2,
  ended = 3  ///< ended after the bootstrap server; it is unknown whether in good order
};

struct Loss {
  uint32_t rank = 0;
  How how = How::died;
};

// All parsers throw Error(PW_INVALID_ARGUMENT) that says what is wrong, and never read outside their input.
HeaderBytes pack_header(Type type, size_t bytes);
Header parse_header(const HeaderBytes& bytes, size_t limit);
Bytes pack(const Hello& hello);
Hello parse_hello(ByteView payload);
Bytes pack(const Nonce& challenge);
Nonce parse_challenge(ByteView payload);
Bytes pack(const Identity& identity);
Identity parse_join(ByteView payload);
Bytes pack(const std::vector<Identity>& roster);
std::vector<Identity> parse_welcome(ByteView payload, uint32_t size);
/// The identity of one rank, from a welcome that has been parsed before.
Identity parse_welcome_of(ByteView payload, uint32_t rank);
Bytes pack(const Refusal& refusal);
Refusal parse_refuse(ByteView payload);
Bytes pack(const Numbered& part);
Numbered parse_numbered(ByteView payload);
Bytes pack(const Contribution& part);
Contribution parse_contribution(ByteView payload);
Bytes pack(const ExchangePart& part);
ExchangePart parse_exchange_part(ByteView payload);
Bytes pack(const Failure& failure);
Failure parse_failure(ByteView payload);
Bytes pack_fence(uint64_t number);
uint64_t parse_fence(ByteView payload);
Bytes pack(const Loss& loss);
Loss parse_loss(ByteView payload, uint32_t size);

/// The key that seals hellos, before nonces have been exchanged.
Secret hello_key(const Secret& secret);

/// The key of one direction of one connection; `direction` is "server" or "client".
Secret session_key(const Secret& secret, std::string_view direction, const Hello& hello,
                   const Nonce& challenge);

/// The seal of the message with this number (from 0) in its direction.
Digest seal(const Secret& key, uint64_t number, const HeaderBytes& header, ByteView payload);

}  // namespace pw::wire
