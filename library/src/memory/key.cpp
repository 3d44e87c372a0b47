#include "memory/key.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/format.h"
#include "base/status.h"
#include "device/kinds.h"

namespace pw {
namespace {

constexpr uint32_t kMagic = 0x594b5750;  // "PWKY"
constexpr uint16_t kVersion = 4;
constexpr size_t kWhyMax = 300;

// The key on the wire: fixed fields in host order (a job has one byte order), then the attachments, the
// reason why the region has no handle, and the keyed hash of all that.
struct Wire {
  uint32_t magic;
  uint16_t version;
  uint8_t type;
  uint8_t device_kind;
  uint32_t body_bytes;  ///< bytes before the hash
  uint16_t attached_bytes;
  uint16_t why_bytes;
  uint64_t job;
  uint64_t generation;
  uint64_t bytes;
  uint64_t allocation;
  uint64_t allocation_bytes;
  uint64_t offset;
  uint64_t address;
  int32_t rank;
  int32_t device_index;
  uint32_t slot;
  uint32_t word;
  int32_t sender;
  int32_t process;
  int32_t descriptor;
  uint8_t handle;
  uint8_t access;
  uint16_t reserved;
  std::byte device_uuid[16];
  std::byte handle_bytes[64];
};
static_assert(sizeof(Wire) % 8 == 0 && sizeof(Wire) + sizeof(Digest) < PW_KEY_MAX);

Error refusal(std::string why) { return Error(PW_BAD_KEY, std::move(why)); }

// Reads the fixed fields of a body. Throws if its size and first fields show that it is not a key.
Wire wire_of(std::span<const std::byte> body) {
  Wire wire;
  if (body.size() < sizeof wire)
    throw refusal(
        format("the {} bytes of a key are truncated; there are at least {}", body.size(), sizeof wire));
  std::memcpy(&wire, body.data(), sizeof wire);
  if (wire.magic != kMagic)
    throw refusal(format("these {} bytes are not a key (they begin with {:#010x})",
                         body.size() + sizeof(Digest), wire.magic));
  if (wire.version != kVersion)
    throw refusal(
        format("a key of version {}; this library reads version {}: build all ranks with one Peerway",
               wire.version, kVersion));
  if (body.size() != wire.body_bytes || body.size() != sizeof wire + wire.attached_bytes + wire.why_bytes)
    throw refusal(format("a key of {} bytes, but its header says {}", body.size() + sizeof(Digest),
                         uint64_t{wire.body_bytes} + sizeof(Digest)));
  return wire;
}

// Packs each attachment after its name and its length.
Bytes pack_attached(const Key& key) {
  ByteWriter writer;
  for (const auto& [name, bytes] : key.attached) {
    writer.put(static_cast<uint8_t>(name.size()));
    writer.put(view_of(name));
    writer.put(static_cast<uint16_t>(bytes.size()));
    writer.put(ByteView(bytes));
  }
  return writer.take();
}

void parse_attached(ByteView bytes, Key& key) {
  constexpr size_t kMostAttached = 16;
  ByteReader reader(bytes, "what is attached to a key");
  while (!reader.at_end()) {
    const ByteView name = reader.take(reader.get<uint8_t>());
    const ByteView content = reader.take(reader.get<uint16_t>());
    if (key.attached.size() == kMostAttached) throw Error(PW_BAD_KEY, "too much is attached to a key");
    key.attached.emplace_back(std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                              Bytes(content.begin(), content.end()));
  }
}

}  // namespace

size_t room_in(const Key& key) {
  constexpr size_t kName = 16;
  const size_t used = sizeof(Wire) + sizeof(Digest) + pack_attached(key).size() +
                      std::min(key.why_none.size(), kWhyMax) + kName;
  return used < PW_KEY_MAX ? PW_KEY_MAX - used : 0;
}

std::vector<std::byte> pack_body(const Key& key, uint64_t job) {
  Wire wire{};
  wire.magic = kMagic;
  wire.version = kVersion;
  wire.type = static_cast<uint8_t>(key.type);
  wire.device_kind = static_cast<uint8_t>(key.device.kind);
  const std::string why = key.why_none.substr(0, kWhyMax);
  const Bytes attached = pack_attached(key);
  wire.attached_bytes = static_cast<uint16_t>(attached.size());
  wire.why_bytes = static_cast<uint16_t>(why.size());
  wire.job = job;
  wire.generation = key.generation;
  wire.bytes = key.bytes;
  wire.allocation = key.exported.allocation;
  wire.allocation_bytes = key.exported.bytes;
  wire.offset = key.exported.offset;
  wire.address = key.exported.address;
  wire.rank = key.rank;
  wire.device_index = key.device.index;
  wire.slot = key.slot;
  wire.word = key.word;
  wire.sender = key.sender;
  wire.process = key.exported.process;
  wire.descriptor = key.exported.descriptor;
  wire.handle = static_cast<uint8_t>(key.exported.handle);
  wire.access = static_cast<uint8_t>(key.access);
  std::memcpy(wire.device_uuid, key.exported.device_uuid.data(), sizeof wire.device_uuid);
  std::memcpy(wire.handle_bytes, key.exported.handle_bytes.data(), sizeof wire.handle_bytes);
  const size_t size = sizeof wire + attached.size() + why.size();
  if (size + sizeof(Digest) > PW_KEY_MAX)
    throw Error(PW_INTERNAL, format("{} bytes that transports add do not fit into a key", attached.size()));
  wire.body_bytes = static_cast<uint32_t>(size);
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &wire, sizeof wire);
  std::copy(attached.begin(), attached.end(), bytes.begin() + sizeof wire);
  const auto* text = reinterpret_cast<const std::byte*>(why.data());
  std::copy(text, text + why.size(), bytes.begin() + static_cast<long>(sizeof wire + attached.size()));
  return bytes;
}

std::vector<std::byte> pack(const Key& key, const KeySeal& seal) {
  std::vector<std::byte> bytes = pack_body(key, seal.job);
  const Digest digest = siphash(seal.secret, bytes);
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

Key parse_key(std::span<const std::byte> bytes, const KeySeal& seal) {
  constexpr size_t kLeastBytes = sizeof(Wire) + sizeof(Digest);
  if (bytes.size() < kLeastBytes)
    throw refusal(format("a key of {} bytes is truncated; keys have at least {}", bytes.size(), kLeastBytes));
  if (bytes.size() > PW_KEY_MAX)
    throw refusal(format("a key of {} bytes; keys have at most {}", bytes.size(), PW_KEY_MAX));
  const size_t body_bytes = bytes.size() - sizeof(Digest);
  const auto body = bytes.first(body_bytes);
  const Wire wire = wire_of(body);
  if (wire.job != seal.job)
    throw Error(PW_FOREIGN_KEY,
                "this key belongs to another job; keys are only good within the team they were "
                "made in");
  Digest digest;
  std::memcpy(digest.data(), bytes.data() + body_bytes, sizeof digest);
  if (!equal_digests(digest, siphash(seal.secret, body)))
    throw refusal("the key is damaged or forged: no rank of this team made these bytes");
  return parse_body(body);
}

Key parse_body(std::span<const std::byte> bytes) {
  const Wire wire = wire_of(bytes);
  if (wire.type != 1 && wire.type != 2) throw refusal(format("unknown key type {}", wire.type));
  if (wire.device_kind >= device_kinds().size())
    throw refusal(format("unknown device kind {}", wire.device_kind));
  if (wire.access > static_cast<uint8_t>(Access::read_only))
    throw refusal(format("unknown access {}", wire.access));
  if (wire.rank < 0) throw refusal(format("negative rank {}", wire.rank));
  if (wire.allocation_bytes != 0 &&
      (wire.offset > wire.allocation_bytes || wire.bytes > wire.allocation_bytes - wire.offset))
    throw refusal(format("{} bytes at offset {} are outside the allocation of {} bytes", wire.bytes,
                         wire.offset, wire.allocation_bytes));
  if (wire.type == static_cast<uint8_t>(KeyType::signal) && wire.device_kind != PW_HOST &&
      (wire.word != kNoWord || wire.handle == static_cast<uint8_t>(Handle::none) ||
       wire.allocation_bytes == 0 || wire.bytes == 0 || (wire.bytes | wire.offset) % sizeof(uint64_t) != 0))
    throw refusal(
        format("a signal of {} bytes at offset {} of {} bytes of device memory is not a row of words",
               wire.bytes, wire.offset, wire.allocation_bytes));
  Key key;
  key.type = static_cast<KeyType>(wire.type);
  key.rank = wire.rank;
  key.device = {static_cast<pw_device_kind>(wire.device_kind), wire.device_index};
  key.slot = wire.slot;
  key.generation = wire.generation;
  key.bytes = wire.bytes;
  key.access = static_cast<Access>(wire.access);
  key.word = wire.word;
  key.sender = wire.sender;
  key.exported.handle = static_cast<Handle>(wire.handle);
  key.exported.allocation = wire.allocation;
  key.exported.bytes = wire.allocation_bytes;
  key.exported.offset = wire.offset;
  key.exported.process = wire.process;
  key.exported.descriptor = wire.descriptor;
  key.exported.address = wire.address;
  std::memcpy(key.exported.device_uuid.data(), wire.device_uuid, sizeof wire.device_uuid);
  std::memcpy(key.exported.handle_bytes.data(), wire.handle_bytes, sizeof wire.handle_bytes);
  const auto* rest = bytes.data() + sizeof wire;
  try {
    parse_attached({rest, wire.attached_bytes}, key);
  } catch (const Error& error) {
    throw Error(PW_BAD_KEY, error.what());
  }
  key.why_none.assign(reinterpret_cast<const char*>(rest + wire.attached_bytes), wire.why_bytes);
  return key;
}

}  // namespace pw
