// What a rank requests when it makes a collective: the operation and its numbers, without its memory. The
// ranks of the group tell one another their requests, and compare them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "peerway/device/element.cuh"
#include "peerway/peerway.h"

namespace pw::collective {

using peerway::device::Combine;
using peerway::device::Element;

struct CollectiveRequest {
  pw_collective_kind kind = PW_BARRIER;
  Element element = Element::uint8;
  Combine combine = Combine::sum;
  pw_order order = PW_ORDER_OF_GROUP;
  int32_t root = 0;              ///< broadcast: a rank of the team
  int32_t device_kind = 0;       ///< where the memory lies
  uint64_t count = 0;            ///< elements; 0 if there is one for each rank of the group (below)
  std::vector<uint64_t> counts;  ///< of each rank, in the order of the group; all_to_all: to each rank
  std::vector<uint64_t> receive_counts;  ///< all_to_all: from each rank
  std::vector<int32_t> ranks;            ///< the group

  [[nodiscard]] uint32_t members() const { return static_cast<uint32_t>(ranks.size()); }
  /// The place of a rank in the group. The rank must be a member.
  [[nodiscard]] uint32_t member(int32_t rank) const;
  [[nodiscard]] bool combines() const { return kind == PW_ALL_REDUCE || kind == PW_REDUCE_SCATTER; }
  /// Whether operands may be combined in any order: the caller allows it, or each order gives the same bits.
  [[nodiscard]] bool any_order() const;
};

uint64_t bytes_of(Element element);
const char* name_of(Element element);
const char* name_of(Combine combine);
const char* name_of(pw_collective_kind kind);

/// Converts the C struct: a single count becomes one for each rank where the kind has parts. The group is
/// complete, and its ranks are checked. Throws Error if the struct makes no sense.
CollectiveRequest request_of(const pw_collective& given, const std::vector<int32_t>& group);

/// Returns "all_reduce (sum) of 1024 float64 on the host, among ranks 0 to 3".
std::string describe(const CollectiveRequest& request);

Bytes pack(const CollectiveRequest& request);
/// Throws Error if the bytes are not a request.
CollectiveRequest parse_request(ByteReader& from);

/// Throws Error, with both descriptions, if two ranks request different collectives.
void check_same(int rank, const CollectiveRequest& request, int other_rank, const CollectiveRequest& other);

}  // namespace pw::collective
