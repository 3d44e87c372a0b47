#include "uct/address.h"

#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/format.h"
#include "base/status.h"

namespace pw::uct {
namespace {

// Addresses and keys both consist of a length and at most 64 bytes.
template <typename Named>
void put(ByteWriter& writer, const Named& named) {
  writer.put(static_cast<uint8_t>(named.length));
  writer.put(std::as_bytes(std::span(named.bytes, named.length)));
}

template <typename Named>
void get(ByteReader& reader, Named& named) {
  named.length = reader.get<uint8_t>();
  if (named.length > sizeof named.bytes)
    throw Error(PW_BAD_KEY, format("an address of another transport: it names {} bytes", named.length));
  std::memcpy(named.bytes, reader.take(named.length).data(), named.length);
}

Address parse(ByteView body) {
  Address address{};
  ByteReader reader(body, "the address of an endpoint of a NIC");
  address.facts.number = reader.get<uint32_t>();
  address.facts.endpoints = reader.get<uint32_t>();
  address.facts.guarantees = reader.get<uint8_t>();
  get(reader, address.facts.address);
  get(reader, address.facts.control);
  get(reader, address.inbox);
  reader.end();
  return address;
}

}  // namespace

std::string pack(const Address& address, const Secret& secret) {
  ByteWriter writer;
  writer.put(address.facts.number);
  writer.put(address.facts.endpoints);
  writer.put(static_cast<uint8_t>(address.facts.guarantees));
  put(writer, address.facts.address);
  put(writer, address.facts.control);
  put(writer, address.inbox);
  const Bytes body = writer.take();
  const Digest digest = siphash(secret, body);
  ByteWriter out;
  out.put(static_cast<uint8_t>(1 + body.size() + digest.size()));
  out.put(ByteView(body));
  out.put(ByteView(digest));
  const Bytes bytes = out.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Address unpack(const void* bytes, const Secret& secret) {
  const auto* first = static_cast<const std::byte*>(bytes);
  const auto size = static_cast<size_t>(*first);
  if (size < 1 + sizeof(Digest))
    throw Error(PW_BAD_KEY, format("an address of another transport: it says that it has {} bytes", size));
  const ByteView body(first + 1, size - 1 - sizeof(Digest));
  Digest digest;
  std::memcpy(digest.data(), first + size - sizeof digest, sizeof digest);
  if (!equal_digests(digest, siphash(secret, body)))
    throw Error(PW_BAD_KEY, "the address of an endpoint that is not of this job, or was altered on its way");
  return parse(body);
}

}  // namespace pw::uct
