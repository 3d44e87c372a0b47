// Any bytes as a rank's request for a collective: read as what was written, or refused. A request that was
// read can be described and compared, and its schedule stays in the memory that it needs.
#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "collective/schedule.h"
#include "fuzz/fuzz.h"

namespace pw::fuzz {
namespace {

using collective::Buffer;
using collective::CollectiveRequest;

constexpr uint32_t kMostMembers = 16;  // a schedule has messages with each

void check_schedule(const CollectiveRequest& request, const collective::Hosts& hosts,
                    collective::CollectiveMethod method, uint32_t member) {
  const collective::Schedule schedule = schedule_of(request, hosts, method, member, false);
  const auto room = [&](Buffer buffer) {
    return buffer == Buffer::to     ? to_bytes(request, member)
           : buffer == Buffer::from ? from_bytes(request, member)
                                    : schedule.scratch_bytes;
  };
  for (const auto* messages : {&schedule.sends, &schedule.receives})
    for (const collective::MemberMessage& message : *messages)
      require(message.range.offset <= room(message.range.buffer) &&
              message.range.bytes <= room(message.range.buffer) - message.range.offset);
}

}  // namespace

FUZZ(fuzz_collective) {
  try {
    const Bytes bytes(reinterpret_cast<const std::byte*>(data),
                      reinterpret_cast<const std::byte*>(data) + size);
    ByteReader from(bytes, "a request");
    const CollectiveRequest request = collective::parse_request(from);
    const Bytes written = pack(request);
    ByteReader again(written, "a request");
    require(pack(collective::parse_request(again)) == written);
    require(!describe(request).empty());
    if (request.ranks.size() >= 2) check_same(request.ranks[0], request, request.ranks[1], request);
    if (request.members() > kMostMembers) return;
    collective::Hosts hosts;
    for (uint32_t member = 0; member < request.members(); ++member) hosts.push_back(member % 2);
    for (uint32_t member = 0; member < request.members(); ++member)
      for (const collective::CollectiveMethod method : collective::methods_of(request, hosts))
        check_schedule(request, hosts, method, member);
  } catch (const Error&) {
  }
}

}  // namespace pw::fuzz
