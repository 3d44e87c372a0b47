// Collectives for C++20: plans in which all ranks of a group take part. Part of peerway.hpp.
//
//   auto sum = ctx.all_reduce(peerway::Element::float64, total.all(), mine.all(), peerway::Combine::sum);
//   check(sum.start());  other_work();  check(sum.finish());
#ifndef PEERWAY_COLLECTIVE_HPP
#define PEERWAY_COLLECTIVE_HPP

#include <cstdint>
#include <numeric>
#include <span>
#include <string>

#include "peerway/plan.hpp"

namespace peerway {

/// The types of elements.
enum class Element : int {
  int8 = PW_INT8,
  uint8 = PW_UINT8,
  int16 = PW_INT16,
  uint16 = PW_UINT16,
  int32 = PW_INT32,
  uint32 = PW_UINT32,
  int64 = PW_INT64,
  uint64 = PW_UINT64,
  float16 = PW_FLOAT16,
  bfloat16 = PW_BFLOAT16,
  float32 = PW_FLOAT32,
  float64 = PW_FLOAT64,
  float8_e4m3 = PW_FLOAT8_E4M3,
  float8_e5m2 = PW_FLOAT8_E5M2
};

/// The order in which the operands of ranks are combined (pw_order).
enum class Order : int { of_group = PW_ORDER_OF_GROUP, any = PW_ORDER_ANY };

/// How elements are combined; bit_and and bit_or only combine integers.
enum class Combine : int {
  sum = PW_SUM,
  min = PW_MIN,
  max = PW_MAX,
  prod = PW_PROD,
  bit_and = PW_AND,
  bit_or = PW_OR
};

namespace detail {

inline uint64_t bytes_of(Element element) {
  constexpr uint64_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};
  return bytes[static_cast<int>(element)];
}

/// The number of elements in a span. Throws Error if it has a part of one.
inline uint64_t elements_in(const Span<pw_region>& span, Element element) {
  if (span.bytes % bytes_of(element) != 0) {
    throw Error(Status::invalid_argument, "peerway: a collective of " + std::to_string(span.bytes) +
                                              " bytes in elements of " + std::to_string(bytes_of(element)) +
                                              " bytes; give whole elements.");
  }
  return span.bytes / bytes_of(element);
}

/// Throws Error unless the span has so many elements.
inline void require_elements(const char* name, const Span<pw_region>& span, Element element,
                             uint64_t needed) {
  if (elements_in(span, element) != needed) {
    throw Error(Status::invalid_argument, std::string("peerway: `") + name + "` of a collective has " +
                                              std::to_string(elements_in(span, element)) +
                                              " elements, where " + std::to_string(needed) + " are needed.");
  }
}

inline uint64_t sum_of(std::span<const uint64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

/// Takes the parts of the ranks, whose elements `all` has. Without counts all parts are equal.
inline void set_counts(pw_collective& collective, std::span<const uint64_t> counts, const char* name,
                       const Span<pw_region>& all, Element element) {
  if (counts.empty()) return;
  require_elements(name, all, element, sum_of(counts));
  collective.counts = counts.data();
  collective.part_count = counts.size();
}

inline pw_collective collective(pw_collective_kind kind, std::span<const int> ranks) {
  pw_collective collective{};
  collective.kind = kind;
  collective.ranks = ranks.empty() ? nullptr : ranks.data();
  collective.rank_count = ranks.size();
  return collective;
}

inline void set_memory(pw_collective& collective, Element element, const Span<pw_region>& to,
                       const Span<pw_region>& from) {
  collective.element = static_cast<pw_element>(element);
  collective.to = to.of;
  collective.to_offset = to.offset;
  collective.from = from.of;
  collective.from_offset = from.offset;
}

inline Plan make_collective(pw_context* context, const pw_collective& collective) {
  pw_plan* plan = nullptr;
  check(pw_collective_create(context, &collective, &plan));
  return Plan(plan);
}

}  // namespace detail

inline Plan Context::all_reduce(Element element, Local to, Local from, Combine combine,
                                std::span<const int> ranks, Order order) {
  pw_collective collective = detail::collective(PW_ALL_REDUCE, ranks);
  detail::set_memory(collective, element, to, from);
  collective.reduction = static_cast<pw_reduction>(combine);
  collective.order = static_cast<pw_order>(order);
  collective.count = detail::elements_in(to, element);
  detail::require_elements("from", from, element, collective.count);
  return detail::make_collective(get(), collective);
}

inline Plan Context::reduce_scatter(Element element, Local to, Local from, Combine combine,
                                    std::span<const uint64_t> counts, std::span<const int> ranks,
                                    Order order) {
  pw_collective collective = detail::collective(PW_REDUCE_SCATTER, ranks);
  detail::set_memory(collective, element, to, from);
  collective.reduction = static_cast<pw_reduction>(combine);
  collective.order = static_cast<pw_order>(order);
  collective.count = detail::elements_in(to, element);
  detail::set_counts(collective, counts, "from", from, element);
  return detail::make_collective(get(), collective);
}

inline Plan Context::all_gather(Element element, Local to, Local from, std::span<const uint64_t> counts,
                                std::span<const int> ranks) {
  pw_collective collective = detail::collective(PW_ALL_GATHER, ranks);
  detail::set_memory(collective, element, to, from);
  collective.count = detail::elements_in(from, element);
  detail::set_counts(collective, counts, "to", to, element);
  return detail::make_collective(get(), collective);
}

inline Plan Context::broadcast(Element element, Local memory, int root, std::span<const int> ranks) {
  pw_collective collective = detail::collective(PW_BROADCAST, ranks);
  detail::set_memory(collective, element, memory, {});
  collective.root = root;
  collective.count = detail::elements_in(memory, element);
  return detail::make_collective(get(), collective);
}

inline Plan Context::all_to_all(Element element, Local to, Local from, std::span<const uint64_t> counts,
                                std::span<const uint64_t> receive_counts, std::span<const int> ranks) {
  pw_collective collective = detail::collective(PW_ALL_TO_ALL, ranks);
  detail::set_memory(collective, element, to, from);
  if (counts.size() != receive_counts.size()) {
    throw Error(Status::invalid_argument, "peerway: all_to_all with " + std::to_string(counts.size()) +
                                              " counts and " + std::to_string(receive_counts.size()) +
                                              " receive_counts; give both for each rank of the group.");
  }
  detail::require_elements("from", from, element, detail::sum_of(counts));
  detail::require_elements("to", to, element, detail::sum_of(receive_counts));
  collective.part_count = counts.size();
  collective.counts = counts.data();
  collective.receive_counts = receive_counts.data();
  return detail::make_collective(get(), collective);
}

inline Plan Context::barrier(pw_device device, std::span<const int> ranks) {
  pw_collective collective = detail::collective(PW_BARRIER, ranks);
  collective.device = device;
  return detail::make_collective(get(), collective);
}

}  // namespace peerway

#endif
