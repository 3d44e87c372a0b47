#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "nic/check/laws.h"

namespace pw::nic::check {
namespace {

std::string limits(NearEnd& near) {
  const pw_nic_info& info = near.info();
  if (info.largest < 4096) throw Broken{format("info.largest is {}; at least 4096 is asked", info.largest)};
  if (info.copied < 8) throw Broken{format("info.copied is {}; at least 8 is asked", info.copied)};
  if ((info.memory_kinds & 1u << PW_NIC_HOST) == 0)
    throw Broken{"info.memory_kinds is without host memory (1 << PW_NIC_HOST)"};
  return format("up to {} bytes a put or get, {} copied at once, {}", info.largest, info.copied,
                info.in_flight == 0 ? "any number under way" : format("{} under way", info.in_flight));
}

std::string numbers(NearEnd& near) {
  const pw_nic_info& info = near.info();
  for (const uint32_t number : {info.number, near.far_number()})
    if (number >= info.endpoints)
      throw Broken{format("an endpoint has number {}, but info.endpoints is {}", number, info.endpoints)};
  if (info.number == near.far_number())
    throw Broken{format("both endpoints have number {}; each of a job needs one of its own", info.number)};
  return format("{} and {} of {}", info.number, near.far_number(), info.endpoints);
}

std::string topology(NearEnd& near) {
  const pw_nic_info& info = near.info();
  if (info.dimensions > PW_NIC_DIMENSIONS)
    throw Broken{format("info.dimensions is {}; at most {}", info.dimensions, PW_NIC_DIMENSIONS)};
  std::string place, extents;
  for (uint32_t d = 0; d < info.dimensions; ++d) {
    if (info.coordinate[d] >= info.extent[d])
      throw Broken{
          format("coordinate[{}] is {}, extent[{}] is {}", d, info.coordinate[d], d, info.extent[d])};
    place += format("{}{}", d == 0 ? "" : ",", info.coordinate[d]);
    extents += format("{}{}", d == 0 ? "" : " x ", info.extent[d]);
  }
  return info.dimensions == 0 ? "" : format("node ({}) of {}", place, extents);
}

std::string hints(NearEnd& near) {
  const pw_nic_info& info = near.info();
  if (info.latency_ns <= 0 || info.bytes_per_s <= 0)
    throw Broken{"info.latency_ns and info.bytes_per_s must be positive: routes are first guessed from them"};
  return format("{:.0f} ns, {:.1f} GB/s", info.latency_ns, info.bytes_per_s / 1e9);
}

std::string foreign_addresses(NearEnd& near) {
  pw_nic_address damaged{};
  near.ops().address(near.nic(), &damaged);
  std::memset(damaged.bytes, 0x5A, sizeof damaged.bytes);
  for (const uint32_t length : {damaged.length, uint32_t{0}, uint32_t{PW_NIC_ADDRESS_BYTES}}) {
    pw_nic_address address = damaged;
    address.length = length;
    pw_nic_peer* peer = nullptr;
    if (near.ops().connect(near.nic(), &address, &peer) == PW_NIC_OK) {
      near.ops().disconnect(near.nic(), peer);
      throw Broken{format("connect() took {} bytes that are no address; PW_NIC_REFUSED is asked", length)};
    }
  }
  return "connect() refuses them";
}

std::string foreign_keys(NearEnd& near) {
  for (const uint32_t length : {0u, 8u, uint32_t{PW_NIC_KEY_BYTES}}) {
    pw_nic_key key{};
    key.length = length;
    std::memset(key.bytes, 0x5A, sizeof key.bytes);
    pw_nic_remote* remote = nullptr;
    if (near.ops().import_key(near.nic(), near.peer(), &key, &remote) != PW_NIC_OK) continue;
    // A card may find out only when the key is used: then the use must fail.
    Counted& done = near.fresh();
    const pw_nic_status status = near.ops().get(near.nic(), remote, 0, near.at(0), near.memory(), 8, &done);
    if (status == PW_NIC_OK) near.wait(done, "a get by a key that is none");
    near.ops().release_key(near.nic(), remote);
    if (status == PW_NIC_OK && done.status == PW_NIC_OK)
      throw Broken{format("{} bytes that are no key were imported and read from", length)};
  }
  return "import_key() or the first use refuses them";
}

std::string errors_are_told(NearEnd& near) {
  pw_nic_address none{};
  pw_nic_peer* peer = nullptr;
  near.ops().connect(near.nic(), &none, &peer);
  const char* why = near.ops().why(near.nic());
  if (why == nullptr || *why == '\0' || std::strchr(why, '\n') != nullptr)
    throw Broken{"after a refusal why() must give one line for people"};
  return format("\"{}\"", why);
}

}  // namespace

std::span<const Law> laws_of_setup() {
  static constexpr Law kLaws[] = {
      {"limits", limits},
      {"numbers of endpoints", numbers},
      {"topology", topology},
      {"cost hints", hints},
      {"bytes that are no address", foreign_addresses},
      {"bytes that are no key", foreign_keys},
      {"why() after a refusal", errors_are_told},
  };
  return kLaws;
}

}  // namespace pw::nic::check
