#include "collective/choice.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pw::settings {

const ChoiceSetting<MethodSetting> collective_method{
    "collective_method", "auto|one-shot|two-shot", "auto",
    "The method of collectives that have several. auto: by the costs of sends in the route table."};

}  // namespace pw::settings

namespace pw::collective {
namespace {

/// Adds up, over the rounds, the largest that `of_member(schedule, round)` is for any member.
template <typename OfMember>
double sum_of_rounds(const CollectiveRequest& request, CollectiveMethod method, OfMember&& of_member) {
  constexpr uint32_t kRounds = 2;
  std::array<double, kRounds> longest{};
  for (uint32_t member = 0; member < request.members(); ++member) {
    const Schedule schedule = schedule_of(request, method, member, false);
    for (uint32_t round = 0; round < kRounds; ++round)
      longest[round] = std::max(longest[round], of_member(schedule, round));
  }
  return longest[0] + longest[1];
}

uint64_t sent_bytes(const Schedule& schedule, uint32_t round) {
  uint64_t bytes = 0;
  for (const MemberMessage& message : schedule.sends)
    if (message.round == round) bytes += message.bytes;
  return bytes;
}

double on_cpu(const CollectiveRequest& request, const Schedule& schedule, uint32_t round,
              const MessageCost& cost) {
  double sum = 0;
  for (const MemberMessage& message : schedule.sends)
    if (message.round == round) sum += cost(message.bytes);
  for (const Combination& combination : schedule.combinations) {
    const uint64_t bytes = combination.count * bytes_of(request.element);
    if (combination.round == round) sum += request.members() * (cost(bytes) - cost(1));
  }
  return sum;
}

}  // namespace

double estimate(const CollectiveRequest& request, CollectiveMethod method, const MessageCost& cost) {
  return sum_of_rounds(request, method, [&](const Schedule& schedule, uint32_t round) {
    if (request.device_kind == PW_HOST) return on_cpu(request, schedule, round, cost);
    const uint64_t bytes = sent_bytes(schedule, round);
    return bytes > 0 ? cost(bytes) : 0;
  });
}

CollectiveMethod choose(const CollectiveRequest& request, std::span<const CollectiveMethod> methods,
                        const MessageCost& cost) {
  const bool known = std::isfinite(cost(1));
  return *std::ranges::min_element(methods, {}, [&](CollectiveMethod method) {
    if (known) return estimate(request, method, cost);
    return sum_of_rounds(request, method, [](const Schedule& schedule, uint32_t round) {
      return static_cast<double>(sent_bytes(schedule, round));
    });
  });
}

}  // namespace pw::collective
