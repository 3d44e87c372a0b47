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

/// What a member sends in one round, to its own host and to others, and the time of a CPU for that and for
/// what it combines.
struct RoundWork {
  uint64_t near_bytes = 0, far_bytes = 0;
  double cpu_us = 0;
};

class Estimator {
 public:
  Estimator(const CollectiveRequest& request, const Hosts& hosts, const MessageCost& cost)
      : request_(request), hosts_(hosts), cost_(cost) {}

  /// The time of the method in microseconds.
  [[nodiscard]] double time_of(CollectiveMethod method) const {
    return sum_of_rounds(method, [&](const RoundWork& work) {
      return request_.device_kind == PW_HOST ? work.cpu_us : gpu_us(work);
    });
  }

  /// The bytes that members send one after another, to other hosts and to their own.
  [[nodiscard]] std::pair<double, double> bytes_of_method(CollectiveMethod method) const {
    const auto bytes = [&](uint64_t RoundWork::* sent) {
      return sum_of_rounds(method, [&](const RoundWork& work) { return static_cast<double>(work.*sent); });
    };
    return {bytes(&RoundWork::far_bytes), bytes(&RoundWork::near_bytes)};
  }

 private:
  /// Adds up, over the rounds, the largest that `of_work(work)` is for any member.
  template <typename OfWork>
  [[nodiscard]] double sum_of_rounds(CollectiveMethod method, OfWork&& of_work) const {
    std::vector<double> longest;
    for (uint32_t member = 0; member < request_.members(); ++member) {
      const std::vector<RoundWork> rounds = work_of(member, method);
      longest.resize(std::max(longest.size(), rounds.size()), 0);
      for (size_t round = 0; round < rounds.size(); ++round)
        longest[round] = std::max(longest[round], of_work(rounds[round]));
    }
    double sum = 0;
    for (const double time : longest) sum += time;
    return sum;
  }

  [[nodiscard]] std::vector<RoundWork> work_of(uint32_t member, CollectiveMethod method) const {
    const Schedule schedule = schedule_of(request_, hosts_, method, member, false);
    std::vector<RoundWork> rounds;
    const auto in_round = [&](uint32_t round) -> RoundWork& {
      rounds.resize(std::max<size_t>(rounds.size(), round + 1));
      return rounds[round];
    };
    for (const MemberMessage& message : schedule.sends) {
      RoundWork& work = in_round(message.round);
      const bool same_host = hosts_[member] == hosts_[message.member];
      (same_host ? work.near_bytes : work.far_bytes) += message.range.bytes;
      work.cpu_us += cost_(same_host, message.range.bytes);
    }
    for (const Combination& combination : schedule.combinations) {
      const double read = cost_(true, combination.local.bytes) - cost_(true, 1);
      in_round(combination.round).cpu_us += combination.operands * read;
    }
    return rounds;
  }

  [[nodiscard]] double gpu_us(const RoundWork& work) const {
    const auto us = [&](bool same_host, uint64_t bytes) { return bytes > 0 ? cost_(same_host, bytes) : 0; };
    return std::max(us(true, work.near_bytes), us(false, work.far_bytes));
  }

  const CollectiveRequest& request_;
  const Hosts& hosts_;
  const MessageCost& cost_;
};

}  // namespace

std::vector<Estimate> estimates_of(const CollectiveRequest& request, const Hosts& hosts,
                                   std::span<const CollectiveMethod> methods, const MessageCost& cost) {
  const bool several_hosts = std::ranges::any_of(hosts, [](uint32_t host) { return host > 0; });
  const bool known = std::isfinite(cost(true, 1)) && (!several_hosts || std::isfinite(cost(false, 1)));
  const Estimator estimator(request, hosts, cost);
  std::vector<Estimate> estimates;
  for (const CollectiveMethod method : methods)
    estimates.push_back(
        {method, known ? estimator.time_of(method) : std::numeric_limits<double>::infinity()});
  if (known)
    std::ranges::stable_sort(estimates, {}, &Estimate::us);
  else
    std::ranges::stable_sort(
        estimates, {}, [&](const Estimate& estimate) { return estimator.bytes_of_method(estimate.method); });
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
