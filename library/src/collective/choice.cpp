#include "collective/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/format.h"

namespace pw::settings {

const ChoiceSetting<MethodSetting> collective_method{
    "collective_method", "auto|one-shot|two-shot|tree|ring|hierarchical", "auto",
    "The method of collectives that have it. auto: by the costs of sends in the route table."};

}  // namespace pw::settings

namespace pw::collective {
namespace {

/// What a member sends in a round, to other hosts and to its own, and what the round takes it. Of a method:
/// for each figure the sum, over its rounds, of the largest of any member.
struct Work {
  uint64_t far_bytes = 0, near_bytes = 0;
  double us = 0;
};

class Estimator {
 public:
  Estimator(const CollectiveRequest& request, const Placement& placement, const CollectiveCosts& costs)
      : request_(request), placement_(placement), costs_(costs) {}

  [[nodiscard]] Work work_of_method(CollectiveMethod method) const {
    std::vector<Work> largest;
    for (uint32_t member = 0; member < request_.members(); ++member) {
      const std::vector<Work> rounds = work_of(member, method);
      largest.resize(std::max(largest.size(), rounds.size()));
      for (size_t round = 0; round < rounds.size(); ++round) {
        largest[round].far_bytes = std::max(largest[round].far_bytes, rounds[round].far_bytes);
        largest[round].near_bytes = std::max(largest[round].near_bytes, rounds[round].near_bytes);
        largest[round].us = std::max(largest[round].us, rounds[round].us);
      }
    }
    Work sum;
    for (const Work& of_round : largest) {
      sum.far_bytes += of_round.far_bytes;
      sum.near_bytes += of_round.near_bytes;
      sum.us += of_round.us;
    }
    return sum;
  }

 private:
  // The work of a member in each round.
  [[nodiscard]] std::vector<Work> work_of(uint32_t member, CollectiveMethod method) const {
    const bool on_cpu = request_.device_kind == PW_HOST;
    const Schedule schedule = schedule_of(request_, placement_, method, member, false);
    std::vector<Work> rounds;
    const auto in_round = [&](uint32_t round) -> Work& {
      rounds.resize(std::max<size_t>(rounds.size(), round + 1));
      return rounds[round];
    };
    for (const MemberMessage& message : schedule.sends) {
      Work& work = in_round(message.round);
      const bool same_host = placement_.hosts[member] == placement_.hosts[message.member];
      (same_host ? work.near_bytes : work.far_bytes) += message.range.bytes;
      if (on_cpu) work.us += costs_.message(same_host, message.range.bytes);
    }
    for (const Combination& combination : schedule.combinations)
      in_round(combination.round).us += on_cpu ? on_cpu_us(combination) : on_gpu_us(combination);
    if (!on_cpu)
      for (Work& work : rounds) work.us += on_gpu_us(work);
    return rounds;
  }

  [[nodiscard]] double on_cpu_us(const Combination& combination) const {
    return combination.operands * (costs_.message(true, combination.local.bytes) - costs_.message(true, 1));
  }

  // It reads the operands and writes the result.
  [[nodiscard]] double on_gpu_us(const Combination& combination) const {
    if (costs_.memory_bytes_per_us == 0) return 0;
    return (combination.operands + 1) * static_cast<double>(combination.local.bytes) /
           costs_.memory_bytes_per_us;
  }

  [[nodiscard]] double on_gpu_us(const Work& messages) const {
    const auto us = [&](bool same_host, uint64_t bytes) {
      return bytes > 0 ? costs_.message(same_host, bytes) : 0;
    };
    return std::max(us(true, messages.near_bytes), us(false, messages.far_bytes));
  }

  const CollectiveRequest& request_;
  const Placement& placement_;
  const CollectiveCosts& costs_;
};

}  // namespace

std::vector<Estimate> estimates_of(const CollectiveRequest& request, const Placement& placement,
                                   std::span<const CollectiveMethod> methods, const CollectiveCosts& costs) {
  const bool several_hosts = std::ranges::any_of(placement.hosts, [](uint32_t host) { return host > 0; });
  const bool known =
      std::isfinite(costs.message(true, 1)) && (!several_hosts || std::isfinite(costs.message(false, 1)));
  const Estimator estimator(request, placement, costs);
  std::vector<std::pair<Work, CollectiveMethod>> all;
  for (const CollectiveMethod method : methods) all.emplace_back(estimator.work_of_method(method), method);
  std::ranges::stable_sort(all, [&](const auto& a, const auto& b) {
    if (known) return a.first.us < b.first.us;
    return std::pair(a.first.far_bytes, a.first.near_bytes) <
           std::pair(b.first.far_bytes, b.first.near_bytes);
  });
  std::vector<Estimate> estimates;
  for (const auto& [work, method] : all)
    estimates.push_back({method, known ? work.us : std::numeric_limits<double>::infinity()});
  return estimates;
}

std::string text_of(std::span<const Estimate> estimates) {
  std::string text;
  for (const Estimate& estimate : estimates)
    if (std::isfinite(estimate.us))
      text += format("{}{} {:.3g} us", text.empty() ? "" : ", ", name_of(estimate.method), estimate.us);
  return text;
}

}  // namespace pw::collective
