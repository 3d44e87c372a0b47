#include "team/message.h"

#include <algorithm>

#include "base/format.h"

namespace pw::wire {
namespace {

constexpr uint16_t kMagic = 0x5750;  // "PW"
constexpr size_t kMaxText = 4096;
constexpr size_t kMaxHostName = 255;
constexpr size_t kMaxAddresses = 512;

[[noreturn]] void refuse(std::string text) { throw Error(PW_INVALID_ARGUMENT, std::move(text)); }

void write(ByteWriter& writer, const Identity& identity) {
  writer.put(identity.process);
  writer.put(identity.host);
  writer.put(identity.network);
  writer.put_text(std::string_view(identity.host_name).substr(0, kMaxHostName));
  writer.put_text(identity.addresses);
}

Identity read_identity(ByteReader& reader) {
  Identity identity;
  identity.process = reader.get<int32_t>();
  identity.host = reader.get<uint64_t>();
  identity.network = reader.get<uint64_t>();
  identity.host_name = reader.get_text(kMaxHostName);
  identity.addresses = reader.get_text(kMaxAddresses);
  if (identity.process <= 0) refuse(format("process id {} in a join message", identity.process));
  return identity;
}

void write(ByteWriter& writer, const Refusal& refusal) {
  writer.put(static_cast<uint32_t>(refusal.status));
  writer.put_text(std::string_view(refusal.text).substr(0, kMaxText));
}

Refusal read_refusal(ByteReader& reader) {
  const auto status = reader.get<uint32_t>();
  if (status == PW_OK || status > PW_INTERRUPTED) refuse(format("status {} in a refusal", status));
  return {static_cast<pw_status>(status), reader.get_text(kMaxText)};
}

Hello read_hello(ByteReader& reader) {
  Hello hello;
  hello.rank = reader.get<uint32_t>();
  hello.size = reader.get<uint32_t>();
  hello.nonce = reader.get_array<16>();
  return hello;
}

CallKind read_kind(ByteReader& reader, CallKind first, CallKind last) {
  const auto kind = reader.get<uint8_t>();
  if (kind < static_cast<uint8_t>(first) || kind > static_cast<uint8_t>(last))
    refuse(format("collective of kind {} in a rank's part", kind));
  return static_cast<CallKind>(kind);
}

/// Parses a payload that holds one struct and nothing after it.
template <typename Read>
auto parse_whole(ByteView payload, const char* name, Read read) {
  ByteReader reader(payload, name);
  auto parsed = read(reader);
  reader.end();
  return parsed;
}

template <typename Struct>
Bytes packed(const Struct& fields) {
  ByteWriter writer;
  write(writer, fields);
  return writer.take();
}

}  // namespace

HeaderBytes pack_header(Type type, size_t bytes) {
  ByteWriter writer;
  writer.put(static_cast<uint32_t>(bytes));
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(static_cast<uint8_t>(type));
  HeaderBytes header;
  std::ranges::copy(writer.take(), header.begin());
  return header;
}

Header parse_header(const HeaderBytes& bytes, size_t limit) {
  ByteReader reader(bytes, "the header of a message");
  Header header;
  header.bytes = reader.get<uint32_t>();
  if (const auto magic = reader.get<uint16_t>(); magic != kMagic)
    refuse(format("what arrived is not a Peerway message (magic {:#06x}, not {:#06x})", magic, kMagic));
  if (const auto version = reader.get<uint8_t>(); version != kVersion)
    refuse(format(
        "a message of protocol version {} arrived; this library speaks {}. Start all ranks with the same "
        "version of Peerway",
        version, kVersion));
  const auto type = reader.get<uint8_t>();
  if (type < static_cast<uint8_t>(Type::hello) || type > static_cast<uint8_t>(Type::fenced))
    refuse(format("a message of the unknown type {} arrived", type));
  header.type = static_cast<Type>(type);
  if (header.bytes > limit)
    refuse(format("a message of {} bytes arrived; at most {} are allowed here", header.bytes, limit));
  return header;
}

Bytes pack(const Hello& hello) {
  ByteWriter writer;
  writer.put(hello.rank);
  writer.put(hello.size);
  writer.put(hello.nonce);
  return writer.take();
}

Hello parse_hello(ByteView payload) {
  const Hello hello = parse_whole(payload, "a hello message", read_hello);
  if (hello.size == 0 || hello.size > kMaxRanks || hello.rank >= hello.size)
    refuse(format("rank {} of {} in a hello message", hello.rank, hello.size));
  return hello;
}

Bytes pack(const Nonce& challenge) { return {challenge.begin(), challenge.end()}; }

Nonce parse_challenge(ByteView payload) {
  return parse_whole(payload, "a challenge message",
                     [](ByteReader& reader) { return reader.get_array<sizeof(Nonce)>(); });
}

Bytes pack(const Identity& identity) { return packed(identity); }

Identity parse_join(ByteView payload) { return parse_whole(payload, "a join message", read_identity); }

Bytes pack(const std::vector<Identity>& roster) {
  ByteWriter writer;
  for (const Identity& identity : roster) write(writer, identity);
  return writer.take();
}

std::vector<Identity> parse_welcome(ByteView payload, uint32_t size) {
  ByteReader reader(payload, "a welcome message");
  std::vector<Identity> roster;
  for (uint32_t rank = 0; rank < size; ++rank) roster.push_back(read_identity(reader));
  reader.end();
  return roster;
}

Identity parse_welcome_of(ByteView payload, uint32_t rank) {
  ByteReader reader(payload, "a welcome message");
  for (uint32_t before = 0; before < rank; ++before) read_identity(reader);
  return read_identity(reader);
}

Bytes pack(const Refusal& refusal) { return packed(refusal); }

Refusal parse_refuse(ByteView payload) { return parse_whole(payload, "a refusal", read_refusal); }

Bytes pack(const Numbered& part) {
  ByteWriter writer;
  writer.put(part.sequence);
  writer.put(part.data);
  return writer.take();
}

Numbered parse_numbered(ByteView payload) {
  ByteReader reader(payload, "an all_gather message");
  const auto sequence = reader.get<uint64_t>();
  return {sequence, reader.rest()};
}

Bytes pack(const Contribution& part) {
  ByteWriter writer;
  writer.put(part.sequence);
  writer.put(static_cast<uint8_t>(part.kind));
  writer.put(part.data);
  return writer.take();
}

Contribution parse_contribution(ByteView payload) {
  ByteReader reader(payload, "a rank's part of a collective");
  const auto sequence = reader.get<uint64_t>();
  const CallKind kind = read_kind(reader, CallKind::barrier, CallKind::collective);
  return {sequence, kind, reader.rest()};
}

Bytes pack(const ExchangePart& part) {
  ByteWriter writer;
  writer.put(part.number);
  writer.put(static_cast<uint8_t>(part.kind));
  writer.put(part.place);
  writer.put(part.data);
  return writer.take();
}

ExchangePart parse_exchange_part(ByteView payload) {
  ByteReader reader(payload, "a part of an exchange");
  const auto number = reader.get<uint64_t>();
  const CallKind kind = read_kind(reader, CallKind::plan, CallKind::collective_among);
  const auto place = reader.get<uint64_t>();
  return {number, kind, place, reader.rest()};
}

Bytes pack(const Failure& failure) {
  ByteWriter writer;
  writer.put(failure.sequence);
  write(writer, failure.refusal);
  return writer.take();
}

Failure parse_failure(ByteView payload) {
  return parse_whole(payload, "a failure message", [](ByteReader& reader) {
    const auto sequence = reader.get<uint64_t>();
    return Failure{sequence, read_refusal(reader)};
  });
}

Bytes pack_fence(uint64_t number) {
  ByteWriter writer;
  writer.put(number);
  return writer.take();
}

uint64_t parse_fence(ByteView payload) {
  return parse_whole(payload, "a fence", [](ByteReader& reader) { return reader.get<uint64_t>(); });
}

Bytes pack(const Loss& loss) {
  ByteWriter writer;
  writer.put(loss.rank);
  writer.put(static_cast<uint8_t>(loss.how));
  return writer.take();
}

Loss parse_loss(ByteView payload, uint32_t size) {
  ByteReader reader(payload, "a loss message");
  const auto rank = reader.get<uint32_t>();
  const auto how = reader.get<uint8_t>();
  reader.end();
  if (rank >= size) refuse(format("rank {} of {} in a loss message", rank, size));
  if (how < static_cast<uint8_t>(How::departed) || how > static_cast<uint8_t>(How::ended))
    refuse(format("kind {} in a loss message", how));
  return {rank, static_cast<How>(how)};
}

Secret hello_key(const Secret& secret) { return siphash(secret, view_of("peerway hello")); }

Secret session_key(const Secret& secret, std::string_view direction, const Hello& hello,
                   const Nonce& challenge) {
  ByteWriter text;
  text.put_text(direction);
  text.put(pack(hello));
  text.put(challenge);
  return siphash(secret, text.take());
}

Digest seal(const Secret& key, uint64_t number, const HeaderBytes& header, ByteView payload) {
  ByteWriter text;
  text.put(number);
  text.put(header);
  // Hashed first, so that a large payload need not be copied after the number.
  text.put(siphash(key, payload));
  return siphash(key, text.take());
}

}  // namespace pw::wire
