// The messages between the ranks of a team and the hub: bytes to structs and back. Pure, and fuzzed, because
// anybody who can reach the hub's socket can send to it.
//
// On the wire: header (u32 bytes of payload, u16 magic, u8 version, u8 type), a 16-byte seal, the payload;
// all little endian. The first three messages of a connection prove that both ends know the job's secret:
//   member -> hub  hello      rank, size, the member's nonce   sealed: the member knows, or repeats who does
//   hub -> member  challenge  the hub's nonce                  sealed with both nonces: the hub knows it now
//   member -> hub  join       who I am                         the same: the member knows it now
// The hub answers a hello that proves nothing with a refusal that is not sealed, and hangs up.
// Between two ranks (team/mesh.h) it is the same, with another secret, and an empty join.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/siphash.h"
#include "peerway/peerway.h"
#include "team/collective.h"

namespace pw::wire {

inline constexpr uint8_t kVersion = 5;
inline constexpr size_t kHeaderBytes = 8;
inline constexpr size_t kSealBytes = sizeof(Digest);
inline constexpr size_t kHelloBytes = 24;  ///< payload of a hello
inline constexpr size_t kMaxHello = kHeaderBytes + kSealBytes + kHelloBytes;
inline constexpr size_t kMaxHandshake = 1024;                     ///< payload before a connection is trusted
inline constexpr size_t kMaxContribution = size_t{64} << 20;      ///< of one rank to one all_gather
inline constexpr size_t kMaxResult = (size_t{1} << 32) - 1 - 64;  ///< of all ranks together
inline constexpr uint32_t kMaxRanks = 1u << 20;
inline constexpr uint64_t kFarewell =
    1'000'000'000;  ///< ns: the longest that anybody's last messages may take

/// In the number of a collective of some ranks alone, which the hub knows nothing of.
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
  letter,  ///< between ranks: a Letter
  object,  ///< a Failure: a meeting ends for all ranks
  fence,   ///< between ranks: a number, which comes back behind all that was said before
  fenced,  ///< the answer: that number
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

/// Who a rank is: what others need to watch it and to name it.
struct Identity {
  int32_t process = 0;
  uint64_t host = 0;     ///< same value: same boot of the same kernel and the same process-id namespace
  uint64_t network = 0;  ///< on one host, same value: the same network namespace
  std::string host_name;
  std::string addresses;  ///< where it listens to other ranks, with spaces between
};

/// Why something failed, for the ranks it failed for.
struct Refusal {
  pw_status status = PW_INTERNAL;
  std::string text;
};

/// Bytes with the number of what they belong to: all parts of an all_gather together.
struct Numbered {
  uint64_t sequence = 0;
  ByteView data;  ///< into the message parsed
};

/// What one rank gives to a collective, and which call of its program that is. For one whose ranks talk to
/// their partners, only that the rank has called it.
struct Contribution {
  uint64_t sequence = 0;  ///< the collectives of a team are numbered in the order of the calls
  Collective kind = Collective::barrier;
  ByteView data;  ///< into the message parsed
};

/// What a rank writes to a partner in a meeting, and which call of its program that is.
struct Letter {
  uint64_t number = 0;  ///< of the meeting
  Collective kind = Collective::plan;
  uint64_t place = 0;  ///< how many collectives the sender had begun before in which this rank takes part
  ByteView data;       ///< into the message parsed
};

struct Failure {
  uint64_t sequence = 0;
  Refusal refusal;
};

enum class How : uint8_t {
  none = 0,  ///< not lost. Never sent
  left = 1,
  died = 2,
  ended = 3  ///< after the hub had: in good order or not, nobody could say
};

struct Loss {
  uint32_t rank = 0;
  How how = How::died;
};

// All parsers throw Error(PW_INVALID_ARGUMENT) saying what is wrong, and never read outside what they are
// given.
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
/// The identity of one rank in it, which has been parsed before.
Identity parse_welcome_of(ByteView payload, uint32_t rank);
Bytes pack(const Refusal& refusal);
Refusal parse_refuse(ByteView payload);
Bytes pack(const Numbered& part);
Numbered parse_numbered(ByteView payload);
Bytes pack(const Contribution& part);
Contribution parse_contribution(ByteView payload);
Bytes pack(const Letter& letter);
Letter parse_letter(ByteView payload);
Bytes pack(const Failure& failure);
Failure parse_failure(ByteView payload);
Bytes pack_fence(uint64_t number);
uint64_t parse_fence(ByteView payload);
Bytes pack(const Loss& loss);
Loss parse_loss(ByteView payload, uint32_t size);

/// The key that seals hellos: the job's, since no nonces have been exchanged.
Secret hello_key(const Secret& secret);

/// The key of one direction of one connection; `direction` is "hub" or "member".
Secret session_key(const Secret& secret, std::string_view direction, const Hello& hello,
                   const Nonce& challenge);

/// The seal of the message with this number (from 0) in its direction.
Digest seal(const Secret& key, uint64_t number, const HeaderBytes& header, ByteView payload);

}  // namespace pw::wire
