#include "uct/address.h"

#include <cstring>

#include "base/format.h"
#include "base/status.h"

namespace pw::uct {
namespace {

void append(std::string& out, const void* bytes, size_t count) {
  out.append(static_cast<const char*>(bytes), count);
}

// Addresses and keys are both a length and at most 64 bytes.
template <typename Named>
void append_named(std::string& out, const Named& named) {
  out.push_back(static_cast<char>(named.length));
  append(out, named.bytes, named.length);
}

struct Reader {
  const uint8_t* at;

  void take(void* to, size_t count) {
    std::memcpy(to, at, count);
    at += count;
  }
  template <typename Named>
  void take_named(Named& named) {
    named.length = *at++;
    if (named.length > sizeof named.bytes)
      throw Error(PW_BAD_KEY,
                  format("peerway: an address of another transport: it names {} bytes", named.length));
    take(named.bytes, named.length);
  }
};

}  // namespace

std::string pack(const Address& address) {
  std::string out;
  append(out, &address.card.number, sizeof address.card.number);
  append(out, &address.card.endpoints, sizeof address.card.endpoints);
  out.push_back(static_cast<char>(address.card.promises));
  append_named(out, address.card.address);
  append_named(out, address.card.control);
  append_named(out, address.inbox);
  return out;
}

Address unpack(const void* bytes) {
  Address address{};
  Reader reader{static_cast<const uint8_t*>(bytes)};
  reader.take(&address.card.number, sizeof address.card.number);
  reader.take(&address.card.endpoints, sizeof address.card.endpoints);
  address.card.promises = *reader.at++;
  reader.take_named(address.card.address);
  reader.take_named(address.card.control);
  reader.take_named(address.inbox);
  return address;
}

}  // namespace pw::uct
