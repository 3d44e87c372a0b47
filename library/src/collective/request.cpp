#include "collective/request.h"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

#include "base/format.h"
#include "base/status.h"

namespace pw::collective {
namespace {

struct ElementFacts {
  const char* name;
  uint64_t bytes;
  bool is_float;
};
constexpr std::array<ElementFacts, 14> kElements{{{"int8", 1, false},
                                                  {"uint8", 1, false},
                                                  {"int16", 2, false},
                                                  {"uint16", 2, false},
                                                  {"int32", 4, false},
                                                  {"uint32", 4, false},
                                                  {"int64", 8, false},
                                                  {"uint64", 8, false},
                                                  {"float16", 2, true},
                                                  {"bfloat16", 2, true},
                                                  {"float32", 4, true},
                                                  {"float64", 8, true},
                                                  {"float8_e4m3", 1, true},
                                                  {"float8_e5m2", 1, true}}};
constexpr std::array<const char*, 6> kCombines{"sum", "min", "max", "prod", "and", "or"};
constexpr size_t kOrders = 2;
constexpr std::array<const char*, 6> kKinds{"all_reduce", "reduce_scatter", "all_gather",
                                            "broadcast",  "all_to_all",     "barrier"};

template <typename Value>
void check_enumerator(Value value, size_t count, const char* name) {
  if (static_cast<size_t>(value) >= count)
    throw Error(PW_INVALID_ARGUMENT, format("{} is not {} of a collective; they are numbered 0 to {}",
                                            static_cast<int>(value), name, count - 1));
}

bool has_parts(pw_collective_kind kind) {
  return kind == PW_REDUCE_SCATTER || kind == PW_ALL_GATHER || kind == PW_ALL_TO_ALL;
}

// All elements together must have at most so many bytes, which is more than any memory has, so that sums and
// multiples of sizes are numbers of 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 56;

void check_size(const CollectiveRequest& request) {
  const uint64_t most = kMostBytes / bytes_of(request.element);
  for (const auto* counts : {&request.counts, &request.receive_counts}) {
    uint64_t remaining = most;
    for (const uint64_t count : *counts) {
      if (count > remaining)
        throw Error(PW_INVALID_ARGUMENT, format("{}: more elements than any memory has", describe(request)));
      remaining -= count;
    }
  }
  if (request.count > most)
    throw Error(PW_INVALID_ARGUMENT, format("{}: more elements than any memory has", describe(request)));
}

std::string text_of_ranks(const std::vector<int32_t>& ranks) {
  const bool ascending =
      std::ranges::adjacent_find(ranks, [](int a, int b) { return b != a + 1; }) == ranks.end();
  if (ranks.size() == 1) return format("rank {} alone", ranks.front());
  if (ascending) return format("ranks {} to {}", ranks.front(), ranks.back());
  std::string text = "ranks";
  for (const int32_t rank : ranks) text += format("{} {}", rank == ranks.front() ? "" : ",", rank);
  return text;
}

std::string text_of_counts(const CollectiveRequest& request) {
  if (!has_parts(request.kind)) return format("{}", request.count);
  const std::vector<uint64_t>& counts = request.counts;
  if (std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end())
    return format("{} x {}", counts.size(), counts.empty() ? 0 : counts.front());
  std::string text;
  for (size_t member = 0; member < counts.size(); ++member)
    text += format("{}{}", member == 0 ? "" : " + ", counts[member]);
  return text;
}

// Checks what the other functions rely on.
void check_parsed(const CollectiveRequest& request) {
  const size_t parts = has_parts(request.kind) ? request.ranks.size() : 0;
  const size_t received = request.kind == PW_ALL_TO_ALL ? parts : 0;
  const bool has_root = request.kind != PW_BROADCAST || request.member(request.root) < request.members();
  if (request.ranks.empty() || request.counts.size() != parts || request.receive_counts.size() != received ||
      !has_root)
    throw Error(PW_BAD_KEY,
                format("a rank requests a {} among {} ranks with {} counts, {} receive_counts and root {}",
                       name_of(request.kind), request.ranks.size(), request.counts.size(),
                       request.receive_counts.size(), request.root));
  check_size(request);
}

void take_counts(CollectiveRequest& request, const pw_collective& given) {
  const size_t members = request.ranks.size();
  if ((given.counts != nullptr || given.receive_counts != nullptr) && given.part_count != members)
    throw Error(PW_INVALID_ARGUMENT, format("{} with {} counts, among {} ranks; give one for each rank",
                                            name_of(given.kind), given.part_count, members));
  const auto taken = [&](const uint64_t* counts) {
    return counts == nullptr ? std::vector<uint64_t>(members, given.count)
                             : std::vector<uint64_t>(counts, counts + members);
  };
  request.counts = taken(given.counts);
  if (given.kind == PW_ALL_TO_ALL)
    request.receive_counts = taken(given.receive_counts == nullptr ? given.counts : given.receive_counts);
}

}  // namespace

uint32_t CollectiveRequest::member(int32_t rank) const {
  return static_cast<uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

bool CollectiveRequest::any_order() const {
  return order == PW_ORDER_ANY || !kElements[static_cast<size_t>(element)].is_float;
}

uint64_t bytes_of(Element element) { return kElements[static_cast<size_t>(element)].bytes; }
const char* name_of(Element element) { return kElements[static_cast<size_t>(element)].name; }
const char* name_of(Combine combine) { return kCombines[static_cast<size_t>(combine)]; }
const char* name_of(pw_collective_kind kind) { return kKinds[static_cast<size_t>(kind)]; }

CollectiveRequest request_of(const pw_collective& given, const std::vector<int32_t>& group) {
  check_enumerator(given.kind, kKinds.size(), "a kind");
  check_enumerator(given.reduction, kCombines.size(), "a reduction");
  check_enumerator(given.element, kElements.size(), "an element type");
  check_enumerator(given.order, kOrders, "an order");
  CollectiveRequest request;
  request.kind = given.kind;
  request.ranks = group;
  if (given.kind == PW_BARRIER) return request;
  request.element = static_cast<Element>(given.element);
  if (request.combines()) {
    request.combine = static_cast<Combine>(given.reduction);
    request.order = given.order;
  }
  const bool bitwise = request.combine == Combine::bit_and || request.combine == Combine::bit_or;
  if (bitwise && kElements[static_cast<size_t>(given.element)].is_float)
    throw Error(PW_INVALID_ARGUMENT,
                format("{} combines bits, which {} numbers are not made for; use integers",
                       name_of(request.combine), name_of(request.element)));
  if (has_parts(given.kind))
    take_counts(request, given);
  else
    request.count = given.count;
  if (given.kind == PW_BROADCAST) {
    request.root = given.root;
    if (std::ranges::find(group, given.root) == group.end())
      throw Error(PW_INVALID_ARGUMENT, format("a broadcast from rank {}, which is not one of {}", given.root,
                                              text_of_ranks(group)));
  }
  check_size(request);
  return request;
}

std::string describe(const CollectiveRequest& request) {
  std::string text = name_of(request.kind);
  if (request.combines())
    text += format(" ({}{})", name_of(request.combine), request.order == PW_ORDER_ANY ? " in any order" : "");
  if (request.kind != PW_BARRIER)
    text += format(" of {} {}", text_of_counts(request), name_of(request.element));
  if (request.kind == PW_BROADCAST) text += format(" from rank {}", request.root);
  return text + format(" on {}, among {}", request.device_kind == PW_HOST ? "the host" : "GPUs",
                       text_of_ranks(request.ranks));
}

Bytes pack(const CollectiveRequest& request) {
  ByteWriter to;
  to.put(static_cast<uint8_t>(request.kind));
  to.put(static_cast<uint8_t>(request.element));
  to.put(static_cast<uint8_t>(request.combine));
  to.put(static_cast<uint8_t>(request.order));
  to.put(request.root);
  to.put(request.device_kind);
  to.put(request.count);
  to.put(static_cast<uint32_t>(request.ranks.size()));
  for (const int32_t rank : request.ranks) to.put(rank);
  for (const auto* counts : {&request.counts, &request.receive_counts}) {
    to.put(static_cast<uint32_t>(counts->size()));
    for (const uint64_t count : *counts) to.put(count);
  }
  return to.take();
}

CollectiveRequest parse_request(ByteReader& from) {
  CollectiveRequest request;
  const auto kind = from.get<uint8_t>(), element = from.get<uint8_t>(), combine = from.get<uint8_t>();
  const auto order = from.get<uint8_t>();
  if (kind >= kKinds.size() || element >= kElements.size() || combine >= kCombines.size() || order >= kOrders)
    throw Error(PW_BAD_KEY,
                format("a rank requests a collective of kind {}, element {}, reduction {} and order {}, "
                       "which do not exist",
                       kind, element, combine, order));
  request.kind = static_cast<pw_collective_kind>(kind);
  request.element = static_cast<Element>(element);
  request.combine = static_cast<Combine>(combine);
  request.order = static_cast<pw_order>(order);
  request.root = from.get<int32_t>();
  request.device_kind = from.get<int32_t>();
  request.count = from.get<uint64_t>();
  for (uint32_t remaining = from.get<uint32_t>(); remaining > 0; --remaining)
    request.ranks.push_back(from.get<int32_t>());
  for (auto* counts : {&request.counts, &request.receive_counts})
    for (uint32_t remaining = from.get<uint32_t>(); remaining > 0; --remaining)
      counts->push_back(from.get<uint64_t>());
  check_parsed(request);
  return request;
}

void check_same(int rank, const CollectiveRequest& request, int other_rank, const CollectiveRequest& other) {
  if (other_rank < rank) return check_same(other_rank, other, rank, request);
  const auto refuse = [&](const std::string& difference) {
    throw Error(
        PW_INVALID_ARGUMENT,
        format("rank {} makes the collective \"{}\" where rank {} makes \"{}\"{}; all ranks of the group "
               "must make the same one",
               rank, describe(request), other_rank, describe(other), difference));
  };
  const auto numbers = [](const CollectiveRequest& of) {
    return std::tuple(of.kind, of.element, of.combine, of.order, of.root, of.device_kind, of.count, of.ranks);
  };
  if (numbers(request) != numbers(other)) refuse("");
  if (request.kind != PW_ALL_TO_ALL) {
    if (request.counts != other.counts) refuse("");
    return;
  }
  const auto check_pair = [&](int from, const CollectiveRequest& sender, int to,
                              const CollectiveRequest& receiver) {
    const uint64_t sent = sender.counts.at(sender.member(to));
    const uint64_t received = receiver.receive_counts.at(receiver.member(from));
    if (sent != received)
      refuse(format(": rank {} sends {} elements to rank {}, which receives {} from it", from, sent, to,
                    received));
  };
  check_pair(rank, request, other_rank, other);
  check_pair(other_rank, other, rank, request);
}

}  // namespace pw::collective
